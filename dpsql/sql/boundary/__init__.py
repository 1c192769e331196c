"""Privacy boundary pass: separate a statement into releases and post-processing SQL."""
