from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_compat.errors import PolicyError
from torch_compat.policy import Policy, load_policy
from torch_compat.policy.accepted import WAIVERS_LOCK

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Write = Callable[[dict[str, str]], Path]


def mistakes(folder: Path) -> list[str]:
    """What the loader says, one line per problem, with the folder's own path left out."""
    with pytest.raises(PolicyError) as caught:
        load_policy(folder)
    assert caught.value.exit_status == 2
    assert len(caught.value.problems) == len(set(map(str, caught.value.problems)))
    return [str(problem).replace(f"{folder.as_posix()}", "P") for problem in caught.value.problems]


def test_a_policy_is_all_its_files(small: Policy) -> None:
    assert small.name == "small"
    assert small.forward_window_days == 14
    assert [(item.kind, item.version) for item in small.formats] == [("bytecode", 6), ("file-format", 6)]
    assert [options.id for options in small.options] == ["default", "mmap"]
    assert [rule.id for rule in small.rules] == ["newer-loads"]
    assert [waiver.id for waiver in small.waivers] == ["known"]
    assert small.corpus.readers == ("1.9.0", "1.10.0")


def test_any_file_may_hold_any_table(write: Write, files: dict[str, str], small: Policy) -> None:
    apart = {name: files.pop(name) for name in ("waivers/known.toml", WAIVERS_LOCK)}
    folder = write({**apart, "all.toml": "\n".join(files.values())})
    for name in files:
        (folder / name).unlink(missing_ok=True)
    assert load_policy(folder).digest == small.digest


def test_an_expired_waiver_is_no_mistake_of_the_file(write: Write, files: dict[str, str]) -> None:
    files["waivers/known.toml"] = files["waivers/known.toml"].replace("2027-01-01", "2001-01-01")
    assert load_policy(write(files)).waivers[0].expires is not None


def test_a_missing_folder(tmp_path: Path) -> None:
    (result,) = mistakes(tmp_path / "nowhere")
    assert result.endswith(": directory not found")


