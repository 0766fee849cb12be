"""``torch-compat operators``: differences, histories and checks, and error messages."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import torch_compat
from torch_compat.cli import main
from torch_compat.errors import UsageError
from torch_compat.judging.operator_check import check_operators, read_set
from torch_compat.operators.history import History, SetHistory
from torch_compat.operators.recorded_history import release_of
from torch_compat.policy import load_policy
from torch_compat.policy.operator_waivers import Covers, OperatorWaiver
from torch_compat.releases.data import packaged
from torch_compat.runtime.registry import known

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.operators.differences import Difference

    Run = Callable[..., tuple[int, str, str]]

PACKAGE = Path(torch_compat.__file__).parent
ADD = "aten::add(Tensor self, Tensor other) -> Tensor"
OLD = "aten::f(Tensor self, int n) -> Tensor"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_tree: Path) -> Run:
    """Runs the command in a folder of its own, under the policy of a small tree."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> tuple[int, str, str]:
        more = ("--root", str(small_tree)) if arguments[0] == "check" and "--root" not in arguments else ()
        with pytest.raises(SystemExit) as ended:
            main(["operators", *arguments, *more])
        message = capsys.readouterr()
        assert "Traceback" not in message.err
        assert isinstance(ended.value.code, int)
        return ended.value.code, message.out, message.err

    return command


def write(name: str, *lines: str) -> str:
    Path(name).write_text("".join(f"{line}\n" for line in lines))
    return name


def waiver(
    *operators: str,
    change: tuple[Difference, ...] = ("removed",),
    since: str = "2.14.1",
    name: str = "known",
    expires: dt.date | None = None,
) -> OperatorWaiver:
    return OperatorWaiver(
        id=name, title="It is known", covers=(Covers(change=change, operators=operators),), side="backward", since=since, reason="so",
        evidence="seen", owner="us", expires=expires,
    )  # fmt: skip


# --------------------------------------------------------------------------------------------------------- the reference


def test_the_reference_lists_as_before(run: Run) -> None:
    status, out, _ = run("--reference")
    assert status == 0
    assert "aten::add: " in out
    assert out.splitlines()[-1].endswith(" operators")


def test_nothing_asked_for(run: Run) -> None:
    status, out, err = run("--format", "text")
    assert (status, out) == (2, "")
    assert "no command was given" in err
    assert "--reference" in err
    status, _, err = run("--reference", "history", "aten::div")
    assert status == 2
    assert "cannot be combined with a command" in err


# ------------------------------------------------------------------------------------------------------------------ diff


def test_embedding_bag_gained_an_argument_from_1_4_to_1_5(run: Run) -> None:
    status, out, _ = run("diff", "1.4.0", "1.5.0")
    assert status == 0
    lines = out.splitlines()
    at = lines.index("~ aten::_embedding_bag")
    old, new, backward, forward = lines[at + 1 : at + 5]
    assert "include_last_offset" not in old
    assert "bool include_last_offset=False)" in new
    assert backward.split() == ["backward", "compatible"]
    assert forward.split() == ["forward", "compatible"]


def test_only_what_breaks(run: Run) -> None:
    _, everything, _ = run("diff", "1.4.0", "1.5.0")
    _, breaks, _ = run("diff", "1.4.0", "1.5.0", "--breaks")
    assert "~ aten::_embedding_bag\n" not in breaks
    assert "breaks: " in breaks
    assert everything.splitlines()[-1] == breaks.splitlines()[-1]  # the counts are those of all


def test_an_incomplete_release_says_so(run: Run) -> None:
    _, out, _ = run("diff", "2.12.1", "2.13.0")
    assert "? cuda::device_count" in out
    assert "\n- " not in out
    assert "the operator records for 2.13.0 are incomplete: " in out.splitlines()[-1]


