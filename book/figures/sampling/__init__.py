"""Figures of the chapter on sampling."""
