"""The page: HTML that needs no network. One main file has the aggregates; details stand in files beside it."""
