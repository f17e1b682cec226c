"""Figures of the chapter on the three modes."""
