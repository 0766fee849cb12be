"""Printing the results of a reader next to the recorded ones."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from torch_compat.cli._output import print_json, stdout
from torch_compat.corpus.manifest import SYNTHETIC
from torch_compat.readers.isolation import isolation
from torch_compat.readers.reference import NAME
from torch_compat.replay.reproduced import compared_rows, deprecation_rows, rows_status
from torch_compat.words import count_of

if TYPE_CHECKING:
    from torch_compat.corpus.observations import ObservedReader
    from torch_compat.judging.evidence import Evidence
    from torch_compat.readers.isolation import Isolation
    from torch_compat.replay.recording import ObservedRelease

__all__ = ["print_all", "print_deprecations", "print_reading"]


def print_reading(reading: ObservedRelease, *, show: bool, format_: str) -> int:
    """Print the results of querying a release, and return the exit status."""
    if reading.asked:
        return print_all(reading.evidence, reading.reader, show=show, format_=format_, fence=isolation())
    if format_ == "json":
        _print_document(reading.reader, [], [], [], None)
    else:
        stdout().print(f"{reading.reader.name}: nothing is missing", markup=False)
    return 0


def print_all(evidence: Evidence, fresh: ObservedReader, *, show: bool, format_: str, fence: Isolation | None = None) -> int:
    """Print a reader's results next to the recorded ones, and return the exit status; ``fence`` is the isolation of a queried release."""
    rows, probes, deprecations = compared_rows(evidence, fresh)
    if format_ == "json":
        _print_document(fresh, rows, probes, deprecations, fence)
    else:
        if rows:
            _print(rows, fresh, show)
        for row in probes:
            _print_odd("probe", row)
        _print_deprecation_rows(deprecations, fresh.name)
    return rows_status([*rows, *probes, *deprecations])


def print_deprecations(reading: ObservedRelease, *, show: bool, format_: str) -> int:
    """Print only what a release said about deprecations, and return the exit status."""
    rows = deprecation_rows(reading.evidence, reading.reader)
    if format_ == "json":
        _print_document(reading.reader, [], [], rows, isolation())
    else:
        if show:
            _show(reading.reader)
        _print_deprecation_rows(rows, reading.reader.name)
    return rows_status(rows)


def _print_document(
    reader: ObservedReader,
    cells: list[dict[str, Any]],
    probes: list[dict[str, Any]],
    deprecations: list[dict[str, Any]],
    fence: Isolation | None,
) -> None:
    print_json(
        {
            "reader": reader.name,
            "identity": reader.identity,
            "observed": reader.observed,
            "isolation": None if fence is None else fence.as_json(),
            "cells": cells,
            "probes": probes,
            "deprecations": deprecations,
        }
    )


def _print_odd(what: str, row: dict[str, Any]) -> None:
    """Print a line for a probe or a deprecation that differs from its record."""
    if row["reproduced"] is not True:
        state = "is not recorded" if row["reproduced"] is None else "differs from the record"
        stdout().print(f"{what} {row['probe']} {state}", markup=False)


def _print_deprecation_rows(rows: list[dict[str, Any]], reader: str) -> None:
    """Print one line per difference from the records, and one for all; nothing if no deprecation was checked."""
    for row in rows:
        _print_odd("deprecation", row)
    if rows:
        agree = sum(row["reproduced"] is True for row in rows)
        stdout().print(
            f"{reader}: {agree} of {count_of(len(rows), 'deprecation matches', 'deprecations match')} the record", markup=False
        )


def _show(fresh: ObservedReader) -> None:
    """Print everything that a reader said about each deprecation."""
    console = stdout()
    for name, item in sorted(fresh.deprecations.items()):
        console.print(f"{name} in {fresh.name}", markup=False, style="bold")
        for way, use in (("deprecated", item.deprecated), ("alternative", item.alternative)):
            behaves = f", behaves as {use.behaves}" if use.behaves else ""
            error = f": {use.error['type']}: {use.error['message']}" if use.error else ""
            console.print(f"  {way}: {use.outcome}{behaves}{error}", markup=False, soft_wrap=True)
            for category, text in use.warnings:
                console.print(f"    {category}: {text}", markup=False, soft_wrap=True)
            if use.said:
                console.print(f"    said: {use.said}", markup=False, soft_wrap=True)
        if item.docs is None:
            console.print("  no documentation", markup=False)
        for sentence in item.docs or ():
            console.print(f"  documentation: {sentence}", markup=False, soft_wrap=True)


def _print(rows: list[dict[str, Any]], fresh: ObservedReader, show: bool) -> None:

    console = stdout()
    for row in rows:
        if show or row["reproduced"] is False:
            _print_row(console, row, fresh.name)
    outcomes = Counter(row["outcome"] for row in rows)
    console.print(
        f"{fresh.name}: " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())), markup=False
    )
    agree = sum(row["reproduced"] is True for row in rows)
    contradict = sum(row["reproduced"] is False for row in rows)
    missing = sum(row["recorded"] is None for row in rows)
    unknown = sum(row["reproduced"] is None for row in rows) - missing
    remarks = sum(bool(row["remark"]) and row["reproduced"] is True for row in rows)
    text = f"{agree} as recorded"
    text += f" ({remarks} with a note; see --show)" if remarks else ""
    text += f", {contradict} different from the record" if contradict else ""
    text += f", {missing} not recorded" if missing else ""
    text += f", {unknown} not checked, because the reference reader does not support them" if unknown else ""
    console.print(text, markup=False)


def _print_row(console: Any, row: dict[str, Any], reader: str) -> None:
    options = "" if row["options"] == "default" else f" ({row['options']})"
    ending = f", {row['signal']} while {'loading' if row['stage'] == 'load' else 'running'}" if row["signal"] else ""
    console.print(f"{row['fixture']} read by {reader}{options}: {row['outcome']}{ending}", markup=False, style="bold")
    if row["remark"]:
        console.print(f"  {row['remark']}", markup=False)
    for error in row["errors"]:
        lines = error["message"].splitlines() or [""]
        console.print(f"  {error['type']}: {lines[0]}", markup=False)
        for line in lines[1:12]:
            console.print(f"    {line}", markup=False)
    wrote, reads = (f"torch {name.removeprefix('torch-').partition('/')[0]}" for name in (row["fixture"], reader))
    if reader == NAME:
        reads = "the reference reader"
    for difference in row["differences"]:
        facts = {key: value for key, value in difference.items() if key not in {"kind", "where", "dtype", "frontier"}}
        dtype = f" ({difference['dtype']})" if "dtype" in difference else ""
        parts = []
        if "expected" in facts and "got" in facts:
            wrote_it = "the format's rules say" if row["fixture"].startswith(f"{SYNTHETIC}/") else f"{wrote} wrote"
            parts = [f"{wrote_it} {json.dumps(facts.pop('expected'))}; {reads} computes {json.dumps(facts.pop('got'))}"]
        parts += [f"{key} {json.dumps(value)}" for key, value in facts.items()]
        shown = ", ".join(parts)
        line = f"  {difference['where']}: {difference['kind']}{dtype}" + (f": {shown}" if shown else "")
        console.print(line, markup=False, soft_wrap=True)
    more = row["difference_count"] - len(row["differences"])
    if more > 0:
        console.print(f"  and {more} more", markup=False)
