"""Recorded evidence: recipes, manifests with goldens, observations, and the comparison of results."""
