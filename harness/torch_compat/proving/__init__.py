"""Upgraders and their proofs: generated operator calls, the programs that make them, and the oracles that answer them."""
