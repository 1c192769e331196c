"""Privacy boundary pass: a statement as releases and the post-processing over them."""
