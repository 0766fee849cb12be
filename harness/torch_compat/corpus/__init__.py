"""Recorded evidence: recipes, manifests with goldens, observations."""
