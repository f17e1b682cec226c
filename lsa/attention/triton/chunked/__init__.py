"""Chunked mode: passes.py says how it runs, and which pass launches what."""
