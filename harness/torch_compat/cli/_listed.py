"""The list in ``torch-compat --help``: every command with its description, and the exit status."""

from __future__ import annotations

__all__ = ["COMMANDS", "EPILOG"]

COMMANDS = {
    "replay": "Load fixtures with the selected readers, judge the results, and print a report (the main job).",
    "inspect": "Identify archives, their contents, and the releases that can load them.",
    "run": "Run a TorchScript, mobile or exported program, without torch or with a real release.",
    "judge": "Check the recorded observations against the policy.",
    "report": "List what changed in a release: breaks, deprecations and fixes.",
    "notes": "Draft the compatibility notes for a release from recorded observations.",
    "signoff": "Sign off on a release based on recorded evidence, or verify a sign-off.",
    "candidate": "Compare a build of torch with the newest release.",
    "accept": "Check what waivers cover, show changes, and update the lock files.",
    "observe": "Load fixtures with real releases and compare the results with the recorded ones.",
    "produce": "Write fixtures by running recipes with a real release.",
    "admit": "Add a new release: calendar, environment, fixtures, observations, documents.",
    "operators": "Show operator schemas and their changes, and check changes for breakage.",
    "extension": "Record the operators that an extension uses, and check which releases it is compatible with.",
    "prove": "Prove that an upgrader preserves the results of old programs.",
    "readers": "List, build and remove environments for releases; check for new releases.",
    "deprecations": "Show the state of each deprecation: too early, overdue, or due next.",
    "plan": "Plan a change: print the schedule that keeps every promise.",
    "explain": "Explain a rule, waiver, deprecation or anything else that has an id.",
    "new": "Create a recipe, deprecation, upgrader, rule or waiver from a template.",
}
EPILOG = (
    "Exit status: 0 all promises hold; 1 a promise is broken; 2 invalid usage or an invalid file; 3 internal error in torch-compat; "
    "4 incomplete: a required check could not be run, or there is no checkout to check.\n\n"
    "Only one run writes to a tree at a time. Other runs wait up to TORCH_COMPAT_LOCK_TIMEOUT seconds (default: 600). If a run is killed, "
    "its changes are completed or undone by the next run that writes to the tree."
)
