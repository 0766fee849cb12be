"""Readers: real torch releases, each in an environment of its own, the process that questions them; and the reference reader."""
