"""How the shell prints answers and lists."""
