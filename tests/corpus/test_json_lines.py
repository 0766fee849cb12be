"""Recorded JSON lines: a round trip, and rejection of incomplete data."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_compat.corpus.json_lines import digest, dump, read_lines, write_lines
from torch_compat.errors import CorpusError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ENTRIES = st.lists(st.dictionaries(st.text(), JSON, max_size=3).map(lambda entry: {**entry, "kind": "thing"}), max_size=5)


def write(path: Path, entries: list[dict[str, Any]] | None = None) -> Path:
    write_lines(path, {"kind": "things", "of": "here"}, [{"kind": "thing", "n": 1}] if entries is None else entries)
    return path


def error(path: Path) -> CorpusError:
    with pytest.raises(CorpusError) as caught:
        read_lines(path, "things")
    assert caught.value.exit_status == 2
    return caught.value


@settings(max_examples=50, deadline=None)
@given(ENTRIES)
def test_what_is_written_is_read(entries: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "new" / "a.jsonl", entries)
        header, lines = read_lines(path, "things")
        assert header == {"kind": "things", "of": "here", "schema_version": 1}
        assert [entry for _, entry in lines] == entries
        assert [number for number, _ in lines] == list(range(2, len(entries) + 2))
        assert path.read_bytes().isascii()
        assert [item.name for item in path.parent.iterdir()] == ["a.jsonl"]


@settings(max_examples=50, deadline=None)
@given(ENTRIES, st.data())
def test_no_changed_byte_goes_unnoticed(entries: list[dict[str, Any]], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "a.jsonl", entries)
        body = bytearray(path.read_bytes())
        place = data.draw(st.integers(0, len(body) - 1))
        body[place] ^= data.draw(st.integers(1, 255))
        path.write_bytes(body)
        try:
            results = [entry for _, entry in read_lines(path, "things")[1]]
        except CorpusError:
            return
        footer = body.rstrip(b"\n").rfind(b"\n")
        assert place > footer, "only the layout of the footer itself is not covered by it"
        assert results == entries


@settings(max_examples=50, deadline=None)
@given(ENTRIES, st.data())
def test_no_cut_goes_unnoticed(entries: list[dict[str, Any]], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "a.jsonl", entries)
        body = path.read_bytes()
        path.write_bytes(body[: data.draw(st.integers(0, len(body) - 2))])  # without its last newline it is still whole
        error(path)


def test_an_interrupted_run_leaves_what_was_there(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl")
    before = path.read_bytes()
    with pytest.raises(TypeError):
        write(path, [{"kind": "thing", "n": {1, 2}}])
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_numbers_that_json_lacks_are_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        dump(float("nan"))


@pytest.mark.parametrize(
    ("spoil", "code", "said"),
    [
        (lambda lines: [], "bad-header", "does not begin with a line of kind 'things'"),
        (lambda lines: lines[1:], "bad-header", "does not begin with a line of kind 'things'"),
        (lambda lines: lines[:-1], "not-whole", "does not end with a line of kind 'end'"),
        (lambda lines: [lines[0], lines[2]], "edited", "was changed after it was recorded"),
        (lambda lines: [*lines, lines[1]], "not-whole", "does not end with a line of kind 'end'"),
        (lambda lines: [lines[0], "", *lines[1:]], "bad-line", "is not JSON"),
        (lambda lines: [lines[0], "[1]", *lines[1:]], "bad-line", "is not an object with a 'kind'"),
        (lambda lines: [lines[0], '{"kind": 3}', *lines[1:]], "bad-line", "is not an object with a 'kind'"),
        (lambda lines: [lines[0], "[" * 100_000, *lines[1:]], "bad-line", "is not JSON"),
        (
            lambda lines: [lines[0].replace('"schema_version":1', '"schema_version":2'), *lines[1:]],
            "bad-schema-version",
            "reads 1",
        ),
    ],
)
def test_what_is_not_whole_is_refused(tmp_path: Path, spoil: Any, code: str, said: str) -> None:
    path = write(tmp_path / "a.jsonl")
    path.write_text("".join(line + "\n" for line in spoil(path.read_text().splitlines())))
    result = error(path)
    assert result.code == code
    assert said in str(result)
    assert str(path) in str(result)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    assert error(tmp_path / "nowhere.jsonl").code == "missing-file"
    assert error(tmp_path).code == "missing-file"
    (tmp_path / "binary.jsonl").write_bytes(bytes(range(256)))
    assert error(tmp_path / "binary.jsonl").code == "bad-line"
    (tmp_path / "loop.jsonl").symlink_to(tmp_path / "loop.jsonl")
    assert error(tmp_path / "loop.jsonl").code == "unreadable-file"


@settings(max_examples=50, deadline=None)
@given(JSON)
def test_a_digest_is_that_of_the_canonical_form(value: Any) -> None:
    assert digest(value) == digest(json.loads(json.dumps(value)))
    assert digest(value, 1) != digest(value, 2)
    assert digest([value, value]) != digest(value, value)
