"""Recorded JSON lines: a header with the kind of file, entries in a fixed order, and a footer that proves the file is complete.

A file that was left half-written by a crash, or edited by hand, is rejected rather than read as a shorter valid file.
"""

from __future__ import annotations

import hashlib
import json
import marshal  # noqa: TID251 - to compare values in one step; never used for loading
import math
from typing import TYPE_CHECKING, Any, NoReturn

from torch_compat.errors import CorpusError
from torch_compat.places import read_whole
from torch_compat.writes import put

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["DECODER", "SCHEMA_VERSION", "digest", "dump", "dump_again", "read_lines", "write_lines"]

SCHEMA_VERSION = 1


_REMEMBERED = 1 << 14  # values whose line is cached
_dumped: dict[bytes, str] = {}
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def dump(value: Any) -> str:
    """Return one canonical line of JSON: sorted keys, no spaces, ASCII."""
    return _CANONICAL.encode(value)


def dump_again(value: Any) -> str:
    """Like :func:`dump`, but encodes equal values only once, for calls and goldens, which are mostly equal across releases."""
    try:
        key = marshal.dumps(value, 2)
    except ValueError:  # nested too deeply for marshal
        return dump(value)
    text = _dumped.get(key)
    if text is None:
        text = dump(value)
        if len(_dumped) < _REMEMBERED:
            _dumped[key] = text
    return text


def digest(*values: Any) -> str:
    """Return the SHA-256 of the canonical JSON of values, in hex."""
    total = hashlib.sha256()
    for value in values:
        total.update(dump(value).encode() + b"\n")
    return total.hexdigest()


def write_lines(path: Path, header: dict[str, Any], entries: Iterable[dict[str, Any]]) -> None:
    """Write a file of JSON lines atomically."""
    lines = [dump({**header, "schema_version": SCHEMA_VERSION}), *(dump(entry) for entry in entries)]
    body = "".join(line + "\n" for line in lines)
    footer = dump({"kind": "end", "lines": len(lines), "sha256": hashlib.sha256(body.encode()).hexdigest()})
    put(path, body + footer + "\n")


def read_lines(path: Path, kind: str) -> tuple[dict[str, Any], list[tuple[int, dict[str, Any]]]]:
    """Read the header and the numbered entries of a file of the given kind.

    Raises:
        CorpusError: it is missing, not a regular file, too large, of another kind, of a newer schema, not JSON lines, or incomplete.
    """
    try:
        body = read_whole(path)
    except FileNotFoundError:
        raise CorpusError("file not found", where=str(path), code="missing-file") from None
    except IsADirectoryError:
        raise CorpusError("is a directory, expected a JSON Lines file", where=str(path), code="missing-file") from None
    except OSError as error:
        raise CorpusError(f"cannot be read: {error.strerror}", where=str(path), code="unreadable-file") from error
    parsed = []
    for number, line in enumerate(body.splitlines(), 1):
        try:
            entry = DECODER.decode(line.decode("ascii"))
        except UnicodeDecodeError as error:
            what = f"contains byte {line[error.start]:#04x} at column {error.start + 1}, expected ASCII, with other characters escaped"
            raise CorpusError(what, where=f"{path}:{number}", code="bad-line") from None
        except (ValueError, RecursionError) as error:
            raise CorpusError(f"is not JSON: {error}", where=f"{path}:{number}", code="bad-line") from error
        if not isinstance(entry, dict) or not isinstance(entry.get("kind"), str):
            raise CorpusError("is not an object with a 'kind'", where=f"{path}:{number}", code="bad-line")
        parsed.append((number, entry))
    if not parsed or parsed[0][1]["kind"] != kind:
        raise CorpusError(f"does not begin with a line of kind {kind!r}", where=f"{path}:1", code="bad-header")
    header = parsed[0][1]
    if header.get("schema_version") != SCHEMA_VERSION:
        raise CorpusError(
            f"has schema version {header.get('schema_version')!r}; this harness reads {SCHEMA_VERSION}",
            where=f"{path}:1",
            hint="use the version of torch-compat that wrote it, or newer",
            code="bad-schema-version",
        )
    _check_footer(path, body, parsed)
    return header, parsed[1:-1]


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f'{text[:40]} is not finite; non-finite numbers must be written as {{"float": "inf"}}')
    return number


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f'{name} is not a JSON number; it must be written as {{"float": "nan"}}')


DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant)
"""Parses recorded JSON, which contains only finite numbers."""


def _check_footer(path: Path, body: bytes, parsed: list[tuple[int, dict[str, Any]]]) -> None:
    footer = parsed[-1][1]
    if footer["kind"] != "end":
        raise CorpusError(
            "does not end with a line of kind 'end'",
            where=str(path),
            hint="a run was interrupted; record these observations again",
            code="not-whole",
        )
    above = body[: body.rstrip(b"\n").rfind(b"\n") + 1]
    if footer.get("lines") != len(parsed) - 1 or footer.get("sha256") != hashlib.sha256(above).hexdigest():
        raise CorpusError(
            "was changed after it was recorded: its last line does not match the lines above",
            where=f"{path}:{parsed[-1][0]}",
            hint="restore it from version control, or record it again",
            code="edited",
        )
