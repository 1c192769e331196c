"""User interfaces: command line, prompt and notebook magics. They pass queries to a Session and show the answers; they
decide nothing about privacy."""
