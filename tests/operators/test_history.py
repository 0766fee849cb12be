from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_compat.errors import CorpusError, UsageError
from torch_compat.operators.history import (
    FactHistory,
    GlobalNames,
    History,
    HistoryFile,
    SetHistory,
    quoted,
    unquoted,
)
from torch_compat.releases.known import Known

RELEASES = ["1.0.0", "1.5.1", "1.10.2", "2.0.0", "2.13.0"]
HEAD = "# releases " + " ".join(RELEASES) + "\n# obtained\t1.0.0..\tAsked.\n"
SCHEMAS = (
    "# history 1 texts\n"
    + HEAD
    + "# incomplete\t1.0.0\tGuessed.\n"
    + "aten::add(Tensor a) -> Tensor\t1.0.0\n"
    + "aten::add.Scalar(Tensor a) -> Tensor\t2.0.0\n"
    + "aten::add.Tensor(Tensor a) -> Tensor\t1.5.1..2.0.0\n"
    + "aten::add.Tensor(SymInt a) -> Tensor\t2.13.0..\n"
    + "aten::add.Tensor_mode(Tensor a) -> Tensor\t1.5.1..\n"
    + "aten::add_.Tensor(Tensor a) -> Tensor\t1.0.0..\n"
    + "aten::addmm(Tensor a) -> Tensor\t1.0.0,1.10.2..\n"
)
NAMES = (
    "# history 1 sets\n"
    + HEAD
    + "(left out)\t1.0.0.. torch.testing\n"
    + "torch\t1.0.0.. Size float32\n"
    + "torch\t2.0.0.. device\n"
    + "torch.hub\t1.0.0 load\n"
    + "torch.hub\t2.0.0 !ImportError:%20100%25%20no\n"
    + "torch.nn\t1.0.0..1.10.2,2.13.0.. Linear\n"
)


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "history.txt"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def schemas(tmp_path: Path) -> History:
    return History.load(write(tmp_path, SCHEMAS))


@pytest.fixture
def names(tmp_path: Path) -> GlobalNames:
    return GlobalNames.load(write(tmp_path, NAMES))


# --------------------------------------------------------------------------------------------------------------- schemas


def test_schemas_of_a_name_and_a_release(schemas: History) -> None:
    assert schemas.schemas("aten::add", "1.0.0") == ("aten::add(Tensor a) -> Tensor",)
    assert schemas.schemas("aten::add", "2.0.0") == (
        "aten::add.Scalar(Tensor a) -> Tensor",
        "aten::add.Tensor(Tensor a) -> Tensor",
        "aten::add.Tensor_mode(Tensor a) -> Tensor",
    )
    assert schemas.schemas("aten::add.Tensor", "2.13.0") == ("aten::add.Tensor(SymInt a) -> Tensor",)
    assert schemas.schemas("aten::add.Tensor", "1.0.0") == ()
    assert schemas.schemas("aten::ad", "2.0.0") == ()
    assert schemas.schemas("zzz::none", "2.0.0") == ()


def test_releases_of_a_name(schemas: History) -> None:
    assert schemas.having("aten::add.Tensor") == ("1.5.1", "1.10.2", "2.0.0", "2.13.0")
    assert schemas.having("aten::addmm") == ("1.0.0", "1.10.2", "2.0.0", "2.13.0")
    assert schemas.having("aten::none") == ()
    assert schemas.having_bits("aten::add_") == 0b11111
    assert schemas.history("aten::add.Tensor") == (
        ("aten::add.Tensor(Tensor a) -> Tensor", "1.5.1..2.0.0"),
        ("aten::add.Tensor(SymInt a) -> Tensor", "2.13.0.."),
    )


def test_names_and_completeness_of_a_release(schemas: History) -> None:
    assert schemas.names("1.0.0") == {"aten::add", "aten::add_", "aten::addmm"}
    assert schemas.names("1.5.1") == {"aten::add", "aten::add_"}
    assert not schemas.complete("1.0.0")
    assert schemas.why_incomplete("1.0.0") == "Guessed."
    assert schemas.complete("1.5.1")
    assert schemas.how("2.13.0") == "Asked."


def test_a_release_that_was_not_asked_is_a_usage_error(schemas: History) -> None:
    for ask in (schemas.names, schemas.complete, schemas.how, lambda release: schemas.schemas("aten::add", release)):
        with pytest.raises(UsageError, match=r"there are no records for the release '1\.3\.0'") as caught:
            ask("1.3.0")
        assert "2.13.0" in str(caught.value.hint)


# ----------------------------------------------------------------------------------------------------------------- names


def test_what_a_pickle_can_name(names: GlobalNames) -> None:
    assert names.having("torch", "Size") == tuple(RELEASES)
    assert names.having("torch.nn", "Linear") == ("1.0.0", "1.5.1", "1.10.2", "2.13.0")
    assert names.has("torch.nn", "Linear", "1.0.0") is True
    assert names.has("torch.nn", "Linear", "2.0.0") is False
    assert names.has("torch", "device", "1.10.2") is False
    assert names.has("torch.none", "thing", "2.0.0") is False


