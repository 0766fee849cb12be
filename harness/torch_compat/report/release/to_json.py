"""A release report as JSON, in the form of harness/torch_compat/schemas/release-report.schema.json."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from torch_compat.report.release.words import TITLES

if TYPE_CHECKING:
    from torch_compat.report.release.items import ReleaseItem
    from torch_compat.report.release.report import ReleaseReport

__all__ = ["item_json", "release_json"]


def release_json(report: ReleaseReport) -> dict[str, Any]:
    """The document that ``torch-compat report --format json`` prints."""
    return {
        "release": report.release,
        "since": report.since,
        "day": report.day,
        "as_of": report.as_of,
        "evidence": report.evidence,
        "exit_status": report.exit_status,
        "compared": report.compared,
        "counts": {str(section): len(report.of(section)) for section in TITLES},
        "items": [item_json(item) for item in report.items],
        "running": [asdict(running) for running in report.running],
        "not_asked": [{"count": asked.count, "reason": asked.why, "explained": asked.explained} for asked in report.not_asked],
    }


def item_json(item: ReleaseItem) -> dict[str, Any]:
    """One item."""
    shown = item.shown
    return {
        "id": item.id,
        "section": str(item.section),
        "title": item.title,
        "after": item.span.after or None,
        "by": item.span.by,
        "releases": list(item.candidates),
        "disagree": item.disagree,
        "cells": {"newer": item.newer, "older": item.older},
        "archives": sorted(item.archives),
        "operators": list(item.operators),
        "findings": list(item.findings),
        "explained": not item.open,
        "announced_by": item.announced or None,
        "why": list(item.why),
        "do": list(item.advice),
        "example": None
        if shown is None
        else {
            "archive": shown.fixture,
            "options": shown.options,
            "before": shown.before,
            "after": shown.after,
            "command": shown.command,
        },
        "records": [
            {
                "source": part.source,
                "after": part.span.after or None,
                "by": part.span.by,
                "says": part.says,
                "names": list(part.names),
            }
            for part in item.parts
        ],
    }
