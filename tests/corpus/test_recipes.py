"""The declarations of recipes and probes are read without running them."""

from __future__ import annotations

from pathlib import Path

import pytest

from torch_compat.corpus.recipes import read_deprecation, read_probe, read_recipe
from torch_compat.errors import CorpusError

REPOSITORY = Path(__file__).parents[2]
GOOD = '''"""Division."""

import torch

FAMILY = "torchscript"
OPERATORS = ["aten::div"]
SINCE = "1.2.0"
UNTIL = "1.6.0"
WHY = "it changed"

def build():
    raise SystemExit
'''


def recipe(folder: Path, text: str | bytes) -> Path:
    path = folder / "div.py"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_recipe_is_read_and_not_run(tmp_path: Path) -> None:
    path = recipe(tmp_path, GOOD)
    result = read_recipe(path)
    assert (result.name, result.summary, result.family, result.operators) == ("div", "Division.", "torchscript", ("aten::div",))
    assert (result.since, result.until, result.why, result.file) == ("1.2.0", "1.6.0", "it changed", "div.pt")
    assert read_probe(path).summary == "Division."


def test_until_and_why_may_be_left_out(tmp_path: Path) -> None:
    result = read_recipe(recipe(tmp_path, GOOD.replace('UNTIL = "1.6.0"\nWHY = "it changed"\n', "")))
    assert (result.until, result.why) == (None, "")


def test_releases_in_between_may_be_left_out(tmp_path: Path) -> None:
    plain = read_recipe(recipe(tmp_path, GOOD))
    result = read_recipe(recipe(tmp_path, GOOD.replace('UNTIL = "1.6.0"', 'UNTIL = "1.6.0"\nEXCEPT = "1.4.0, 1.5.0..1.5.1"')))
    assert str(result.writers) == "1.2.0..<1.4.0, >1.4.0..<1.5.0, >1.5.1..1.6.0"
    assert result.sha256 == plain.sha256, "it is a claim about releases, not the program"


def test_a_reduced_grid_is_a_claim_and_no_part_of_the_program(tmp_path: Path) -> None:
    whole = read_recipe(recipe(tmp_path, GOOD))
    result = read_recipe(recipe(tmp_path, GOOD.replace("\ndef", 'WRITERS = "reduced"\nBESIDES = ["1.4.0"]\n\ndef')))
    assert (whole.reduced, whole.besides, result.reduced, result.besides) == (False, (), True, ("1.4.0",))
    assert result.sha256 == whole.sha256


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("\ndef", 'WRITERS = "few"\n\ndef', "WRITERS is 'few', expected 'reduced'"),
        ("\ndef", 'BESIDES = ["1.4.0"]\n\ndef', "has BESIDES, but no WRITERS"),
        ("\ndef", 'WRITERS = "reduced"\nBESIDES = "1.4.0"\n\ndef', "BESIDES is '1.4.0', expected a list of releases"),
        ('"""Division."""', "", "has no docstring that says what it tests"),
        ('FAMILY = "torchscript"', "", "has no constant FAMILY"),
        ('"torchscript"', '"onnx"', "FAMILY is 'onnx', expected one of torch-save, torchscript"),
        ('["aten::div"]', '"aten::div"', "has no OPERATORS constant"),
        ('["aten::div"]', "[1]", "has no OPERATORS constant"),
        ('SINCE = "1.2.0"', "", "has no constant SINCE"),
        ('"1.2.0"', "1.2", "has no constant SINCE"),
        ('"1.6.0"', "1.6", "has no constant UNTIL"),
        ('WHY = "it changed"', "", "has UNTIL, but no WHY"),
        ('UNTIL = "1.6.0"\nWHY = "it changed"', 'EXCEPT = "1.5.0"', "has EXCEPT, but no WHY"),
        ('UNTIL = "1.6.0"', 'EXCEPT = "latest"', "EXCEPT: "),
        ('UNTIL = "1.6.0"', 'EXCEPT = ["1.5.0"]', "EXCEPT is ['1.5.0'], expected a set of releases"),
        ('"it changed"', "[]", "has no constant WHY"),
        ('"it changed"', "build()", "div.py:9: constants in capitals must be literals"),
        ("def build", "x: = 3", "div.py:11: is not valid Python 3.6"),
        ("raise SystemExit", "match = (y := 3)", "div.py:12: is not valid Python 3.6"),
        ("raise SystemExit", "\0", "is not valid Python 3.6"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(old: str, new: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError) as caught:
        read_recipe(recipe(tmp_path, GOOD.replace(old, new)))
    assert said in str(caught.value)
    assert "div.py" in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"\xff\xfe\x00", b"\x80abc"])