@pytest.mark.parametrize("name", ["notes.txt", "empty.toml"])
def test_a_folder_that_holds_no_policy(write: Write, name: str) -> None:
    (result,) = mistakes(write({name: ""}))
    assert "contains no policy" in result


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        # shape
        ("releases.toml", 'install = "stubs"', 'install = "stub"', "P/releases.toml:19: release[2].install: must be one of whole, stubs; found 'stub'; did you mean 'stubs'?"),
        ("releases.toml", 'version = "1.10.1"', 'version = "1.10"', "P/releases.toml:16: release[2].version: must be a full release such as '1.12.0'; found '1.10'"),
        ("releases.toml", "date = 2021-12-15", 'date = "2021-12-15"', "P/releases.toml:17: release[2].date: must be a date such as 2027-01-31, without quotes; found '2021-12-15'"),
        ("releases.toml", "date = 2021-12-15", "date = 2021-12-15T01:02:03", "P/releases.toml:17: release[2].date: must be a date such as 2027-01-31, without quotes; found 2021-12-15T01:02:03"),
        ("releases.toml", "date = 2021-12-15\n", "", "P/releases.toml:15: release[2].date: key 'date' is missing"),
        ("releases.toml", ">=1.19,<2", ">>1", "P/releases.toml:20: release[2].numpy: must be a version range such as '<2' or '>=1.20,<2'; found '>>1'"),
        ("promises.toml", 'source = "here"', 'source = "here"\nsevrity = 1\n', "P/promises.toml:25: rule[0].sevrity: unknown key 'sevrity'; known: id, asks, source, expect_empty, parameters"),
        ("promises.toml", 'source = "here"', 'source = "here"\nparametres = {}\n', "P/promises.toml:25: rule[0].parametres: unknown key 'parametres'; did you mean 'parameters'?"),
        ("promises.toml", "load = { mmap = true }", "load = { mmap = true, mmap_flag = 1 }", "P/promises.toml:18: options[1].load.mmap_flag: unknown key 'mmap_flag'; did you mean 'mmap_flags'?"),
        ("promises.toml", "load = { mmap = true }", "load.mmap = 1", "P/promises.toml:18: options[1].load.mmap: must be true or false; found 1"),
        ("promises.toml", "load = { mmap = true }", "load = 1", "P/promises.toml:18: options[1].load: must be a table; found 1"),
        ("promises.toml", 'families = ["torch-save", "torchscript"]', "families = []", "P/promises.toml:12: options[0].families: must name at least one"),
        ("promises.toml", 'families = ["torch-save", "torchscript"]', 'families = "torch-save"', "P/promises.toml:12: options[0].families: must be an array; found 'torch-save'"),
        ("promises.toml", 'families = ["torch-save", "torchscript"]', 'families = [\n  "torch-save",\n  "torchsript",\n]', "P/promises.toml:14: options[0].families[1]: must be one of torch-save, torchscript, mobile, package, export, distributed; found 'torchsript'; did you mean 'torchscript'?"),
        ("promises.toml", 'families = ["torch-save", "torchscript"]', 'families = ["torch-save", "torch-save"]', "P/promises.toml:12: options[0].families: names torch-save more than once"),
        ("promises.toml", "forward_window_days = 14", "forward_window_days = -1", "P/promises.toml:4: policy.forward_window_days: must be at least 0; found -1"),
        ("promises.toml", "forward_window_days = 14", 'forward_window_days = "14"', "P/promises.toml:4: policy.forward_window_days: must be an integer; found '14'"),
        ("promises.toml", "forward_window_days = 14", 'forward_window_days = 14\nprofiles = [{ id = "a", asks = "x" }, { id = "a", asks = "y" }]', "P/promises.toml:5: policy.profiles[1].id: profile 'a' is already defined"),
        ("releases.toml", 'install = "whole"\n', "", "P/releases.toml:8: release[1]: key 'install' is missing"),
        ("formats.toml", "[[format]]", '[[release]]\nversion = "1.11.0"\ndate = 2022-03-10\nsource = "x"\ninstall = "whole"\n[[format]]', "P/formats.toml:12: release[0].install: does not apply to a planned release"),
        ("promises.toml", "max_ulp = 4\n", "", "P/promises.toml:26: tolerance[0]: key 'max_ulp' is missing"),
        ("promises.toml", "max_ulp = 4", 'max_ulp = 4\nfamilies = ["mobile"]', "P/promises.toml:30: tolerance[0].families: applies to kinds other than values only"),
        ("promises.toml", "max_abs = 1e-6", "max_abs = 1e30", "P/promises.toml:30: tolerance[0].max_abs: must be at most 0.01; found 1e+30"),
        ("promises.toml", "max_rel = 1e-4", "max_rel = 0.5", "P/promises.toml:31: tolerance[0].max_rel: must be at most 0.1 for '*'; found 0.5"),
        ("promises.toml", "max_ulp = 4", "max_ulp = 1000000", "P/promises.toml:29: tolerance[0].max_ulp: must be at most 256; found 1000000"),
        ("promises.toml", "max_abs = 1e-6", "max_abs = inf", "P/promises.toml:30: tolerance[0].max_abs: must be a finite number; found inf"),
        ("promises.toml", 'operators = ["*"]', 'operators = ["gelu"]', "P/promises.toml:28: tolerance[0].operators[0]: must be an operator such as 'aten::div' or 'aten::div.Tensor', or '*'; found 'gelu'"),
        ("promises.toml", 'id = "newer-loads"', 'id = "Newer_Loads"', "P/promises.toml:22: rule[0].id: must be lower-case words joined by hyphens such as 'newer-loads'; found 'Newer_Loads'"),
        ("promises.toml", 'asks = "It loads."', 'asks = ""', "P/promises.toml:23: rule[0].asks: must not be empty; found ''"),
        ("promises.toml", 'source = "here"', 'source = "here"\nparameters = { a = { b = 1 } }', "P/promises.toml:25: rule[0].parameters: parameter 'a' must be a scalar or an array of scalars"),
        ("waivers/known.toml", 'findings = ["recipes-written:not-produced:div"]', "findings = []", "P/waivers/known.toml:5: waiver.findings: must name at least one"),
        ("waivers/known.toml", 'recipes = ["add"]', "recipes = []", "P/waivers/known.toml:4: waiver.covers[0].recipes: must name at least one"),
        ("waivers/known.toml", '"refused"', '"same"', "P/waivers/known.toml:4: waiver.covers[0].outcome: must be one of different, refused, raised, crashed, timed-out, relaxed, unstable; found 'same'"),
        ("waivers/known.toml", 'readers = "1.10.0.."', 'readers = "1.10.0..1.9.0"', "P/waivers/known.toml:4: waiver.covers[0].readers: must go from an older release to a newer one; found '1.10.0..1.9.0'"),
        ("waivers/known.toml", 'title = "It is known"', 'title = "It\\nis known"', "P/waivers/known.toml:3: waiver.title: must be one line of text; found 'It\\nis known'"),
        ("waivers/known.toml", ', readers = "1.10.0.."', "", "P/waivers/known.toml:4: waiver.covers[0].readers: key 'readers' is missing"),
        ("waivers/known.toml", "expires = 2027-01-01", 'expires = "soon"', "P/waivers/known.toml:9: waiver.expires: must be a date such as 2027-01-31, without quotes; found 'soon'"),
        # text
        ("waivers/known.toml", "expires = 2027-01-01", "expires = 2027-13-01", "P/waivers/known.toml:9: is not valid TOML: expected newline or end of document after a statement"),
        ("waivers/known.toml", 'owner = "someone"', 'owner = "someone', "P/waivers/known.toml:8: is not valid TOML: illegal character '\\n'"),
        ("waivers/known.toml", "expires = 2027-01-01\n", "expires = [", "P/waivers/known.toml:9: is not valid TOML: invalid value"),
        # tables
        ("promises.toml", "[[rule]]", "[[rules]]", "P/promises.toml:21: unknown table 'rules'; did you mean 'rule'?"),
        ("promises.toml", "[[rule]]", "[rule]", "P/promises.toml:21: rule: must be written [[rule]], once for each"),
        ("promises.toml", "[policy]", "[[policy]]", "P/promises.toml:1: policy: must be one table, written [policy]"),
        ("formats.toml", "[[format]]", "[waiver]\n[[format]]", "P/formats.toml:8: each waiver must be in its own file, waivers/<id>.toml"),
        ("waivers/known.toml", "[waiver]", "[policy]\n[waiver]", "P/waivers/known.toml:1: a file in waivers/ contains one [waiver] and nothing else; 'policy' belongs in a file in the parent directory"),
        ("waivers/known.toml", "[waiver]", "[[waiver]]", "P/waivers/known.toml:1: waiver: must be one table, written [waiver]"),
        # between tables
        ("releases.toml", '"1.10.1"', '"1.10.0"', "P/releases.toml:16: release[2].version: release '1.10.0' is already defined at P/releases.toml:8"),
        ("formats.toml", '"bytecode"', '"file-format"', "P/formats.toml:10: format[1].version: format 'file-format' 6 is already defined at P/formats.toml:1"),
        ("promises.toml", 'id = "mmap"', 'id = "default"', "P/promises.toml:15: options[1].id: options 'default' is already defined at P/promises.toml:10"),
        ("formats.toml", "[[format]]", '[[rule]]\nid = "newer-loads"\nasks = "again"\nsource = "x"\n[[format]]', "P/promises.toml:22: rule[0].id: rule 'newer-loads' is already defined at P/formats.toml:8"),
        ("promises.toml", "[[tolerance]]", '[[tolerance]]\ndtype = "float32"\noperators = ["aten::add", "*"]\nmax_ulp = 1\nmax_abs = 0\nmax_rel = 0\nreason = "x"\n[[tolerance]]', "P/promises.toml:35: tolerance[1].operators: '*' for 'float32' already has a tolerance at P/promises.toml:26"),
        ("releases.toml", "date = 2021-12-15", "date = 2021-10-20", "P/releases.toml:17: release[2].date: 1.10.1 is dated 2021-10-20, before 1.10.0 (2021-10-21)"),
        ("releases.toml", 'install = "stubs"', 'install = "stubs"\npython = "3.7"', "P/releases.toml:20: release[2].python: must be one of 'pythons', 3.6, 3.9; found '3.7'"),
        ("promises.toml", 'writers = ["1.9.0"]', 'writers = ["1.9.1"]', "P/promises.toml:7: policy.writers[0]: release '1.9.1' is not in the calendar; did you mean '1.9.0'?"),
        ("promises.toml", 'readers = ["1.9.0", "1.10.0"]', 'readers = ["1.9.0",\n"7.7.7"]', "P/promises.toml:9: policy.readers[1]: release '7.7.7' is not in the calendar"),
        ("promises.toml", 'since = "1.10.0"', 'since = "1.10.9"', "P/promises.toml:17: options[1].since: release '1.10.9' is not in the calendar; did you mean '1.10.1'?"),
        ("formats.toml", 'read_from = { release = "1.10.0" }', 'read_from = { release = "7.7.7" }', "P/formats.toml:12: format[1].read_from.release: release '7.7.7' is not in the calendar"),
        ("formats.toml", 'written_from = { release = "1.9.0" }', 'written_from.release = "7.7.7"', "P/formats.toml:6: format[0].written_from.release: release '7.7.7' is not in the calendar"),
        ("waivers/known.toml", '"1.10.0.."', '"7.7.7.."', "P/waivers/known.toml:4: waiver.covers[0].readers: release '7.7.7' is not in the calendar"),
        ("waivers/known.toml", '"..1.9.0"', '"1.9.9, 1.10.0"', "P/waivers/known.toml:4: waiver.covers[0].writers: release '1.9.9' is not in the calendar; did you mean '1.9.0'?"),
        ("waivers/known.toml", 'recipes = ["add"], ', "", "P/waivers/known.toml:4: waiver.covers[0]: needs 'recipes' or 'says': otherwise it covers every archive"),
        ("waivers/known.toml", 'writers = "..1.9.0", ', "", "P/waivers/known.toml:4: waiver.covers[0]: needs either 'writers' or 'synthetic', but not both"),
        ("waivers/known.toml", 'writers = "..1.9.0", ', 'writers = "..1.9.0", synthetic = true, ', "P/waivers/known.toml:4: waiver.covers[0]: needs either 'writers' or 'synthetic', but not both"),
        ("waivers/known.toml", '"1.10.0.."', '"1.10.0..", options = ["mmaps"]', "P/waivers/known.toml:4: waiver.covers[0].options: there are no options 'mmaps'; did you mean 'mmap'?"),
        ("waivers/known.toml", 'covers = [{ outcome = "refused", recipes = ["add"], writers = "..1.9.0", readers = "1.10.0.." }]\nfindings = ["recipes-written:not-produced:div"]\n', "", "P/waivers/known.toml:1: waiver: needs 'covers' or 'findings'; otherwise it covers nothing"),
        ("formats.toml", 'no_writer = "never left a branch"\n', "", "P/formats.toml:8: format[1]: needs 'written_from', or 'no_writer' with the reason why no release ever wrote it"),
        ("formats.toml", 'written_from = { release = "1.9.0" }', 'written_from = { release = "1.9.0" }\nno_writer = "x"', "P/formats.toml:7: format[0].no_writer: has both 'written_from' and 'no_writer'; only one can be true"),
        ("formats.toml", 'no_writer = "never left a branch"', 'no_writer = "x"\npending = "y"', "P/formats.toml:14: format[1].pending: is 'pending' and has 'no_writer'; only one can be true"),
        ("formats.toml", 'kind = "bytecode"', 'kind = "container"', "P/formats.toml:10: format[1].version: must be a name such as 'tar' for kind 'container'; found 6"),
        ("formats.toml", "version = 6", 'version = "six"', "P/formats.toml:10: format[1].version: must be a number for kind 'bytecode'; found 'six'"),
        ("formats.toml", "version = 6", "version = 0", "P/formats.toml:10: format[1].version: must be a positive integer, or a name such as 'tar'; found 0"),
        ("formats.toml", "version = 6", "version = true", "P/formats.toml:10: format[1].version: must be a positive integer, or a name such as 'tar'; found true"),
        ("formats.toml", 'kind = "bytecode"\nversion = 6', 'kind = "container"\nversion = "no name"', "P/formats.toml:10: format[1].version: must be a positive integer, or a name such as 'tar'; found 'no name'"),
        ("formats.toml", "[[format]]", '[[message]]\nid = "w"\nkind = "error"\nsays = [{ type = "E", text = "a", releases = ".." }]\nbecause = "x"\n[[format]]', "P/formats.toml:11: message[0].says: needs at least two strings"),
        ("formats.toml", "[[format]]", '[[message]]\nid = "w"\nkind = "error"\nsays = [{ type = "E", text = "a", releases = "1.9.0" }, { type = "E", text = "a", releases = "1.10.0.." }]\nbecause = "x"\n[[format]]', "P/formats.toml:11: message[0].says[1].text: 'a' is already listed: each message must have exactly one set of releases"),
        ("formats.toml", "[[format]]", '[[message]]\nid = "w"\nkind = "error"\nsays = [{ type = "E", text = "a", releases = ".." }, { type = "E", text = "b", releases = "7.7.7.." }]\nbecause = "x"\n[[format]]', "P/formats.toml:11: message[0].says[1].releases: release '7.7.7' is not in the calendar"),
        ("formats.toml", "[[format]]", '[[message]]\nid = "w"\nkind = "error"\nsays = [{ type = "E", text = "a", releases = ".." }, { type = "an E", text = "b", releases = ".." }]\nbecause = "x"\n[[format]]', "P/formats.toml:11: message[0].says[1].type: must be a module such as 'numpy.core'; found 'an E'"),
        ("waivers/known.toml", 'id = "known"', 'id = "other"', "P/waivers/known.toml:2: waiver.id: waiver 'other' is in known.toml; the file must have the waiver's name"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_file_line_and_path(
    *, write: Write, files: dict[str, str], file: str, old: str, new: str, expected: str
) -> None:
    assert old in files[file]
    head, _, tail = files[file].rpartition(old)  # the last one: positions must count the earlier ones
    result = mistakes(write(files | {file: head + new + tail}))
    assert expected in result
    assert len(result) == 1 + ("unknown table" in expected), result  # a policy without its rules lacks them, too


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("release", "no [[release]]"),
        ("options", "no [[options]]"),
        ("rule", "no [[rule]]"),
        ("policy", "no [policy]"),
    ],
)
def test_a_policy_that_would_check_nothing_is_none(write: Write, files: dict[str, str], table: str, message: str) -> None:
    for name, text in files.items():
        files[name] = "\n".join(
            block for block in re.split(r"\n(?=\[)", text) if not block.startswith((f"[[{table}]]", f"[{table}]"))
        )
    (result,) = mistakes(write(files))
    assert message in result


