"""The book without scripts: still pictures of its stages, and a PDF of all pages."""