def test_what_is_no_text_is_refused(data: bytes, tmp_path: Path) -> None:
    for read in (read_recipe, read_probe):
        with pytest.raises(CorpusError):
            read(recipe(tmp_path, data))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    for path in (tmp_path / "folder.py", tmp_path / "nowhere.py"):
        with pytest.raises(CorpusError, match="cannot be read"):
            read_recipe(path)


@pytest.mark.parametrize("path", sorted((REPOSITORY / "fixtures" / "recipes").glob("*.py")), ids=lambda path: path.stem)
def test_every_recipe_of_the_repository_is_whole(path: Path) -> None:
    assert read_recipe(path).name == path.stem


def test_claims_about_releases_are_no_part_of_what_is_run(tmp_path: Path) -> None:
    result = read_recipe(recipe(tmp_path, GOOD))
    corrected = GOOD.replace('"1.2.0"', '"1.3.0"').replace('"it changed"', '(\n    "it changed, and"\n    "why"\n)')
    assert corrected != GOOD
    again = read_recipe(recipe(tmp_path, corrected))
    assert (again.since, again.sha256) == ("1.3.0", result.sha256)
    assert read_recipe(recipe(tmp_path, GOOD.replace("aten::div", "aten::mul"))).sha256 != result.sha256


# ------------------------------------------------------------------------------------------------------------ deprecations

OLD = '''"""Something old."""
import torch

SUBJECT = "torch.old"
ALTERNATIVE = "torch.new"
SINCE = "1.2.0"


def deprecated():
    raise SystemExit


def alternative():
    raise SystemExit
'''


def test_a_probe_of_a_deprecated_thing_is_read_and_not_run(tmp_path: Path) -> None:
    result = read_deprecation(recipe(tmp_path, OLD))
    assert (result.name, result.summary, result.subject, result.alternative, result.since) == (
        "div", "Something old.", "torch.old", "torch.new", "1.2.0",
    )  # fmt: skip
    without = read_deprecation(recipe(tmp_path, OLD.replace('ALTERNATIVE = "torch.new"\n', "")))
    assert without.alternative is None
    assert without.sha256 != result.sha256


def test_since_when_is_a_claim_and_the_subject_is_none(tmp_path: Path) -> None:
    result = read_deprecation(recipe(tmp_path, OLD)).sha256
    assert read_deprecation(recipe(tmp_path, OLD.replace("1.2.0", "1.3.0"))).sha256 == result
    assert read_deprecation(recipe(tmp_path, OLD.replace("torch.old", "torch.older"))).sha256 != result


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"""Something old."""', "", "has no docstring that says what it tests"),
        ('SUBJECT = "torch.old"', "", "has no constant SUBJECT"),
        ('SINCE = "1.2.0"', "", "has no constant SINCE"),
        ('"torch.new"', "None", "has no constant ALTERNATIVE"),
        ("def deprecated", "def used", "has no function deprecated()"),
        ("def alternative", "def control", "has no function alternative()"),
        ("raise SystemExit", "return (y := 3)", "is not valid Python 3.6"),
        ("raise SystemExit", "# <replace this: what is old>", "replace the placeholder with what is old"),
    ],
)
def test_what_is_wrong_with_a_deprecation_is_named_with_its_place(old: str, new: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError) as caught:
        read_deprecation(recipe(tmp_path, OLD.replace(old, new)))
    assert said in str(caught.value)
    assert "div.py" in str(caught.value)