@pytest.mark.parametrize(
    ("module", "name", "release"),
    [
        ("collections", "OrderedDict", "2.0.0"),
        ("torchvision.models", "ResNet", "2.0.0"),
        ("torch.testing", "make_tensor", "2.0.0"),
        ("torch.testing._internal", "x", "2.0.0"),
        ("torch.hub", "load", "2.0.0"),
        ("torch", "nn.Linear", "2.0.0"),
        ("torch", "__getattr__", "2.0.0"),
    ],
)
def test_what_is_not_known_is_not_denied(names: GlobalNames, module: str, name: str, release: str) -> None:
    assert names.has(module, name, release) is None


def test_what_is_known_stays_known_beside_what_is_not(names: GlobalNames) -> None:
    assert names.has("torch.hub", "load", "1.0.0") is True
    assert names.has("torch.hub", "load", "2.13.0") is False
    assert names.having_bits("torch.hub", "load") == (0b00001, 0b01000)
    assert names.having_bits("collections", "x") == (0, 0b11111)


def test_words_of_a_set(names: GlobalNames) -> None:
    assert names.values("torch", "1.0.0") == {"Size", "float32"}
    assert names.values("torch.hub", "2.0.0") == {"!ImportError: 100% no"}
    assert names.keys("2.0.0") == {"(left out)", "torch", "torch.hub", "torch.nn"} - {"torch.nn"}
    assert names.words("torch.nn") is names.words("torch.nn")


def test_facts(tmp_path: Path) -> None:
    text = "# history 1 facts\n" + HEAD + 'a > b\t"x"\t1.0.0\na > b\t[1, 2]\t2.0.0..\na > bc\tnull\t1.0.0..\n'
    facts = FactHistory(write(tmp_path, text))
    assert facts.values("a > b") == {'"x"': 1, "[1, 2]": 0b11000}
    assert facts.value("a > b", "1.0.0") == "x"
    assert facts.value("a > b", "2.13.0") == [1, 2]
    assert facts.value("a > bc", "1.5.1") is None
    with pytest.raises(KeyError):
        facts.value("a > b", "1.5.1")


# ----------------------------------------------------------------------------------------------------------- the format


@given(st.integers(0, 2 ** len(RELEASES) - 1))
def test_spans_say_exactly_which_releases(bits: int) -> None:
    history = object.__new__(HistoryFile)
    history.path, history.known = Path("x"), Known(RELEASES)
    text = history.known.text(bits)
    if bits:
        assert history.bits(text) == bits
    else:
        assert text == ""
    assert history.of(bits) == tuple(release for at, release in enumerate(RELEASES) if bits >> at & 1)


def test_spans_are_as_few_as_possible_and_open_to_the_newest() -> None:
    known = Known(RELEASES)
    assert known.text(0b11111) == "1.0.0.."
    assert known.text(0b01101) == "1.0.0,1.10.2..2.0.0"
    assert known.text(0b10000) == "2.13.0.."


@given(st.text())
def test_a_value_of_a_set_comes_back(value: str) -> None:
    assert unquoted(quoted(value)) == value
    assert not set(quoted(value)) & set(" \t\n\r")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        (SCHEMAS[:-1], "ends in the middle of a line"),
        (SCHEMAS.replace("history 1", "history 2"), "expected '# history 1 texts'"),
        (SCHEMAS.replace("1 texts", "1 sets"), "has layout 'sets', expected 'texts'"),
        (SCHEMAS.replace("1 texts", "1 other"), "begins with '# history 1 other'"),
        (SCHEMAS.replace("# releases", "# release"), "expected '# releases ...'"),
        (SCHEMAS.replace("# incomplete", "# partial"), "unknown header line"),
        (SCHEMAS.replace("# incomplete\t1.0.0", "# incomplete\t1.0.1"), "refers to unknown releases"),
        (SCHEMAS.replace("# incomplete\t1.0.0", "# incomplete\t2.0.0..1.0.0"), "must go from older to newer releases"),
    ],
)
def test_damage_of_the_header_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CorpusError) as caught:
        History.load(write(tmp_path, text))
    assert message in str(caught.value)
    assert "history.txt" in str(caught.value.where)


def test_damage_of_a_line_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="refers to unknown releases"):
        History.load(write(tmp_path, SCHEMAS.replace("\t2.13.0..", "\t2.13.1.."))).having("aten::add.Tensor")
    with pytest.raises(CorpusError, match="does not have the layout"):
        list(History.load(write(tmp_path, SCHEMAS.replace("\t2.13.0..", " 2.13.0.."))).facts())


def test_a_missing_file_and_one_that_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no recorded history") as caught:
        History.load(tmp_path / "none.txt")
    assert caught.value.code == "history-missing"
    (tmp_path / "history.txt").write_bytes(b"\xff\n\n")
    with pytest.raises(CorpusError, match="cannot be read"):
        SetHistory(tmp_path / "history.txt")


def test_reading_imports_nothing_heavy() -> None:
    code = (
        "import sys; from torch_compat.operators.history import History, GlobalNames; from torch_compat.operators import call_signature; "
        "History.load().names('2.13.0'); GlobalNames.load(); "
        "print([name for name in ('pydantic', 'numpy', 'torch', 'rich', 'dataclasses', 'typing_extensions') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
