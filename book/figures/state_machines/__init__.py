"""Figures of the chapter on state machines."""
