"""Texts, tasks, training, and questions to trained models."""
