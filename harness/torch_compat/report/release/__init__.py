"""What begins with one release: the items, their sources, and the output formats."""
