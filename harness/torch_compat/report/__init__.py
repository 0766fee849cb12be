"""Reports rendered for a person or a machine, one form per file."""
