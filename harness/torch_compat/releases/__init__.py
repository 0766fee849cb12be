"""Releases of torch, sets of them, the calendar, and where the data lies that was recorded of them."""
