"""The data dictionary, results/README.md, made of what the experiments declare."""

from __future__ import annotations

from . import record
from .plan import Catalogue, Experiment

HEAD = f"""# Results: the data dictionary

This file is written by `python -m experiments describe` from what each experiment declares.

One run is one file: `<experiment>/<device>/<run>.json`. Files are written by
`python -m experiments run`, whole or not at all, and never edited by hand.
`python -m experiments check` reads every one of them and says which file and which field is wrong.
It also says behind which results code has changed since: the files that their experiment imports
are compared with those of the commit that made them, comments, docstrings and formatting aside.
`check --changes` names the commits that changed them, but for those that were found harmless:
`experiments/reviewed.txt` lists these, with reasons. Outside a checkout with its history it says
that it cannot tell.

| field | what it holds |
|---|---|
| `schema` | version of this layout: {record.SCHEMA} |
| `experiment`, `name` | which module of `experiments/` made it, and which run of its plan |
| `config` | everything that decides what was computed; it has what all runs planned now have |
| `complete` | false for a run that was stopped; such a file is named `*{record.PARTIAL}` |
| `provenance` | where the numbers come from, below |
| `units` | the unit of every column |
| `tables` | named tables; each is a set of columns of one length |
| `weights` | of weights beside the record: SHA-256 of the file, and the shape of every array |
| `digest` | SHA-256 of all other fields as JSON, keys sorted, without spaces |

| `provenance.` | what it holds |
|---|---|
| `commit` | it ran under, the last of several; `unknown` outside a repository |
| `dirty` | whether `lsa/` or `experiments/` differed from the commit |
| `code` | SHA-256 of the source files that the experiment imports, byte by byte; older records \
have none |
| `legs` | of a run that was stopped: `commit`, `dirty`, `started`, `seconds` of each |
| `command` | the command of the last leg |
| `started`, `seconds` | when the first leg began (UTC); how long all legs took together |
| `seed` | of weights and data |
| `corpus` | SHA-256 of the prepared tokens; null where no text is read |
| `ranks` | of a training on several: `world_size`, `mesh`, `tokens_per_second` of each |
| `warnings` | what did not work without ending the run, if anything |
| `device` | kind, name, count (threads or GPUs), memory_bytes |
| `versions` | of Python, torch, triton, numpy, CUDA, the driver and the system |

A device's folder is its name; for a CPU with the number of threads that torch would use. A run
whose `config` names `threads` used that many.

Beside runs of `race` of softmax and linear attention (of seed 0, and of further seeds at up to
4,096 bytes) lie the trained weights, `<run>.weights.npz`, under 1 MB each: for every matrix NAME of
the model `NAME`, int8 [out, in], and `NAME.scale`, float32 [out], whose product is the weight;
every vector as float32. Names are those of `lsa.gpt.GPT`'s state dictionary, and
`experiments.harness.learning.weights.unpack_weights` gives it back.
"""


def dictionary(catalogue: Catalogue) -> str:
    """The whole text: the fields of every record, then every experiment's columns."""
    sections = [_section(catalogue[name]) for name in sorted(catalogue)]
    return "\n".join([HEAD, *sections])


def _section(experiment: Experiment) -> str:
    lines = [f"## `{experiment.name}`", "", experiment.text.strip(), ""]
    if experiment.frozen:
        lines += [f"Their code is kept no longer; commit {experiment.frozen} has it.", ""]
    for name, table in experiment.tables.items():
        if table.optional:
            lines += [f"`{name}`: {table.optional}.", ""]
    lines += ["| table.column | unit | meaning |", "|---|---|---|"]
    lines += [
        f"| `{name}.{column}` | {unit} | {meaning} |"
        for name, table in experiment.tables.items()
        for column, (unit, meaning, _) in table.columns.items()
    ]
    return "\n".join([*lines, ""])