@pytest.mark.parametrize(
    ("name", "release"),
    [("1.5.0", "1.5.0"), ("torch-1.5.1", "1.5.1"), ("1.5", "1.5.1"), ("2.13.0+cpu", "2.13.0"), ("torch-1.9", "1.9.1")],
)
def test_releases_are_known_by_several_names(name: str, release: str) -> None:
    assert release_of(History.load(), name) == release


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("1.12.0", "did you mean 1.12.1?"),
        ("2.12.0", "did you mean 2.12.1?"),
        ("1.5.7", "did you mean 1.5.1 or 1.5.0?"),
        ("0.4.1", "did you mean 1.0.0"),
        ("2.99", f"did you mean {History.load().releases[-1]}"),
        ("1.14.0", "did you mean 1.13.1"),
        ("newest", "recorded releases: 1.0.0, 1.0.1"),
    ],
)
def test_an_unknown_release_names_the_nearest(run: Run, name: str, hint: str) -> None:
    status, out, err = run("diff", "1.4.0", name)
    assert (status, out) == (2, "")
    assert f"the operators of {name!r} are not recorded" in err
    assert hint in err


# --------------------------------------------------------------------------------------------------------------- history


def test_the_history_of_an_overload_and_of_all(run: Run) -> None:
    status, item, _ = run("history", "aten::div.Tensor")
    assert status == 0
    assert "aten::div.Tensor(Tensor self, Tensor other) -> Tensor" in item
    assert "div_Tensor_0_3" in item
    assert "aten::div.Scalar" not in item
    _, every, _ = run("history", "aten::div")
    assert "aten::div.Scalar(Tensor self, Scalar other) -> Tensor" in every
    assert "core pointwise" in every


def test_the_history_names_changes_of_meaning_whatever_the_form(run: Run) -> None:
    for name in ("aten::div", "aten::div_", "aten::div.out"):
        _, text, _ = run("history", name)
        lines = [line.strip() for line in text.splitlines()]
        assert any(
            line.startswith("1.6.0..") and "div-of-integers-refused: integers are refused; with a float out=" in line
            for line in lines
        ), name
        assert "(marked by file format 4)" in text
    _, other, _ = run("history", "aten::is_nonzero", "--format", "json")
    assert json.loads(other)["changes"] == []


def test_the_history_shows_each_implementation_of_the_reference_reader(run: Run) -> None:
    _, text, _ = run("history", "aten::gelu", "--reference", "--format", "json")
    rows = json.loads(text)["reference"]
    assert [row["first_argument"] for row in rows] == ["opaque", "tensor"]
    versions = rows[1]["versions"]
    assert [version["since"] for version in versions] == [str(since) for since in known()["aten::gelu"]["tensor"]]
    for version in versions:
        source = (PACKAGE / version["file"]).read_text(encoding="utf-8").splitlines()
        assert source[version["line"] - 1].lstrip().startswith(("@", "def ")), version
    _, text, _ = run("history", "aten::eq", "--reference")
    assert "reference reader: aten::eq, first argument list" in text
    assert "not modeled: computes in the dtype of a 0-dim complex tensor" in text
    _, text, _ = run("history", "aten::_fw_primal", "--reference", "--format", "json")
    assert json.loads(text)["reference"] == []


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("aten::dvi", "did you mean aten::div"),
        ("div", "did you mean aten::div"),
        ("aten::div.Tenso", "its overloads: aten::div.Tensor"),
        ("quantized::zzzzzzzzzzzzzzzzzzz", "use a name such as aten::div or"),
        ("", "use a name such as aten::div or"),
    ],
)
def test_an_unknown_operator_names_the_nearest(run: Run, name: str, hint: str) -> None:
    status, out, err = run("history", name)
    assert (status, out) == (2, "")
    assert f"no recorded release has an operator {name!r}" in err
    assert hint in err


