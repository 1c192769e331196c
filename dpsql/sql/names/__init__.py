"""Name pass: the relation and column that each name means."""
