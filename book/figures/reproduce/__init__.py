"""Tables of the page on stored runs."""
