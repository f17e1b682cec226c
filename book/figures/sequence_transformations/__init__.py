"""Figures of the chapter on sequence transformations."""
