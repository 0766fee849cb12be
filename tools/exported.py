"""``python tools/exported.py FOLDER [--programs DIR] [--writer X ...] [--only NAME ...] [--cross]``: compare exported programs with releases.

Each writer (a locally built release) exports every recipe of family ``export`` in DIR (default: ``fixtures/awaiting``) in one process,
loads the archives again and calls them; with ``--cross`` it also loads those of all other writers. Results of releases are kept in FOLDER and
reused. The reference reader then runs each archive at the horizon of that release, and the results are compared: right; rounded, if
only numbers of a chain of float32 operators differ by more than the policy's tolerance for one operator (see tools/programs.py); lacking,
if the reference reader does not support a feature; wrong. The last line counts the right ones that are equal bit for bit.

The programs run without isolation: use only your own recipes. Exit status 1 if a cell is wrong or lacking, 4 if nothing was compared.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from torch_compat.errors import ArchiveError, Unsupported
from torch_compat.formats.facts import read_facts
from torch_compat.policy import Policy, load_policy
from torch_compat.readers.environments import Environments
from torch_compat.readers.torch_release import DETERMINISM
from torch_compat.runtime.encoding import perform
from torch_compat.values.compare import Comparison, compare, distances

sys.path.insert(0, str(Path(__file__).resolve().parent))
from programs import rounded  # type: ignore[import-not-found]

REPOSITORY = Path(__file__).resolve().parents[1]
WORKER = REPOSITORY / "harness" / "torch_compat" / "inside" / "worker.py"
FAMILY, EXACT = "export", "to the last bit"
WRITERS = ("2.1.2", "2.4.1", "2.6.0", "2.8.0", "2.9.1", "2.13.0", "2.15.0")
CHILD = r"""
import json, os, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import worker, torch
tasks = json.load(sys.stdin)
torch.set_num_threads(1)
def said(error):
    return {"type": type(error).__name__, "message": str(error)[:2000]}
def write(task):
    torch.manual_seed(0)
    recipe = worker.run_file(task["recipe"], task["name"])
    calls = [{"method": m, "args": worker.Encoder(torch).encode(tuple(a))["tuple"]} for m, a in recipe.calls()]
    worker.write(torch, recipe, recipe.build(), task["path"])
    return {"calls": calls}
def read(task):
    return {"calls": task["calls"], "result": worker.perform(torch, "export", lambda: worker.load(torch, "export", task["path"], {}), task["calls"])}
def forked(function, task):
    # in a process of its own: an operator that a recipe registers is not there when its archive is read
    source, sink = os.pipe()
    process = os.fork()
    if not process:
        try:
            try:
                answer = function(task)
            except BaseException as error:
                answer = {"error": said(error)}
            with os.fdopen(sink, "w") as stream:
                json.dump(answer, stream)
        finally:
            os._exit(0)
    os.close(sink)
    with os.fdopen(source) as stream:
        text = stream.read()
    os.waitpid(process, 0)
    return json.loads(text) if text else {"error": {"type": "Crashed", "message": "the process died"}}
try:  # what an export imports is imported before the processes are forked, in which half of the time would go to it
    import torch.export, torch._dynamo
    torch.export.export(torch.nn.Linear(2, 2), (torch.zeros(1, 2),)).module()
except Exception:
    pass
with open(sys.argv[2], "a") as out:
    for task in tasks:
        answer = forked(write, task) if "recipe" in task else {"calls": task["calls"]}
        if "error" in answer:
            result = {"not_writable": answer["error"]}
        else:
            result = forked(read, dict(task, calls=answer["calls"]))
            if "error" in result:
                result = {"calls": answer["calls"], "result": {"error": dict(result["error"], stage="load")}}
        out.write(json.dumps(dict(result, id=task["id"])) + "\n")
        out.flush()
"""


def asked(folder: Path, version: str, tasks: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The results of a release for these tasks, by id; only tasks without results in FOLDER are run."""
    kept = folder / f"torch-{version}" / "results.jsonl"
    kept.parent.mkdir(parents=True, exist_ok=True)
    known = {item["id"]: item for item in map(json.loads, kept.read_text().splitlines())} if kept.exists() else {}
    missing = [task for task in tasks if task["id"] not in known]
    environment = Environments().get(version)
    if missing and environment is not None:
        command = [str(environment.python), "-c", CHILD, str(WORKER), str(kept)]
        environ = environment.environ(DETERMINISM)  # as the corpus is recorded: with AVX2 vectors
        done = subprocess.run(
            command, input=json.dumps(missing), text=True, capture_output=True, check=False, cwd=kept.parent, env=environ
        )
        if done.returncode:
            print(f"torch-{version} ended with {done.returncode}: {done.stderr[-2000:]}", file=sys.stderr)
        known = {item["id"]: item for item in map(json.loads, kept.read_text().splitlines())}
    return known