def test_a_history_is_instant_and_imports_nothing_that_is_slow() -> None:
    """In a process of its own, the start of Python included; the fastest of some runs, as machines have other things to do."""
    code = (
        "import sys\n"
        "from torch_compat.cli import main\n"
        "try: main(['operators', 'history', 'aten::div'])\n"
        "except SystemExit: pass\n"
        "slow = {'pydantic', 'numpy', 'rich', 'flatbuffers', 'packaging', 'torch_compat.policy', 'torch_compat.corpus', 'torch_compat.runtime', 'torch'}\n"
        "sys.exit(3 if slow & set(sys.modules) else 0)"
    )
    fastest = 9.0
    for _ in range(5):
        began = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
        fastest = min(fastest, time.perf_counter() - began)
        assert done.returncode == 0, done.stderr
        assert "aten::div.Tensor" in done.stdout
    assert fastest < 0.5  # 0.1 on an idle machine


# ----------------------------------------------------------------------------------------------------------------- check


def test_files_are_compared(run: Run) -> None:
    old, new = write("old", ADD, "", OLD), write("new", ADD, "aten::f(Tensor self, int n, int m=1) -> Tensor")
    assert run("check", "--old", old, "--new", new)[0] == 0
    status, out, _ = run("check", "--old", new, "--new", old)
    assert status == 1
    assert "aten::f breaks backward" in out


def test_a_break_says_what_to_do_and_drafts_the_waiver(run: Run) -> None:
    old = write("old", OLD, "aten::g.x(Tensor self) -> Tensor")
    new = write("new", "aten::f(Tensor self, int n, int m) -> Tensor", "aten::g.y(Tensor self) -> Tensor")
    status, out, _ = run("check", "--old", old, "--new", new)
    assert status == 1
    assert "why     the new argument 'm' of type int has no default" in out
    assert "change  an argument without a default was added (required-argument-added)" in out
    assert "do      give 'm' a default; or write an upgrader" in out
    assert "do      keep the operator; or write an upgrader" in out
    assert "but     TorchScript code does not name overloads, and aten::g.y(Tensor self) -> Tensor accepts the same calls" in out
    assert out.startswith(
        "old (2 schemas) to new (2): 2 broken, 0 waived, 0 with an upgrader, 0 unknown\n    broken: 2 backward, forward compatibility not checked"
    )
    assert "    operators: 1 removed, 1 changed, 1 added\n" in out
    draft = out[out.index("[operator_waiver]") :]
    lines = [line for line in draft.splitlines() if "<replace this" not in line]
    table = tomllib.loads("\n".join(lines))["operator_waiver"]
    assert table["covers"] == [
        {"change": ["overload-moved"], "operators": ["aten::g.x"]},
        {"change": ["required-argument-added"], "operators": ["aten::f"]},
    ]
    assert table["side"] == "backward"
    assert "expires = <replace this" in draft


def test_the_draft_for_a_release_has_no_end(run: Run) -> None:
    _, out, _ = run("check", "--old", "1.12.1", "--new", "1.13.1", "--no-waivers")
    assert 'since = "1.13.1"' in out
    assert "expires" not in out


def test_an_upgrader_that_is_named_mends_the_break(run: Run) -> None:
    old, new = write("old", OLD, ADD), write("new", ADD)
    assert run("check", "--old", old, "--new", new)[0] == 1
    status, out, _ = run("check", "--old", old, "--new", new, "--upgrader", OLD)
    assert status == 0
    assert "1 with an upgrader" in out
    assert run("check", "--old", old, "--new", new, "--upgrader", OLD.replace("int n", "int k"))[0] == 1
    status, _, err = run("check", "--old", old, "--new", new, "--upgrader", "aten::f(Tensor")
    assert status == 2
    assert "--upgrader, column" in err


