"""Readers: real torch releases, each in an environment of its own, and the process that questions them."""
