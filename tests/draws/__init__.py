"""Drawn states and programs, written and loaded by real releases, against what `inspect` says of them."""
