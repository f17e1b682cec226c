"""The book where nothing runs: still pictures of its stages, and all of it as a PDF."""
