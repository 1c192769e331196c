"""Pages for browsers: the operations of the API, as HTML that needs no script."""
