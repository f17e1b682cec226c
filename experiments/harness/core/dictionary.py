"""The data dictionary, results/README.md, generated from the experiments' declarations."""

from __future__ import annotations

from . import record
from .plan import Catalogue, Experiment

HEAD = f"""# Results: the data dictionary

This file is written by `python -m experiments describe` from what each experiment declares.

One run is one file: `<experiment>/<device>/<run>.json`. `python -m experiments run` writes it,
whole or not at all. No file is edited by hand.

`python -m experiments check` reads every file and says which field of which file is wrong. It also
lists the results whose code has changed since. For this it compares the files that an experiment
imports with those of the commit that made the result; comments, docstrings and formatting do not
count. `check --changes` names the commits that changed them. Commits that were found harmless are
left out: `experiments/reviewed.txt` lists these, with reasons. Without the history of the
repository `check` says that it cannot tell.

| field | what it holds |
|---|---|
| `schema` | version of this layout: {record.SCHEMA} |
| `experiment`, `name` | which module of `experiments/` made it, and which run of its plan |
| `config` | everything that decides what was computed, with all keys that planned runs have |
| `complete` | false for a run that was stopped; such a file is named `*{record.PARTIAL}`. A \
complete training ended as its table `end` says, or else after `config.updates` updates or \
`config.train_seconds` seconds; `check` refuses one whose curve ends elsewhere |
| `provenance` | where the numbers come from, below |
| `units` | the unit of every column |
| `tables` | named tables; each is a set of columns of one length |
| `weights` | where weights lie beside the record: SHA-256 of the file, the shape of every array |
| `digest` | SHA-256 of all other fields as JSON, keys sorted, without spaces, in \
ASCII (`\\uXXXX`) |

| `provenance.` | what it holds |
|---|---|
| `commit` | of the code that ran, the last of several; `unknown` outside a repository |
| `dirty` | whether `lsa/` or `experiments/` differed from the commit |
| `code` | SHA-256 of the source files that the experiment imports, byte by byte; older records \
have none |
| `legs` | parts of a run that was stopped: `commit`, `dirty`, `started`, `seconds` of each |
| `command` | the command of the last leg |
| `started`, `seconds` | when the first leg began (UTC); how long all legs took together |
| `seed` | of weights and data |
| `corpus` | SHA-256 of the prepared tokens; null where no text is read |
| `ranks` | of a training on several: `world_size`, `mesh`, `tokens_per_second` of each |
| `warnings` | what did not work without ending the run, if anything |
| `device` | kind, name, count (threads or GPUs), memory_bytes |
| `versions` | of Python, torch, triton, numpy, CUDA, the driver and the system |

A device's folder is its name; for a CPU also the number of threads that torch would use. A run
whose `config` names `threads` used that many.

Trained weights, `<run>.weights.npz`, lie beside some runs. A matrix
NAME is two arrays: `NAME`, int8 [out, in], and `NAME.scale`, float32 [out]; their product is
the weight. A vector is stored as float32. Names are those of `lsa.gpt.GPT`'s state dictionary,
which `experiments.harness.learning.weights.unpack_weights` gives back.
"""


def dictionary(catalogue: Catalogue) -> str:
    """The whole text: the fields of a record, then every experiment's columns."""
    sections = [_section(catalogue[name]) for name in sorted(catalogue)]
    return "\n".join([HEAD, *sections])


def _section(experiment: Experiment) -> str:
    lines = [f"## `{experiment.name}`", "", experiment.text.strip(), ""]
    if experiment.frozen:
        lines += [f"The code of these runs was removed after commit {experiment.frozen}.", ""]
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