def test_an_empty_array_is_not_a_policy_without_mistakes(write: Write, files: dict[str, str]) -> None:
    files["promises.toml"] = "rule = []\n" + re.sub(r"\[\[rule\]\](.|\n)*?(?=\[\[tolerance)", "", files["promises.toml"])
    assert mistakes(write(files)) == ["P/promises.toml:1: rule: must be written [[rule]], once for each"]


def test_mistakes_of_different_kinds_in_one_file_are_named_together(write: Write, files: dict[str, str]) -> None:
    files["promises.toml"] = (
        files["promises.toml"]
        .replace('asks = "It loads."', "ask = 1")
        .replace('writers = ["1.9.0"]', 'writers = ["1.8.0", 3]')
        .replace('id = "mmap"', 'id = "default"')
        .replace("max_ulp = 4", "max_ulp = 4.5")
        + "\n[[tolerence]]\n"
    )
    assert mistakes(write(files)) == [
        "P/promises.toml:7: policy.writers[0]: release '1.8.0' is not in the calendar; did you mean '1.9.0'?",
        "P/promises.toml:7: policy.writers[1]: must be a string; found 3",
        "P/promises.toml:15: options[1].id: options 'default' is already defined at P/promises.toml:10",
        "P/promises.toml:21: rule[0].asks: key 'asks' is missing",
        "P/promises.toml:23: rule[0].ask: unknown key 'ask'; did you mean 'asks'?",
        "P/promises.toml:29: tolerance[0].max_ulp: must be an integer; found 4.5",
        "P/promises.toml:34: unknown table 'tolerence'; did you mean 'tolerance'?",
    ]