@pytest.mark.parametrize(
    "operator",
    [
        "aten::div.Tensor", "aten::div.Scalar", "aten::div.Tensor_mode", "aten::div.Scalar_mode", "aten::div.out",
        "aten::div.out_mode", "aten::div_.Tensor", "aten::div_.Scalar", "aten::div_.Tensor_mode", "aten::div_.Scalar_mode",
        "aten::full", "aten::full.out", "aten::linspace", "aten::linspace.out", "aten::logspace", "aten::logspace.out",
        "aten::gelu", "aten::gelu.out",
    ],
)  # fmt: skip
def test_an_upgrader_for_older_formats_does_not_excuse_a_removal(run: Run, operator: str) -> None:
    """2.13.0 writes these operators with the version that they were raised to; their upgraders serve what is before it."""
    texts = sorted(read_set("2.13.0").schemas)
    old, new = write("old.txt", *texts), write("new.txt", *(text for text in texts if not text.startswith(f"{operator}(")))
    for older, writer in ((old, "2.15.0"), ("2.13.0", "2.13.0")):
        status, out, _ = run("check", "--old", older, "--new", new, "--no-waivers")
        assert status == 1, out
        assert f"{operator} breaks backward" in out
        assert "1 broken, 0 waived, 0 with an upgrader" in out
        if operator.startswith(("aten::div", "aten::full")):
            assert (
                f"covers file formats 0 to {3 if 'div' in operator else 4}, but {writer} writes this operator with"
                in " ".join(out.split())
            )


def test_an_overload_that_gains_a_name_breaks_where_archives_state_overloads(run: Run) -> None:
    """1.7.1 reads what 1.6.0 wrote with ``y & z`` as TorchScript, and refuses it as bytecode: 'ops cannot be found: aten::__and__'.

    PyTorch's own comparison calls it a break in every release. 1.4.0 writes no bytecode.
    """
    and_old, and_new = "aten::__and__(int a, int b) -> int", "aten::__and__.int(int a, int b) -> int"
    operators = check_operators(read_set("1.4.0"), read_set("1.5.0"))
    assert len(operators.named) == 80
    assert "aten::acosh" in {item.operator for item in operators.named}
    assert not set(operators.named) & set(operators.broken)
    operators = check_operators(read_set("1.6.0"), read_set("1.7.1"))
    assert not operators.named
    assert "aten::__and__" in {item.operator for item in operators.broken}
    old, new = write("old", and_old), write("new", and_new)
    status, out, _ = run("check", "--old", old, "--new", new)
    assert status == 1
    assert f"{and_new} accepts the same calls" in " ".join(out.split())


IMPORTED = "c10d_functional::all_reduce"


@pytest.mark.parametrize("release", ["2.12.1", "2.13.0", "2.14.1", "2.15.0"])
def test_a_release_breaks_nothing_of_its_own_dump(run: Run, release: str) -> None:
    """A dump lacks what only imports register; a real one was compared for each of these releases, and lacks exactly these."""
    recorded = SetHistory(packaged("fixtures", "operators", "imported.txt"))
    marked = {key for key, word, bits in recorded.facts() if word != "-" and bits & recorded.bit(release)}
    assert IMPORTED in marked
    texts = [text for text in sorted(read_set(release).schemas) if text.partition("(")[0] not in marked]
    dump = write("dump.txt", *texts)
    complete = History.load().complete(release)
    for sides in (("--old", release, "--new", dump), ("--old", dump, "--new", release)):
        status, out, _ = run("check", *sides, "--forward", "--no-waivers")
        assert (status, ": 0 broken, 0 waived, 0 with an upgrader, 0 unknown" in out) == (
            0 if complete or sides[1] == dump else 4,
            True,
        ), out
        assert "operators: 0 removed, 0 changed, 0 added" in out
        assert "left out, not imported: 13 of torch.distributed._functional_collectives\n" in out


def test_what_an_import_registers_is_missed_where_the_file_shows_the_import(run: Run) -> None:
    texts = sorted(read_set("2.15.0").schemas)
    nightly = write("nightly.txt", *(text for text in texts if not text.startswith(f"{IMPORTED}(")))
    status, out, _ = run("check", "--old", "2.15.0", "--new", nightly, "--no-waivers")
    assert status == 1
    assert f"{IMPORTED} breaks backward" in out
    assert "left out" not in out


