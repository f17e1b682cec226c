"""Figures of the chapter on a trained model."""
