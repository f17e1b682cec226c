"""What the chapters draw: a folder a chapter, and `lib`, which they share."""
