"""What the figures share: records, seeds, formats, tables."""