def test_mistakes_of_all_files_are_named_together(write: Write, files: dict[str, str]) -> None:
    files["releases.toml"] += "\n[["
    files["formats.toml"] = files["formats.toml"].replace("version = 6", "version = 0", 1)
    files["waivers/known.toml"] = files["waivers/known.toml"].replace('owner = "someone"\n', "")
    result = mistakes(write(files))
    assert [problem.split(":")[0] for problem in result] == ["P/formats.toml", "P/releases.toml", "P/waivers/known.toml"]


def test_a_file_that_cannot_be_parsed_makes_nothing_else_look_missing(write: Write, files: dict[str, str]) -> None:
    assert len(mistakes(write(files | {"releases.toml": "[[release"}))) == 1


def test_a_waiver_file_without_a_waiver(write: Write, files: dict[str, str]) -> None:
    assert mistakes(write(files | {"waivers/known.toml": "# later\n"})) == ["P/waivers/known.toml:1: contains no [waiver]"]


def test_a_message_stays_on_one_line(write: Write, files: dict[str, str]) -> None:
    files["releases.toml"] += '\n["a\\nb"]\n'
    files["waivers/known.toml"] = files["waivers/known.toml"].replace('"known"', '"a\\nb"') + '\n"c\\nd" = 1\n'
    result = mistakes(write(files))
    assert len(result) == 4
    assert not [message for message in result if "\n" in message]


