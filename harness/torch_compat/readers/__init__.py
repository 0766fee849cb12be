"""Readers: real torch releases, each in its own environment, with the process that queries them; and the reference reader."""