def test_a_dump_is_asked_of_what_is_there(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_COMPAT_CACHE", str(tmp_path / "cache"))
    status, out, err = run("dump", "torch-2.13.0")
    assert (status, out) == (4, "")
    assert "torch-2.13.0 is not built here" in err
    assert "readers build torch-2.13.0; or use python:PATH" in err
    status, _, err = run("dump", "python:nowhere")
    assert status == 2
    assert "nowhere: program not found" in err
    for build, message in (
        ("wheel:some.whl", "some.whl: file not found"),
        ("nightly:tomorrow", "'tomorrow' is not a valid date"),
        ("conda:torch", "'conda:torch' is not a build"),
        ("venv/bin/python", "'venv/bin/python' is not a build"),
    ):
        status, _, err = run("dump", build)
        assert status == 2
        assert message in err


def test_a_dump_of_a_python_with_torch(run: Run, tmp_path: Path) -> None:
    """A torch of a few lines stands in the folder of a virtual environment's packages."""
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    assert "No module named 'torch'" in run("dump", f"python:{python}")[2]
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (site / "torch.py").write_text(
        "class _C:\n"
        f"    _jit_get_all_schemas = staticmethod(lambda: [{ADD!r}])\n"
        "    _jit_get_custom_class_schemas = staticmethod(lambda: ['m(__torch__.torch.classes.mine.K _0) -> ()'])\n"
    )
    status, out, _ = run("dump", f"python:{python}")
    assert (status, out) == (0, f"{ADD}\nm(__torch__.torch.classes.mine.K _0) -> ()\n")
    assert run("dump", f"python:{python}", "--output", "mine.txt")[1] == "mine.txt: 2 schemas\n"
    assert read_set("mine.txt").schemas == {ADD}
    (site / "torch.py").write_text("__version__ = '1.2.0'\nclass _C: pass\n")
    status, _, err = run("dump", f"python:{python}")
    assert status == 4
    assert "torch 1.2.0 has no list of all schemas; torch 1.3 or newer is required" in err


def test_forward_is_asked_for(run: Run) -> None:
    old, new = write("old", OLD), write("new", "aten::f(Tensor self, int n, int[] m=[1]) -> Tensor")
    assert run("check", "--old", old, "--new", new)[0] == 0
    status, out, _ = run("check", "--old", old, "--new", new, "--forward")
    assert status == 1
    assert "aten::f breaks forward" in out
    assert "do      give 'm' a default that is not a list\n" in out
    assert 'side = "forward"' in out


def test_the_dump_of_a_release_is_that_release(run: Run) -> None:
    """With the methods of classes, and with the parentheses that releases up to 1.12 print."""
    history = History.load()
    bit = history.bit("1.12.1")
    texts = [text for text, _, bits in history.facts() if bits & bit]
    single = {
        text for text in texts if not text.endswith((" -> ()", " -> (...)")) and not {",", " "} & {*text.rpartition(") -> ")[2]}
    }
    printed = [f"{text.replace(') -> ', ') -> (')})" if text in single else text for text in texts]
    assert len(single) > 2000
    dump = write(
        "dump.txt",
        *printed,
        "__getstate__(__torch__.torch.classes.quantized.LinearPackedParamsBase _0) -> ((Tensor, Tensor?) _0)",
    )
    assert read_set(dump).schemas == read_set("1.12.1").schemas
    status, out, _ = run("check", "--old", dump, "--new", "1.12.1")
    assert status == 0
    assert "skipped 1 methods of classes, which are not operators" in out


@pytest.mark.parametrize(
    ("line", "column", "expected"),
    [
        ("aten::f(Tensor self, int n -> Tensor", 28, "expected"),
        ("  aten::f(Tensor self, intt[ n) -> Tensor", 30, "expected"),
        ("aten:f(Tensor self) -> Tensor", 6, "expected ':', found 'f'"),
        ("aten::f(Tensor self) - Tensor", 22, "expected"),
    ],
)
def test_a_typo_is_named_with_file_line_and_column(run: Run, line: str, column: int, expected: str) -> None:
    status, out, err = run("check", "--old", "1.12.1", "--new", write("new.txt", ADD, "", line))
    assert (status, out) == (2, "")
    assert f"new.txt:3:{column}: is not an operator schema: {expected}" in err
    assert line.strip() in err


def test_further_typos_are_named_too(run: Run) -> None:
    bad = [f"aten::f{n}(Tensor self -> Tensor" for n in range(13)]
    _, _, err = run("check", "--old", "1.12.1", "--new", write("new.txt", *bad[:3]))
    assert "new.txt:1:22: is not an operator schema" in err
    assert "2 more, at line:column 2:22, 3:22\n" in err
    _, _, err = run("check", "--old", "1.12.1", "--new", write("new.txt", *bad))
    assert "12 more, at line:column 2:22, " in err
    assert ", 11:23, ...\n" in err


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty", b"", "contains no operator schema"),
        ("blank", b"\n\n", "contains no operator schema"),
        ("binary", b"\xff\xfe\x00", "cannot be read"),
    ],
)
def test_a_file_that_holds_no_schemas(run: Run, name: str, content: bytes, said: str) -> None:
    Path(name).write_bytes(content)
    status, out, err = run("check", "--old", name, "--new", "1.12.1")
    assert (status, out) == (2, "")
    assert said in err
    assert name in err


