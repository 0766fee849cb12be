"""The formats: each is a function that converts a run to the text of a file.

All text is made harmless first: XML 1.0 has no control characters, and they must not affect a terminal or a log reader.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final
from xml.sax.saxutils import escape, quoteattr

from torch_compat.escapes import escaped
from torch_compat.report.machine.entries import ERROR, WARNING
from torch_compat.report.release.to_md import plain
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch_compat.report.machine.entries import CommandReport, FindingEntry

__all__ = ["FORMS", "github", "json_lines", "junit", "sarif", "summary"]

LONGEST: Final = 2000
"""Maximum length of one message, in characters."""
MOST_ANNOTATIONS: Final = 50
"""GitHub shows ten annotations per level in each step, and fifty in each job. The last one says how many are missing."""
MOST_OF_A_SUMMARY: Final = 1024 * 1024
"""Maximum size of a step summary in bytes; GitHub rejects longer ones completely."""
SARIF_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def _said(text: str) -> str:
    line = escaped(text[: LONGEST + 1])
    return line if len(text) <= LONGEST else f"{line[:LONGEST]}…"


def _message(entry: FindingEntry) -> str:
    accepted = f" (accepted: {entry.accepted})" if entry.accepted else ""
    return _said(f"{entry.count} × {entry.text}{accepted}")


# ------------------------------------------------------------------------------------------------------------------- JUnit


def junit(run: CommandReport) -> str:
    """JUnit XML: a suite for each rule; in it, a case for each reader with a finding, and one for the rule as a whole."""
    suites: dict[str, list[FindingEntry]] = {rule: [] for rule in run.rules}
    for entry in run.entries:
        suites.setdefault(entry.rule, []).append(entry)
    lines, sums = [], [0, 0, 0]
    for rule, entries in suites.items():
        cases = list(_cases(run, rule, entries))
        counts = [len(cases), sum("<failure" in case for case in cases), sum("<skipped" in case for case in cases)]
        sums = [item + other for item, other in zip(sums, counts, strict=True)]
        lines.append(
            f'  <testsuite name={_quoted(rule)} tests="{counts[0]}" failures="{counts[1]}" errors="0" skipped="{counts[2]}">'
        )
        lines += [*cases, "  </testsuite>"]
    head = f'<testsuites name={_quoted(run.title)} tests="{sums[0]}" failures="{sums[1]}" errors="0" skipped="{sums[2]}">'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *lines, "</testsuites>"]) + "\n"


def _cases(run: CommandReport, rule: str, entries: list[FindingEntry]) -> Iterator[str]:
    about_readers = any(entry.readers for entry in entries)
    by_reader: dict[str, list[FindingEntry]] = {reader: [] for reader in ("all", *(run.readers if about_readers else ()))}
    for entry in entries:
        for reader in entry.readers or ("all",):
            by_reader.setdefault(reader, []).append(entry)
    for reader, result in by_reader.items():
        failed = [_case_line(entry) for entry in result if entry.level == ERROR]
        unknown = [_case_line(entry) for entry in result if entry.level == WARNING]
        known = [_case_line(entry) for entry in result if entry.level not in {ERROR, WARNING}]
        inner = ""
        if failed:
            inner = f"<failure message={_quoted(count_of(len(failed), 'finding'))}>{escape(_body(failed))}</failure>"
        elif rule in run.unasked:
            inner = f"<skipped message={_quoted(run.unasked[rule])}/>"
        elif unknown:
            inner = f"<skipped message={_quoted(f'not checked: {unknown[0]}')}/>"
        out = f"<system-out>{escape(_body(known))}</system-out>" if known else ""
        yield f"    <testcase classname={_quoted(rule)} name={_quoted(reader)}>{inner}{out}</testcase>"


def _case_line(entry: FindingEntry) -> str:
    return f"{_said(entry.id)}: {_message(entry)}" + (f" [{_said(entry.command)}]" if entry.command else "")


def _body(lines: list[str]) -> str:
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return quoteattr(_said(text))


# ------------------------------------------------------------------------------------------------------------------- SARIF


def sarif(run: CommandReport) -> str:
    """SARIF 2.1.0: a result for each finding; accepted findings are suppressed, with the reason."""
    rules = sorted({*run.rules, *(entry.rule for entry in run.entries)})
    results = []
    for entry in run.entries:
        result: dict[str, Any] = {
            "ruleId": entry.rule,
            "ruleIndex": rules.index(entry.rule),
            "level": entry.level,
            "message": {"text": _message(entry)},
            "partialFingerprints": {"torchCompatId/v1": _said(entry.id)},
            "properties": {
                "verdict": entry.verdict,
                "count": entry.count,
                "readers": list(entry.readers),
                "command": _said(entry.command),
            },
        }
        if entry.file:
            absolute = entry.file.startswith("/")
            artifact = {"uri": f"file://{_uri(entry.file)}"} if absolute else {"uri": _uri(entry.file), "uriBaseId": "SRCROOT"}
            result["locations"] = [{"physicalLocation": {"artifactLocation": artifact}}]
        if entry.accepted:
            result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": _said(entry.accepted)}]
        results.append(result)
    driver = {
        "name": "torch-compat",
        "rules": [{"id": rule, "shortDescription": {"text": _said(run.rules.get(rule) or rule)}} for rule in rules],
    }
    document = {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "originalUriBaseIds": {"SRCROOT": {"description": {"text": "root of the repository"}}},
                "invocations": [{"executionSuccessful": run.exit_status in {0, 1, 4}, "exitCode": run.exit_status}],
                "results": results,
                "properties": {"title": run.title, "as_of": run.as_of, "evidence": run.evidence, "totals": run.totals},
            }
        ],
    }
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def _uri(path: str) -> str:
    """A relative reference, with everything but plain characters percent-encoded."""
    plain = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/+")
    return "".join(
        encoder if encoder in plain else "".join(f"%{byte:02X}" for byte in encoder.encode("utf-8", "replace"))
        for encoder in path
    )


# ------------------------------------------------------------------------------------------------------------------ GitHub


def github(run: CommandReport) -> str:
    """Workflow commands: when printed in a step of GitHub Actions, they are shown next to the files."""
    results = [*run.of(ERROR), *run.of(WARNING)]
    lines = [_annotation(entry) for entry in results[: MOST_ANNOTATIONS - 1]]
    if len(results) >= MOST_ANNOTATIONS:
        lines.append(
            f"::warning title=torch-compat::{len(results) - MOST_ANNOTATIONS + 1} more are not annotated; see the report"
        )
    lines.append(f"::notice title={_property(run.title)}::{_data(_totals(run))}")
    return "\n".join(lines) + "\n"


def _annotation(entry: FindingEntry) -> str:
    place = f"file={_property(entry.file)}," if entry.file else ""
    return f"::{entry.level} {place}title={_property(entry.rule)}::{_data(_message(entry))}"


def _data(text: str) -> str:
    return _said(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _totals(run: CommandReport) -> str:
    totals = ", ".join(f"{count} {verdict}" for verdict, count in run.totals.items() if count)
    return f"{totals or 'nothing was found'}; exit status {run.exit_status}"


def summary(run: CommandReport) -> str:
    """Markdown within the size limit of a step summary: totals, what is broken, what was not checked, and then everything else."""
    lines = [f"## {plain(run.title)}", "", f"{plain(_totals(run))}; as of {run.as_of}; evidence {run.evidence[:12]}"]
    for level, title in ((ERROR, "Broken"), (WARNING, "Not checked")):
        result = run.of(level)
        if result:
            lines += ["", f"### {title} ({len(result)})", "", *(f"- {plain(_message(entry))}" for entry in result)]
    text = "\n".join([*map(escaped, lines), "", run.markdown])
    if len(text.encode()) <= MOST_OF_A_SUMMARY:
        return text
    note = "\n\nThe rest is left out: a step summary has at most 1 MiB.\n"
    kept = text.encode()[: MOST_OF_A_SUMMARY - len(note)].decode("utf-8", "ignore").rpartition("\n")[0]
    return kept + note


# -------------------------------------------------------------------------------------------------------------- JSON Lines


def json_lines(run: CommandReport) -> str:
    """One JSON object on each line: first the run, then its entries; schemas/run-lines.schema.json describes both."""
    head = {
        "kind": "run",
        "schema_version": 1,
        "title": run.title,
        "as_of": run.as_of,
        "evidence": run.evidence,
        "exit_status": run.exit_status,
        "totals": run.totals,
        "entries": len(run.entries),
    }
    lines: list[dict[str, Any]] = [
        head,
        *({"kind": "entry", **asdict(entry)} for entry in run.entries),
    ]
    return "".join(json.dumps(line, sort_keys=True) + "\n" for line in lines)


FORMS: Final[dict[str, Callable[[CommandReport], str]]] = {
    "junit": junit,
    "sarif": sarif,
    "github": github,
    "summary": summary,
    "jsonl": json_lines,
}
"""All machine-readable formats, keyed by name on the command line."""
