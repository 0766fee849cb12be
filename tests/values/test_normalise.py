"""Normalized messages of real releases: nothing specific to the machine or the run is left."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_compat.values.normalise import (
    LONGEST,
    LONGEST_CAUSE,
    MARK,
    alike,
    brief,
    brief_result,
    headline,
    last_word,
    normalise,
    same_error,
)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("at 0x7f3a2b4c5d6e", "at 0x.."),
        ("mask 0xff", "mask 0xff"),
        ("frame #0: f() + 0x7f (0x7f00 in /lib/x.so)\nframe #12: g()\nrest", "rest"),
        ("/srv/me/.venv/lib/python3.8/site-packages/torch/serialization.py", "torch/serialization.py"),
        ('File "/usr/lib/python3.11/dist-packages/torch/a.py", line 12, in f', 'File "torch/a.py", line N, in f'),
        ("/usr/lib/python3.8/pickle.py", "python/pickle.py"),
        ("torch/csrc/jit/a.cpp:123: no", "torch/csrc/jit/a.cpp:N: no"),
        ("a.py:7 b.h:8 c.cu:9 d.txt:9", "a.py:N b.h:N c.cu:N d.txt:9"),
        ("  two words  \nand\t\n", "two words\nand"),
        ("/pytorch/aten/src/ATen/core/ivalue_inl.h", "/pytorch/aten/src/ATen/core/ivalue_inl.h"),
    ],
)  # fmt: skip
def test_what_varies_goes(said: str, kept: str) -> None:
    assert normalise(said) == kept


def test_what_only_this_run_has_is_replaced_the_longest_first() -> None:
    assert normalise("/tmp/x/a.pt in /tmp/x", {"/tmp/x": "<folder>", "/tmp/x/a.pt": "<archive>"}) == "<archive> in <folder>"


def test_a_long_text_is_cut() -> None:
    text = normalise("a" * 2000)
    assert len(text) == LONGEST
    assert text.endswith("a …")
    assert normalise("a" * LONGEST) == "a" * LONGEST


TRACE = "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript:\n"


@pytest.mark.parametrize("cause", ["RuntimeError: no such size", "torch.jit.Error: " + "b" * 900], ids=["short", "long"])
def test_of_what_the_interpreter_says_the_traceback_goes_and_the_cause_stays(cause: str) -> None:
    text = normalise(TRACE + "  File x\n" * 100 + "  raise ValueError\n" + cause)
    assert text == f"{TRACE.splitlines()[0]}\n{cause[:LONGEST_CAUSE]}"
    assert headline(text) == headline(TRACE + "  File x\n" + cause) == cause[:LONGEST_CAUSE]
    assert normalise(text) == brief(text) == text


@pytest.mark.parametrize("between", ["\nThe above operation failed in interpreter, with", ":\noperation failed in interpreter:"])
def test_where_the_cause_comes_first_the_traceback_behind_it_goes(between: str) -> None:
    text = normalise(
        f"no such size\nof this tensor{between} the following stack trace:\nat code.py:3\n  x = f(x)\n ~~~ <--- HERE"
    )
    assert text == "no such size\nof this tensor" + (":" if between.startswith(":") else "")
    assert brief(text) == text


def test_a_text_that_lost_its_cause_says_so_when_it_is_brief() -> None:
    assert brief(TRACE + "  File x\n  File" + MARK) == TRACE.splitlines()[0] + MARK


def test_a_brief_result_has_brief_messages_and_everything_else() -> None:
    result = {"calls": [{"first": {"error": {"message": TRACE + "RuntimeError: no", "type": "E"}, "text": TRACE}}, 3, None]}
    told = brief_result(result)
    assert told["calls"][0]["first"]["error"] == {"message": TRACE.splitlines()[0] + "\nRuntimeError: no", "type": "E"}
    assert told["calls"][0]["first"]["text"] == TRACE
    assert told["calls"][1:] == [3, None]


def test_errors_are_the_same_by_class_and_cause() -> None:
    short, long = "RuntimeError: size 3 of a", TRACE + "  File x\n" * 100
    assert same_error(("E", normalise(long + short)), ("E", TRACE + "RuntimeError: size 4 of a"))
    assert not same_error(("E", normalise(long + short)), ("E", TRACE + "RuntimeError: out of memory"))
    assert not same_error(("E", normalise(long + short)), ("F", TRACE + short))


def test_of_a_text_that_lost_its_cause_only_the_class_is_compared() -> None:
    lost = (TRACE + "  File x\n" * 100)[: LONGEST - 2] + MARK
    assert same_error(("E", lost), ("E", TRACE + "RuntimeError: out of memory"))
    assert not same_error(("E", lost), ("F", TRACE + "RuntimeError: out of memory"))


PIECES = st.sampled_from(
    [
        "0x",
        "deadbeef",
        "line ",
        "12",
        "\n",
        " ",
        "\t",
        "frame #1: x",
        "/usr/lib/python3.8/",
        "site-packages/",
        "/",
        "a.py:",
        "\x1b[0m",
        "m",
        "…",
    ]
)


@settings(deadline=None)
@given(
    st.lists(PIECES | st.text(max_size=3), max_size=12).map("".join)
    | st.text(min_size=700, max_size=900)
    | st.text(min_size=700, max_size=900).map(TRACE.__add__)
)
def test_normalising_again_changes_nothing(said: str) -> None:
    once = normalise(said)
    assert normalise(once) == once
    assert len(once) <= LONGEST


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        (" \n \n", ""),
        ("one\ntwo", "one"),
        ("\n  one  \ntwo", "one"),
        (
            (
                "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript (most recent call last):\n"
                "    return a / b\n           ~~~~~ <--- HERE\nRuntimeError: Integer division is no longer supported\n"
            ),
            "RuntimeError: Integer division is no longer supported",
        ),
        ("The following operation failed in the TorchScript interpreter.\nno more", "no more"),
        ("Exception raised from f:\ntorch.jit.Error: deep", "torch.jit.Error: deep"),
    ],
)
def test_the_headline_is_the_cause(text: str, line: str) -> None:
    assert headline(text) == line


@settings(deadline=None)
@given(st.text())
def test_a_headline_is_one_line_of_the_text(text: str) -> None:
    line = headline(text)
    assert line in text
    assert len(line.splitlines()) <= 1
    assert bool(line) is bool(text.split())


@pytest.mark.parametrize(
    ("line", "subject"),
    [
        ("", ""),
        ("version 10 is too new, 2.6 is not", "version N is too new, N is not"),
        ("with 2.13.0+cpu", "with N"),
        ("int64 and conv2d and aten::div.Tensor and 0x..", "int64 and conv2d and aten::div.Tensor and 0x.."),
        ('FAILED at "/pytorch/aten/src/ATen/core/ivalue_inl.h":N, please', "FAILED at <file>, please"),
        ("FAILED at /pytorch/aten/src/ATen/core/ivalue_inl.h:N, please", "FAILED at <file>, please"),
        ("got String (toTuple at /pytorch/aten/src/ATen/core/ivalue_inl.h:N)", "got String"),
        (
            "[enforce fail at inline_container.cc:N] . file not found: gelu/version",
            "[enforce fail at <file>] . file not found: <archive>/version",
        ),
        ("no class __torch__.torch.nn.___torch_mangle_0.Linear here", "no class <class> here"),
        ("no operators aten::a, aten::b.out, aten::c found", "no operators <operators> found"),
        ("no operator aten::a found", "no operator aten::a found"),
        ("no aten::a and prim::b, sorry", "no <operators> sorry"),
    ],
)
def test_what_varies_between_messages_of_one_cause_goes(line: str, subject: str) -> None:
    assert alike(line) == subject


@settings(deadline=None)
@given(st.text())
def test_what_varies_goes_at_once(line: str) -> None:
    assert alike(alike(line)) == alike(line)


def test_the_last_words_of_an_abort() -> None:
    message = "terminate called after throwing an instance of 'c10::Error'\n  what():  isTuple() INTERNAL ASSERT FAILED\nframe"
    assert last_word(message) == "isTuple() INTERNAL ASSERT FAILED"
    assert last_word("Floating point exception") == ""
