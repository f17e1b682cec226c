"""Experiments: each makes results that the book draws. Run them with `python -m experiments`."""

import os

# torch's profiler, which counts bytes for us, would print a line on every call.
os.environ.setdefault("KINETO_LOG_LEVEL", "99")
