"""Figures of the chapter on state spaces."""
