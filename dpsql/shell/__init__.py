"""The shell: reads what a person types on a command line, at a prompt or in a notebook, asks a Session, shows the
answer. It decides nothing about privacy."""
