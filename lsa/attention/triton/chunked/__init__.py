"""Chunked mode; passes.py explains its design."""