def test_a_policy_with_waivers_needs_their_lock(write: Write, files: dict[str, str]) -> None:
    del files[WAIVERS_LOCK]
    (message,) = mistakes(write(files))
    assert message == f"P/{WAIVERS_LOCK}: file not found, but the policy has 1 waiver: torch-compat accept --write"
    assert load_policy(write(files), counted=False).accepted is None


def test_a_policy_without_waivers_needs_no_lock(write: Write, files: dict[str, str]) -> None:
    del files[WAIVERS_LOCK], files["waivers/known.toml"]
    assert load_policy(write(files)).accepted is None


def test_a_lock_of_a_waiver_that_is_not(write: Write, files: dict[str, str]) -> None:
    files[WAIVERS_LOCK] = (
        files[WAIVERS_LOCK].replace("known backward", "knwon backward").replace("known finding", "other finding")
    )
    assert mistakes(write(files)) == [
        f"P/{WAIVERS_LOCK}: the policy has no waiver 'knwon'; did you mean 'known'?: torch-compat accept --write",
        f"P/{WAIVERS_LOCK}: the policy has no waiver 'other': torch-compat accept --write",
    ]


def test_text_that_is_not_utf_8(write: Write, files: dict[str, str]) -> None:
    folder = write(files)
    (folder / "extra.toml").write_bytes(b"# one\n# two \xff\n")
    assert mistakes(folder) == ["P/extra.toml:2: is not UTF-8 text"]


