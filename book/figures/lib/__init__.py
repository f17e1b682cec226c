"""Shared parts of the figures: records, seeds, formats, tables."""
