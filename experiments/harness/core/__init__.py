"""Planning, performing, storing, checking and collecting runs."""