def test_a_folder_with_the_name_of_a_file(write: Write, files: dict[str, str]) -> None:
    folder = write(files)
    (folder / "extra.toml").mkdir()
    assert mistakes(folder) == ["P/extra.toml:1: cannot be read: Is a directory"]


def test_a_long_value_is_cut_short(write: Write, files: dict[str, str]) -> None:
    files["releases.toml"] = files["releases.toml"].replace('"stubs"', f'"{"x" * 500}"')
    (result,) = mistakes(write(files))
    assert len(result) < 160


VALUES = [
    "1",
    "-1",
    "0.5",
    "nan",
    '""',
    '"x"',
    '"1.9.0"',
    "true",
    "2020-02-02",
    "2020-02-02T02:02:02",
    "02:02",
    "[]",
    "{}",
    "[[]]",
]
VALUES += ['["x"]', "[1, {}]", "{ release = 1 }", '{ release = "1.9.0", x = [{}] }', "[", '"""', ""]


def damage(draw: Callable[..., Any], text: str) -> str:
    """The text with one value replaced, or one line removed, repeated, renamed or exchanged."""
    lines = text.split("\n")
    at, other = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
    match draw(st.sampled_from(["value", "drop", "twice", "key", "exchange"])):
        case "value":
            lines[at] = f"{lines[at].partition('=')[0]} = {draw(st.sampled_from(VALUES))}"
        case "drop":
            lines[at] = ""
        case "twice":
            lines.insert(at, lines[at])
        case "key":
            lines[at] = "x" + lines[at]
        case _:
            lines[at], lines[other] = lines[other], lines[at]
    return "\n".join(lines)


@given(data=st.data())
def test_damage_gives_a_policy_or_problems_inside_the_files(pristine: dict[str, str], data: st.DataObject) -> None:
    files = dict(pristine)
    for _ in range(data.draw(st.integers(1, 4))):
        name = data.draw(st.sampled_from(sorted(files)))
        files[name] = damage(data.draw, files[name])
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        (folder / "waivers").mkdir()
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        try:
            load_policy(folder)
        except PolicyError as error:
            for problem in error.problems:
                inside = problem.file.removeprefix(folder.as_posix()).removeprefix("/")
                assert problem.line <= (files[inside].count("\n") + 1 if inside else 0)
                assert "\n" not in problem.message
