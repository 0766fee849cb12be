"""A small root of deprecations with generated evidence: every kind, kept, violated and waived, late, pending, unclear and planned.

Its releases do exactly what the deprecation files say, so nothing fails in it, except for planted defects.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.recordings import folder_of
from torch_compat.corpus.corpus import load_deprecations
from torch_compat.corpus.deprecations import DeprecationObservation, Use
from torch_compat.corpus.observations import ObservedReader
from torch_compat.corpus.recorded import write_recorded
from torch_compat.judging.counting import count, write_lock
from torch_compat.judging.evidence import deprecation_key
from torch_compat.policy import load_policy
from torch_compat.workspace import Root

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch_compat.policy import Policy
    from torch_compat.policy.deprecations import Deprecation

__all__ = ["DEPRECATIONS", "FIRST", "GAP", "LINES", "OBSERVED", "day_of", "make_deprecated_tree", "policy_file", "write_evidence"]

REPOSITORY = Path(__file__).parents[1]
FIRST: Final = dt.date(2020, 1, 1)
GAP: Final = 100  # days from line to line: two lines are 200 days, one is 100
LINES: Final = 12
OBSERVED: Final = dt.date(2023, 6, 1)
RULES: Final = (
    "deprecations-timeline", "deprecations-overdue", "deprecations-documented", "deprecations-evidence", "deprecations-observed",
    "waivers-exact",
)  # fmt: skip


@dataclass(frozen=True)
class Made:
    """A deprecation to be written.

    Attributes:
        events: what and in which line, in order.
        docs: in which line the documentation begins to hold which words.
        more: further lines of the file.
        crashes: lines in which the probe crashes.
    """

    kind: str
    events: Sequence[tuple[str, int]]
    docs: Sequence[tuple[int, str]]
    silent: bool = False
    more: str = ""
    crashes: frozenset[int] = field(default_factory=frozenset)


DEPRECATIONS: Final[dict[str, Made]] = {
    "mode": Made(
        "mode-change",
        (("alternative", 2), ("warned", 2), ("removed", 4), ("restored", 6)),
        ((2, "deprecated"), (4, "was removed"), (6, "was restored")),
        silent=False,
    ),
    "keyword": Made("keyword-only", (("warned", 3), ("error", 5)), ((3, "keyword-only"),)),
    "function": Made("removal", (("warned", 1), ("error", 4), ("removed", 6)), ((1, "deprecated"),)),
    "name": Made("rename", (("alternative", 1), ("warned", 2), ("removed", 4)), ((2, "deprecated"),)),
    "default": Made(
        "default-change", (("warned", 2), ("error", 4), ("switched", 6)), ((2, "deprecated"), (4, "must be given"), (6, "changed")),
        silent=True,
    ),
    "behaviour": Made("behaviour-change", (("warned", 5), ("switched", 8)), ((5, "will change"), (8, "changed"))),
    "too-early": Made("removal", (("warned", 6), ("removed", 7)), ((6, "deprecated"),)),
    "long-ago": Made("removal", (("warned", 0), ("removed", 1)), ()),
    "pending": Made("removal", (("warned", 9),), ((9, "deprecated"),), more='announced = { release = "1.12.0", text = "in 1.12" }\n'),
    "late": Made("removal", (("warned", 2), ("removed", 6)), ((2, "deprecated"),), more='announced = { release = "1.4.0", text = "in 1.4" }\n'),
    "unclear": Made(
        "removal", (("warned", 3), ("removed", 9)), ((3, "deprecated"),),
        more='unclear = [{ readers = "1.0.0..1.1.0", why = "the probe crashes there" }]\n', crashes=frozenset({0, 1}),
    ),
    "planned": Made("removal", (("warned", 10), ("removed", 13)), ((10, "deprecated"),)),
}  # fmt: skip
WAIVED: Final = {
    "early-and-known": "deprecations-timeline:too-early:too-early/removed@1.7.0",
    "late-and-known": "deprecations-overdue:too-long:late@1.4.0",
}


def day_of(line: int) -> dt.date:
    return FIRST + dt.timedelta(days=GAP * line)


def make_deprecated_tree(root: Path) -> None:
    """Make the root, with everything that judging its deprecations needs."""
    policy = root / "policies" / "torch"
    for name in ("deprecations", "waivers"):
        (policy / name).mkdir(parents=True)
    (root / "fixtures" / "deprecations").mkdir(parents=True)
    (policy / "releases.toml").write_text("\n".join(_release(line) for line in range(LINES)), encoding="utf-8")
    shutil.copytree(REPOSITORY / "policies" / "examples", root / "policies" / "examples")
    timelines = (REPOSITORY / "policies" / "torch" / "timelines.toml").read_text(encoding="utf-8")
    plans = "".join(
        f'[[release]]\nversion = "1.{line}.0"\ndate = {day_of(line)}\nsource = "a plan"\n\n' for line in range(LINES, LINES + 3)
    )
    (policy / "timelines.toml").write_text(timelines.partition("[[release]]")[0] + plans, encoding="utf-8")
    (policy / "promises.toml").write_text(_promises(), encoding="utf-8")
    for name, deprecation in DEPRECATIONS.items():
        (policy / "deprecations" / f"{name}.toml").write_text(policy_file(name, deprecation), encoding="utf-8")
        probe = f'"""Uses {name}."""\nimport torch\n\nSUBJECT = "torch.{_probe(name)}"\nSINCE = "1.0.0"\n\n\n'
        probe += "def deprecated():\n    return 1\n\n\ndef alternative():\n    return 1\n"
        (root / "fixtures" / "deprecations" / f"{_probe(name)}.py").write_text(probe, encoding="utf-8")
    for name, finding in WAIVED.items():
        text = f'[waiver]\nid = "{name}"\ntitle = "It is known"\nfindings = ["{finding}"]\nreason = "so"\nevidence = "seen"\nowner = "us"\n'
        (policy / "waivers" / f"{name}.toml").write_text(text, encoding="utf-8")
    write_evidence(root, load_policy(policy, counted=False))
    place = Root(root)
    write_lock(place, count(place, accepting=True))


def _release(line: int) -> str:
    return f'[[release]]\nversion = "1.{line}.0"\ndate = {day_of(line)}\npythons = ["3.8"]\ninstall = "whole"\nnumpy = "<2"\n'


def _promises() -> str:
    stated = (REPOSITORY / "policies" / "torch" / "promises.toml").read_text(encoding="utf-8")
    profiles = "profiles = [" + stated.partition("profiles = [")[2].partition("\n]\n")[0] + "\n]\n"
    rules = "".join(f'[[rule]]\nid = "{rule}"\nasks = "It holds."\nsource = "here"\n\n' for rule in RULES)
    return (
        f'[policy]\nname = "small"\nin_force_from = {day_of(2)}\nforward_window_days = 14\n'
        f'lines = "newest-patch"\nsettled = {day_of(LINES)}\n{profiles}\n'
        '[[options]]\nid = "default"\nfamilies = ["torch-save"]\n\n'
        '[[format]]\nkind = "file-format"\nversion = 1\nmeaning = "so"\nread_from = { release = "1.0.0" }\n'
        'written_from = { release = "1.0.0" }\n\n' + rules
    )


def _probe(name: str) -> str:
    return name.replace("-", "_")


def policy_file(name: str, value: Made) -> str:
    """The file of a deprecation."""
    text = json.dumps
    lines = [
        "[deprecation]",
        f'id = "{name}"',
        f"subject = {text('torch.' + _probe(name))}",
        f'kind = "{value.kind}"',
        f"silent = {str(value.silent).lower()}",
        'alternative = "torch.other"',
        f"warning = {text(name + ' is deprecated')}",
        f"error = {text(name + ' is gone')}",
        f'probe = "{_probe(name)}"',
    ]
    body = "\n".join(lines) + "\n" + value.more
    for what, line in value.events:
        body += f'\n[[deprecation.events]]\nwhat = "{what}"\nrelease = "1.{line}.0"\n'
    for line, words in value.docs:
        body += f'\n[[deprecation.docs]]\nrelease = "1.{line}.0"\nholds = "{words}"\n'
    return body


def write_evidence(root: Path, policy: Policy) -> None:
    """Let every release of the corpus do what the files of the deprecations say."""
    probes = load_deprecations(root / "fixtures").deprecations
    readers = []
    for line, version in enumerate(policy.corpus.readers):
        name = f"torch-{version}"
        reader = ObservedReader(name, {"torch": version}, OBSERVED.isoformat(), 1, {}, {})
        for probe in probes:
            deprecation = next(item for item in policy.deprecations if item.probe == probe.name)
            key = deprecation_key(probe.sha256, reader)
            reader.deprecations[probe.name] = _observed(deprecation, DEPRECATIONS[deprecation.id], key, line)
        readers.append(reader)
    write_recorded(folder_of(root), readers)


def _observed(deprecation: Deprecation, value: Made, key: str, line: int) -> DeprecationObservation:
    by_then = [what for what, at in value.events if at <= line and what != "alternative"]
    there = all(at <= line for what, at in value.events if what == "alternative")
    state = "crashed" if line in value.crashes else by_then[-1] if by_then else ""
    changes = value.kind in {"mode-change", "default-change", "behaviour-change"}
    held = [words for at, words in value.docs if at <= line]
    gone = state == "removed" and value.kind in {"removal", "rename"}
    return DeprecationObservation(
        deprecation.probe,
        key,
        _use(deprecation, state, changes=changes),
        Use("worked", behaves="new" if changes else None)
        if there
        else Use("lacks", error={"type": "lacks", "message": "torch.other"}),
        None if gone else (f"It {held[-1]} since 1.{line}.",) if held else (),
    )


def _use(deprecation: Deprecation, state: str, *, changes: bool) -> Use:
    old: Any = "old" if changes else None
    if state == "crashed":
        return Use("crashed", error={"type": "SIGSEGV", "message": ""})
    if state == "warned":
        return Use("worked", (("UserWarning", f"{deprecation.warning}; use torch.other."),), behaves=old)
    if state == "removed" and deprecation.kind in {"removal", "rename"}:
        return Use("lacks", error={"type": "lacks", "message": deprecation.subject})
    if state in {"error", "removed"}:
        return Use("raised", error={"type": "RuntimeError", "message": str(deprecation.error)})
    return Use("worked", behaves="new" if state in {"switched", "restored"} else old)


def digest_of(root: Path) -> str:
    """SHA-256 of every file of a root, to see that nothing changed."""
    total = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        total.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return total.hexdigest()
