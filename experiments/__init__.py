"""Experiments: each makes results that the book draws. Run them with `python -m experiments`."""