def held(path: Path, task: dict[str, Any], horizon: str, policy: Policy) -> tuple[str, str]:
    """The verdict on the reference reader, with a text; for a right result, whether it is equal bit for bit."""
    try:
        got = perform(path, FAMILY, task["calls"], f"reference@{horizon}")
    except Unsupported as error:
        return "lacking", f"{error.code}: {error.message}"
    except ArchiveError as error:
        got = {"error": {"stage": "load", "type": error.code, "message": str(error)}}
    expected = task["result"]
    result = compare(expected, got)
    if result.result == "same":
        return "right", EXACT
    if result.result == "differs" and _close(path, expected, got, result, policy):
        return "right", ""
    if result.result == "differs" and rounded(expected, got):
        return "rounded", ""
    first = result.differences[0] if result.differences else None
    errors = [json.dumps(item)[:300] for item in (*result.errors, *([got["error"]] if "error" in got else []))]
    shown = f"{first.kind} in {first.where}: {json.dumps(dict(first.facts))[:200]}" if first else ""
    failed = [call["first"]["error"]["message"][:150] for call in expected.get("calls", ()) if "error" in call["first"]]
    return "wrong", f"{result.result} {shown} {'; '.join(errors)} {('release: ' + '; '.join(failed)) if failed else ''}"


def _close(path: Path, expected: dict[str, Any], got: dict[str, Any], comparison: Comparison, policy: Policy) -> bool:
    """Whether all differences are within the tolerance of one operator of the program, as for the corpus."""
    extent = [item for item in comparison.extent if not policy.disregards(item["kind"], FAMILY)]
    if any(item["kind"] != "value" for item in extent):
        return False
    operators = sorted({call.name for call in read_facts(path).calls})
    allowed = {item["dtype"]: policy.tolerance(FAMILY, operators, item["dtype"]) for item in extent}
    return all(
        (tolerance := allowed[distance.dtype]) is not None and tolerance.covers(distance)
        for distance in distances(expected, got)
        if distance.dtype in allowed
    )


def main() -> int:
    """Write, read and compare; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="directory for archives and results")
    parser.add_argument("--programs", type=Path, default=REPOSITORY / "fixtures" / "awaiting", help="directory with recipes")
    parser.add_argument("--writer", action="append", metavar="X", help=f"can be repeated; default: {', '.join(WRITERS)}")
    parser.add_argument("--only", action="append", metavar="NAME", help="compare only this recipe; can be repeated")
    parser.add_argument("--cross", action="store_true", help="let each writer also load the archives of all other writers")
    options = parser.parse_args()
    folder = options.folder.resolve()
    recipes = [path for path in sorted(options.programs.glob("*.py")) if '\nFAMILY = "export"\n' in path.read_text()]
    counts: dict[str, Counter[str]] = {}
    policy = load_policy(REPOSITORY / "policies" / "torch")
    exact = 0
    versions = options.writer or list(WRITERS)
    written = {version: asked(folder, version, _tasks(folder, version, recipes)) for version in versions}
    for version in versions:
        for writer in versions if options.cross else [version]:
            tasks = [
                {**task, "id": f"{writer}/{name}", "path": str(folder / f"torch-{writer}" / f"{name}.pt2")}
                for name, task in written[writer].items()
                if "calls" in task and "/" not in name
            ]
            done = written[writer] if writer == version else asked(folder, version, tasks)
            for task in tasks:
                name = task["id"].partition("/")[2]
                if options.only and name not in options.only:
                    continue
                item = done.get(name if writer == version else task["id"])
                if item is None:
                    continue
                ended, text = held(Path(task["path"]), item, version, policy)
                exact += text == EXACT
                counts.setdefault(f"{writer} read by {version}", Counter())[ended] += 1
                if ended in {"wrong", "lacking"}:
                    print(f"{ended}: {name} of {writer} read by {version}: {text}")
        refused = {name: entry["not_writable"] for name, entry in written[version].items() if "not_writable" in entry}
        counts.setdefault(f"{version} read by {version}", Counter())["not writable"] += len(refused)
        for name, error in refused.items():
            print(f"not writable: {name} by {version}: {error['type']} {error['message'][:160]!r}")
    for place, result in counts.items():
        print(f"{place}: {', '.join(f'{count} {kind}' for kind, count in sorted(result.items()))}")
    total = sum(counts.values(), Counter())
    if not total:
        return 4
    print(f"of the {total['right']} right cells, {exact} are equal to the last bit")
    return int(bool(total["wrong"] or total["lacking"]))


def _tasks(folder: Path, version: str, recipes: list[Path]) -> list[dict[str, Any]]:
    place = folder / f"torch-{version}"
    return [
        {"id": recipe.stem, "recipe": str(recipe.resolve()), "name": recipe.stem, "path": str(place / f"{recipe.stem}.pt2")}
        for recipe in recipes
    ]


if __name__ == "__main__":
    os.nice(5)
    sys.exit(main())