def test_neither_a_release_nor_a_file(run: Run) -> None:
    status, _, err = run("check", "--old", "1.12.0", "--new", "1.13.1")
    assert status == 2
    assert "'1.12.0' is neither a file nor a release whose operators are recorded" in err
    assert "did you mean 1.12.1?" in err
    status, _, err = run("check", "--old", "nowhere.txt", "--new", "1.13.1")
    assert status == 2
    assert "nowhere.txt: file not found" in err
    Path("folder").mkdir()
    assert "is a directory, not a file" in run("check", "--old", "1.13.1", "--new", "folder")[2]


def test_an_incomplete_set_is_no_pass(run: Run) -> None:
    status, out, _ = run("check", "--old", "2.12.1", "--new", "2.13.0")
    assert status == 4
    assert "138 unknown" in out
    assert "2.13.0 has incomplete records" in out
    status, out, _ = run("check", "--old", "2.13.0", "--new", "2.14.1")
    assert status == 4
    assert "0 broken, 8 waived" in out


def test_recorded_releases_are_waived_exactly(run: Run) -> None:
    for old, new in (("1.12.1", "1.13.1"), ("2.7.1", "2.8.0"), ("2.12.1", "2.15.0"), ("1.12.1", "2.12.1")):
        status, out, _ = run("check", "--old", old, "--new", new)
        assert (status, ": 0 broken" in out) == (0, True), out
    assert run("check", "--old", "1.10.2", "--new", "1.12.1")[0] == 1  # older than the policy, so nothing is waived


# ---------------------------------------------------------------------------------------------------------------- waivers


