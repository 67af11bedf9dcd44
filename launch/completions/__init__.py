"""Scripts that complete the command line, generated from the parsers of the commands."""
