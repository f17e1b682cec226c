"""Figures of the first page."""