def checked(old: str, new: str, *waivers: OperatorWaiver, day: int = 2026, **more: Any) -> tuple[int, list[str]]:
    operators = check_operators(read_set(old), read_set(new), waivers=waivers, as_of=dt.date(day, 1, 1), **more)
    return operators.exit_status, [f"{name} {problem}" for name, problem in operators.problems]


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A file that a newer one lacks two operators of."""
    monkeypatch.chdir(tmp_path)
    return write("old", ADD, OLD, "aten::g() -> ()"), write("new", ADD)


def test_a_waiver_covers_what_it_names(pair: tuple[str, str]) -> None:
    assert checked(*pair)[0] == 1
    assert checked(*pair, waiver("aten::f", "aten::g")) == (0, [])
    assert checked(*pair, waiver("aten::f")) == (1, [])
    assert checked(*pair, waiver("aten::f"), waiver("aten::g", change=("alias-annotation",), name="other")) == (1, [])


def test_a_waiver_for_the_coming_release_is_exact_but_for_what_it_becomes(pair: tuple[str, str]) -> None:
    coming = "2.99.0"
    assert checked(*pair, waiver("aten::f", "aten::g", since=coming)) == (0, [])
    _, problems = checked(*pair, waiver("aten::f", "aten::g", "aten::h", since=coming))
    assert problems == ["known lists operators that did not change in this way with 2.99.0: aten::h"]
    _, problems = checked(*pair, waiver("aten::f", "aten::g", since=coming), waiver("aten::k", since=coming, name="idle"))
    assert problems == ["idle covers nothing: no operator that it lists changed in this way with 2.99.0"]
    _, problems = checked(*pair, waiver("aten::f", "aten::g", since=coming), waiver("aten::f", since=coming, name="more"))
    assert [problem.split()[0] for problem in problems] == ["known", "more"]
    status, problems = checked(*pair, waiver("aten::f", "aten::g", change=("argument-added",), since=coming))
    assert (status, [problem.split()[:5] for problem in problems]) == (1, [["known", "is", "for", "a", "different"]])


def test_an_expired_waiver_is_reported_and_covers_nothing(pair: tuple[str, str]) -> None:
    status, problems = checked(*pair, waiver("aten::f", "aten::g", expires=dt.date(2026, 1, 1)))
    assert (status, problems) == (1, ["known expired on 2026-01-01"])
    assert checked(*pair, waiver("aten::f", "aten::g", expires=dt.date(2026, 1, 1)), day=2025) == (0, [])


UNIFORM = waiver("prims::uniform", change=("required-argument-added",), since="2.11.0")
PROFILER = waiver(
    "profiler::_record_function_exit", "profiler::_record_function_exit._RecordFunction", change=("argument-renamed",),
    since="2.11.0", name="profiler",
)  # fmt: skip


def test_a_waiver_between_other_releases_is_left_aside() -> None:
    elsewhere = [item.model_copy(update={"since": "2.14.1"}) for item in (UNIFORM, PROFILER)]
    assert checked("2.10.0", "2.11.0", *elsewhere) == (1, [])
    assert checked("2.14.1", "2.15.0", *elsewhere) == (0, [])


def test_between_two_recorded_releases_waivers_are_exact() -> None:
    good = [UNIFORM, PROFILER]
    policy = load_policy(Path(__file__).parents[2] / "policies" / "torch")
    ids = {"known": "op-prims-2-11", "profiler": "op-profiler-renamed"}
    became = {(item.id, name): policy.became[ids[item.id], name] for item in good for name in item.operators}
    assert checked("2.10.0", "2.11.0", *good, became=became) == (0, [])
    status, problems = checked("2.10.0", "2.11.0", *good, waiver("aten::add", since="2.11.0", name="idle"), became=became)
    assert status == 1
    assert [problem.split()[0] for problem in problems] == ["idle"]
    status, problems = checked("2.10.0", "2.11.0", *good, became=became | {("known", "prims::uniform"): "waits"})
    assert (status, len(problems)) == (1, 1)
    assert problems[0].startswith("known covers changes that are not in counts.lock: prims::uniform became prims::uniform(")


def test_farther_apart_each_step_needs_a_waiver() -> None:
    """aten::_foreach_norm.Scalar was renamed in 1.13.1, which broke it, and got an argument in 2.5.1, which did not."""
    name = "aten::_foreach_norm.Scalar"
    renamed = waiver(name, change=("argument-renamed",), since="1.13.1")

    def left(*waivers: OperatorWaiver) -> bool:
        result = check_operators(read_set("1.12.1"), read_set("2.12.1"), waivers=waivers, as_of=dt.date(2026, 1, 1))
        return name in {item.operator for item in result.broken}

    assert left()
    assert not left(renamed)
    assert left(renamed.model_copy(update={"since": "2.0.0"}))
    assert left(renamed.model_copy(update={"expires": dt.date(2026, 1, 1)}))


def test_a_file_stands_behind_the_newest_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What broke before it has its waivers; what breaks in it needs one for a release to come."""
    monkeypatch.chdir(tmp_path)
    texts = sorted(read_set("2.15.0").schemas)
    gone = [text for text in texts if text.startswith(("aten::relu(", "prims::uniform("))]
    assert len(gone) == 2
    nightly = write("nightly.txt", *(text for text in texts if text not in gone))
    before = [UNIFORM, PROFILER]
    coming = waiver("aten::relu", "prims::uniform", since="2.99.0", name="coming")
    left = {
        count: {item.operator for item in check_operators(read_set("2.10.0"), read_set(nightly), waivers=waivers).broken}
        & {"prims::uniform", "aten::relu", "profiler::_record_function_exit"}
        for count, waivers in enumerate(([], before, [*before, coming]))
    }
    assert left == {
        0: {"prims::uniform", "aten::relu", "profiler::_record_function_exit"},
        1: {"prims::uniform", "aten::relu"},
        2: set(),
    }


