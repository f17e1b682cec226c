"""From chapters to pages: a Sphinx extension, styles, fonts and templates."""
