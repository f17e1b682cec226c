"""The chart engine: one declaration, drawn in the page, as a picture and in a notebook."""
