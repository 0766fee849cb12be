"""Torch releases, sets of releases, the calendar, and the location of the recorded data."""
