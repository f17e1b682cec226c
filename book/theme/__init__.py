"""What turns chapters into pages: a Sphinx extension, styles, fonts and templates."""
