"""Rules: promises, checked against evidence. One rule per file; parameters, tolerances and waivers are policy."""
