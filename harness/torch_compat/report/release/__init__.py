"""What begins with one release: the items, where they come from, and the forms in which they are told."""
