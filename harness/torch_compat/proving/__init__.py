"""Upgraders and their proofs: generated calls of operators, the programs that make them, and who is asked."""
