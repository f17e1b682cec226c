"""Figures of the chapter on long contexts."""
