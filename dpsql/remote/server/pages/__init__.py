"""Pages for people with a browser: what the routes for programs do, as HTML that needs no script."""
