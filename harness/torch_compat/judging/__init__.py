"""The engine of judging: evidence, cells and their outcomes, the rules that a policy names asked in turn, waivers, findings."""
