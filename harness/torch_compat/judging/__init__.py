"""The judging engine: evidence, cells and their outcomes, the rules that a policy names, waivers, findings."""
