"""Beginnings of things that people add. Each one works, and is refused until it says what only they know."""
