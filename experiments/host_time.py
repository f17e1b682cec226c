"""Host time of a kernel call before a GPU begins: checks, plan, operator, launches.

Needs no GPU: the kernels are compiled for Hopper, their arguments are bound and looked up as for a
launch, and the launch itself does nothing. Each call is compared with an operator that has the same
arguments and only allocates the results. The difference is our part of the time; the rest is what
torch needs for any operator. All calls of all cases take turns, so that a temporary slowdown of the
computer affects them alike.
"""

from __future__ import annotations

from .harness.bench.timing import TIMING
from .harness.core.plan import Experiment
from .harness.core.tables import PASS, table

TABLES = {
    "rows": table(
        call=("name", "`linear_attention`, or `empty`: an operator that only allocates"),
        **PASS,
        width=("features", "K = V"),
        feature_map=("name", "applied to q and k as they are loaded"),
        normalized=("yes or no", "whether the sum is divided by the normaliser"),
        launches=("launches", "of kernels in one call"),
        **TIMING,
    ),
}

EXPERIMENT = Experiment(
    "host_time", "what a call of the kernels costs on the host", TABLES, frozen="3d84f693aaa8"
)
