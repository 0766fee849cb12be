"""Rules: what was promised, held against evidence. One rule per file; parameters, tolerances and waivers are policy."""