def test_a_waiver_explains_what_it_covers(capsys: pytest.CaptureFixture[str], small_tree: Path) -> None:
    with pytest.raises(SystemExit):
        main(["explain", "op-linalg-renamed", "--root", str(small_tree)])
    message = capsys.readouterr().out
    assert "  side: backward\n  since: 1.13.1\n" in message
    assert "    2 × an argument with a default was added; an argument was renamed (argument-added, argument-renamed): " in message
    assert ": aten::linalg_solve, aten::linalg_solve.out\n" in message
    assert "  file: policies/torch/operator_waivers/op-linalg-renamed.toml\n" in message


def test_json_is_the_same_every_time(run: Run) -> None:
    documents = {run("check", "--old", "1.12.1", "--new", "1.13.1", "--format", "json")[1] for _ in range(2)}
    assert len(documents) == 1
    assert json.loads(documents.pop())["exit_status"] == 0


def test_a_set_that_is_no_release_raises() -> None:
    with pytest.raises(UsageError):
        read_set("3.0.0")


@pytest.mark.parametrize(("name", "said", "unsaid"), [
    ("aten::div", ["change div-of-integers-true", "format version file-format 4"], "waiver of operators op-named-tensors-removed"),
    ("torch.cholesky", ["waiver of operators op-cholesky-qr-removed", "deprecation cholesky"], "deprecation lu"),
    ("aten::qr.Q", ["waiver of operators op-cholesky-qr-removed"], "waiver of operators op-named-tensors-removed"),
    ("torch-2.13.0", ["release 2.13.0"], "change "),
    ("div-integer", ["  kind: behavior-change", "  silent: yes", "2020-04-21: warned in 1.5.0", "1.7.0: does not mention it"], "True"),
    ("div-integer", ['announces "in a future release div will perform true division as in Python 3"'], "['"),
    ("type-promotion", ["  out of range: no"], "False"),
    ("mmap", ["  load: weights_only=False, mmap=True", "containers: stream, tar"], "['"),
])  # fmt: skip
def test_an_operator_is_explained_by_everything_about_it(
    name: str, said: list[str], unsaid: str, capsys: pytest.CaptureFixture[str], small_tree: Path
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["explain", name, "--root", str(small_tree)])
    out = capsys.readouterr().out
    assert ended.value.code == 0
    assert [item for item in said if item not in out] == []
    assert unsaid not in out
