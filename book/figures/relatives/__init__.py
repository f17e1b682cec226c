"""Figures of the chapter on relatives."""
