"""Formats of a run for other tools: JUnit XML, SARIF, GitHub annotations and summary, JSON Lines."""
