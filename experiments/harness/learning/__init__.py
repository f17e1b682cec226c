"""Text, tasks, training, and what trained models are asked."""
