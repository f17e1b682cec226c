"""Figures of the chapter on linear self-attention."""
