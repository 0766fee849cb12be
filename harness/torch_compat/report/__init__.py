"""Reports for people and for machines, one format per file."""
