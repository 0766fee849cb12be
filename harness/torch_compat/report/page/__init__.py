"""The page: HTML that needs no network. The main file contains the aggregates; details are in separate files."""
