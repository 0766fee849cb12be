"""Forms of a run that other tools read: JUnit XML, SARIF, GitHub annotations and summary, JSON Lines."""
