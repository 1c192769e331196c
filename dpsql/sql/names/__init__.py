"""Name pass: resolve names to relations and columns."""
