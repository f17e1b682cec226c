"""The table of public names."""
