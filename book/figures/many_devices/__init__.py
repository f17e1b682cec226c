"""Figures of the chapter on many devices."""
