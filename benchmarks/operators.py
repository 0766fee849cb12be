"""What changed in the operators between all releases that follow each other: our recorded history against torch's parser and checks.

Ours begins where a user's question does: with no file open. torch 2.13.0, in a process of its own and imported before the clock runs, is
given the schemas of all releases in memory, those that it can read, and does what its own check of a release against an earlier one does:
it parses them and asks of each earlier schema whether any later one of that name is backward and forward compatible. It is measured three
ways: as its check does it, each pair of releases for itself; parsing each distinct text once for all pairs; and only what differs, which
nobody could tell it but a recorded history. Prints ratios.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

from torch_compat.operators.history import History
from torch_compat.readers.environments import Environments

TORCH = "2.13.0"
TURNS = 5

OURS = """
import json, sys, time
started = time.perf_counter()
from itertools import pairwise
from torch_compat.operators.changes import changes
from torch_compat.operators.history import History
imported = time.perf_counter()
history = History.load()
found = [changes(history, old, new) for old, new in pairwise(history.releases)]
ended = time.perf_counter()
print(json.dumps([ended - started, ended - imported, sum(map(len, found))]))
"""

THEIRS = """
import json, sys, time
import torch

questions = json.load(open(sys.argv[1]))
parse = torch._C.parse_schema


def compare(olds, news):
    by_name = {}
    for schema in news:
        by_name.setdefault(schema.name, []).append(schema)
    broken = 0
    for old in olds:
        backward = forward = False
        for new in by_name.get(old.name, ()):
            try:
                backward = backward or new.is_backward_compatible_with(old)
                forward = forward or new.check_forward_compatible_with(old)[0]
            except IndexError:
                pass
            if backward and forward:
                break
        broken += not backward
    return broken


def each_pair():
    return sum(compare([parse(one) for one in olds], [parse(one) for one in news]) for olds, news in questions["all"])


def each_text_once():
    known = {text: parse(text) for pair in questions["all"] for texts in pair for text in texts}
    return sum(compare([known[one] for one in olds], [known[one] for one in news]) for olds, news in questions["all"])


def differing():
    known = {text: parse(text) for pair in questions["differing"] for texts in pair for text in texts}
    return sum(compare([known[one] for one in olds], [known[one] for one in news]) for olds, news in questions["differing"])


for name in json.loads(sys.argv[2]):
    started = time.perf_counter()
    broken = globals()[name]()
    print(json.dumps([time.perf_counter() - started, broken]), flush=True)
"""
WAYS = {"each_pair": "each pair of releases", "each_text_once": "each text parsed once", "differing": "only what differs"}


def questions(python: str, place: Path, environ: dict[str, str]) -> dict[str, Any]:
    """The schemas of each two releases that follow each other, without those that torch cannot read."""
    history = History.load()
    texts = [text for text, _ in history.texts()]
    (place / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    script = (
        "import json, sys, torch\n"
        "def read(text):\n"
        "    try:\n        torch._C.parse_schema(text)\n        return True\n"
        "    except RuntimeError:\n        return False\n"
        "print(json.dumps([read(text) for text in json.load(open(sys.argv[1]))]))"
    )
    message = subprocess.run(
        [python, "-c", script, place / "texts.json"], check=True, capture_output=True, text=True, env=environ
    ).stdout
    kept = [text for text, good in zip(history.texts(), json.loads(message), strict=True) if good]
    pairs = list(pairwise(history.bit(release) for release in history.releases))
    return {
        "all": [[[text for text, bits in kept if bits & side] for side in pair] for pair in pairs],
        "differing": [[[text for text, bits in kept if bits & (old | new) == side] for side in (old, new)] for old, new in pairs],
        "left": len(texts) - len(kept),
        "releases": len(history.releases),
    }


def main() -> None:
    """Measure and print."""
    environment = Environments().get(TORCH)
    if environment is None:
        print(f"torch-{TORCH} is not built here: nothing to measure (torch-compat readers build torch-{TORCH})")
        sys.exit(4)
    python, environ = str(environment.python), environment.environ()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        asked = questions(python, place, environ)
        (place / "questions.json").write_text(json.dumps(asked), encoding="utf-8")
        (place / "theirs.py").write_text(THEIRS, encoding="utf-8")
        here: list[list[float]] = []
        there: dict[str, list[float]] = {way: [] for way in WAYS}
        for turn in range(TURNS):
            here.append(
                json.loads(subprocess.run([sys.executable, "-c", OURS], check=True, capture_output=True, text=True).stdout)
            )
            ways = list(WAYS) if turn % 2 else list(reversed(WAYS))
            # A process for each way: what one has parsed is not warm for another.
            for way in ways:
                command: list[str | Path] = [python, place / "theirs.py", place / "questions.json", json.dumps([way])]
                message = subprocess.run(command, check=True, capture_output=True, text=True, env=environ).stdout
                there[way].append(json.loads(message)[0])
    whole, without = min(item[0] for item in here), min(item[1] for item in here)
    pairs = len(asked["all"])
    print(
        f"{asked['releases']} releases, {pairs} pairs, {here[0][2]:.0f} changes; torch cannot read {asked['left']} schemas; best of {TURNS}"
    )
    print(f"  ours, from an import on {whole:6.2f} s   (reading and answering {without:.2f} s)")
    for way, text in WAYS.items():
        best = min(there[way])
        print(f"  torch, {text:22} {best:6.2f} s   ratio {whole / best:5.2f}")


if __name__ == "__main__":
    main()
