"""The chapters' figures: a folder a chapter, and `lib`, which they share."""
