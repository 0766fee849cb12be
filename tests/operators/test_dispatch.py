from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from torch_compat.errors import UsageError
from torch_compat.operators.dispatch import (
    ABSENT,
    COMPOSITE,
    DECOMPOSES,
    NEEDS_KERNEL,
    NOT_DISPATCHED,
    UNKNOWN,
    Dispatches,
)

if TYPE_CHECKING:
    from pathlib import Path

KERNELS = """\
# history 1 sets
# releases 1.0.0 1.6.0 1.7.1 2.0.0 2.1.0
# obtained\t1.0.0\tNot obtained.
# obtained\t1.6.0..\tThe dump.
# incomplete\t1.0.0\tNo dump.
# incomplete\t1.6.0\tIt dies.
# incomplete\t2.1.0\tThe build without CUDA.
aten::bare\t1.7.1.. -
aten::crashes\t1.6.0 crashed:%20SIGSEGV\t1.7.1 catchall
aten::f\t1.7.1 catchall\t1.7.1.. Tracer\t2.0.0 CompositeImplicitAutograd\t2.1.0 CPU
aten::f.out\t2.0.0.. CPU
aten::lost\t2.0.0 CompositeExplicitAutograd\t2.1.0 -
aten::s\t2.0.0.. CPU CompositeExplicitAutograd\t2.1.0 CompositeExplicitAutogradNonFunctional
aten::t\t2.0.0.. CPU
"""
FUNCTIONS = """\
# history 1 sets
# releases 1.0.0 1.6.0 1.7.1 2.0.0 2.1.0
# obtained\t1.0.0..1.7.1\tNot obtained.
# obtained\t2.0.0..\tThe file.
# incomplete\t1.0.0..1.7.1\tNo file.
(file)\t2.0.0.. path:native_functions.yaml
aten::bare\t2.0.0.. CPU
aten::f\t2.0.0.. CompositeImplicitAutograd autogen:aten::f.out tags:core tags:pointwise
aten::s\t2.0.0 CompositeExplicitAutograd\t2.1.0 structured_delegate:aten::t
"""
SCHEMAS = """\
# history 1 texts
# releases 1.0.0 1.6.0 1.7.1 2.0.0 2.1.0
# obtained\t1.0.0..\tAsked.
# incomplete\t1.0.0\tNames were collected.
aten::bare(Tensor x) -> Tensor\t1.0.0..
aten::crashes(Tensor x) -> Tensor\t1.6.0..1.7.1
aten::f(Tensor x) -> Tensor\t1.7.1..
aten::f.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)\t2.0.0..
aten::lost(Tensor x) -> Tensor\t2.0.0..
aten::s(Tensor x) -> Tensor\t2.0.0..
aten::t(Tensor x) -> Tensor\t2.0.0..
prim::only_jit(Tensor x) -> Tensor\t1.0.0..
"""


@pytest.fixture
def small(tmp_path: Path) -> Dispatches:
    for name, text in (("kernels", KERNELS), ("functions", FUNCTIONS), ("schemas", SCHEMAS)):
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    return Dispatches(tmp_path / "kernels.txt", tmp_path / "functions.txt", tmp_path / "schemas.txt")


@pytest.fixture(scope="module")
def recorded() -> Dispatches:
    return Dispatches.load()


@pytest.mark.parametrize(
    ("operator", "release", "kind"),
    [
        ("aten::f", "1.7.1", DECOMPOSES),
        ("aten::f", "2.0.0", DECOMPOSES),
        ("aten::f", "2.1.0", NEEDS_KERNEL),
        ("aten::f", "1.0.0", UNKNOWN),
        ("aten::crashes", "1.6.0", UNKNOWN),
        ("aten::crashes", "2.0.0", ABSENT),
        ("aten::bare", "1.7.1", NEEDS_KERNEL),
        ("aten::no_such", "2.0.0", ABSENT),
        ("aten::no_such", "1.0.0", UNKNOWN),
        ("prim::only_jit", "2.0.0", NOT_DISPATCHED),
        ("prim::only_jit", "2.1.0", NOT_DISPATCHED),
        ("prim::only_jit", "1.0.0", UNKNOWN),
        ("aten::lost", "2.1.0", UNKNOWN),  # all its kernels may stand in the other build
    ],
)
def test_kinds(small: Dispatches, operator: str, release: str, kind: str) -> None:
    dispatch = small.of(operator, release)
    assert (dispatch.kind, dispatch.why is not None) == (kind, kind == UNKNOWN)
    assert (dispatch.operator, dispatch.release) == (operator, release)


def test_an_answer_says_how_it_was_obtained(small: Dispatches) -> None:
    assert small.of("aten::f", "1.7.1").obtained == ("dispatcher",)
    assert small.of("aten::f", "2.0.0").obtained == ("dispatcher", "native_functions.yaml")
    assert small.of("aten::f", "1.0.0").obtained == ()
    assert small.of("aten::f", "1.7.1").how == ("catch-all",)
    assert small.of("aten::f", "2.0.0").keys == ("CompositeImplicitAutograd", "Tracer")


def test_the_dispatcher_is_believed_and_a_disagreement_said(small: Dispatches) -> None:
    dispatch = small.of("aten::f", "2.1.0")
    assert dispatch.kind == NEEDS_KERNEL
    assert dispatch.disagreement == "native_functions.yaml lists CompositeImplicitAutograd, which serves every backend"
    generated = small.of("aten::f.out", "2.0.0")
    assert (generated.kind, generated.into) == (NEEDS_KERNEL, None)
    assert generated.disagreement == "native_functions.yaml has it call aten::f, which serves every backend"


def test_generated_kernels_hand_on(small: Dispatches) -> None:
    dispatch = small.of("aten::s", "2.1.0")
    assert (dispatch.kind, dispatch.how, dispatch.into) == (DECOMPOSES, ("explicit", "explicit, not functional"), "aten::t")
    assert [step.operator for step in small.steps("aten::s", "2.1.0")] == ["aten::s", "aten::t"]
    assert dispatch.shown() == "decomposes (explicit; explicit, not functional, into aten::t)"


def test_changes(small: Dispatches) -> None:
    changed = {change.operator: change for change in small.changes("2.0.0", "2.1.0")}
    assert {name: item.breaks for name, item in changed.items()} == {"aten::f": True, "aten::s": True}
    assert changed["aten::s"].new.into == "aten::t", "it decomposes still, but into an operator that needs a kernel"
    assert [change.operator for change in small.changes("1.7.1", "2.0.0")] == ["aten::f"]
    assert not small.changes("1.7.1", "2.0.0")[0].breaks
    assert small.changes("1.0.0", "2.0.0") == []


def test_what_is_not_known_is_said(small: Dispatches) -> None:
    assert small.why_unknown("1.0.0") == "No dump."
    assert small.why_unknown("1.6.0") == "It dies."
    assert small.why_unknown("1.7.1") is None
    assert small.why_unknown("2.1.0") is None
    with pytest.raises(UsageError, match=r"there are no records for the release '9\.9'"):
        small.of("aten::f", "9.9")


def test_tags(small: Dispatches) -> None:
    assert small.tags("aten::f", "2.0.0") == frozenset({"core", "pointwise"})
    assert small.tags("aten::t", "2.0.0") == frozenset()
    assert small.tags("aten::f", "1.7.1") is None


# --------------------------------------------------------------------------------------------------------- what is recorded


def test_every_release_is_either_known_or_says_why(recorded: Dispatches) -> None:
    known = [release for release in recorded.releases if recorded.why_unknown(release) is None]
    assert known == [release for release in recorded.releases if release not in {
        "1.0.0", "1.0.1", "1.1.0", "1.2.0", "1.3.1", "1.4.0", "1.5.0", "1.5.1", "1.6.0",
    }]  # fmt: skip
    for release in known:
        kinds = {
            recorded.of(operator, release).kind for operator in ("aten::linear", "aten::convolution_overrideable", "aten::mm")
        }
        assert kinds <= {DECOMPOSES, NEEDS_KERNEL}
        assert recorded.of("aten::linear", release).kind == DECOMPOSES
        assert recorded.of("aten::mm.out", release).kind == NEEDS_KERNEL


def test_the_sources_agree_but_for_a_handful(recorded: Dispatches) -> None:
    """A rule that read either source wrongly would be seen here."""
    for release, most in (("1.12.1", 98), ("2.4.1", 6), ("2.15.0", 9)):
        operators = recorded.kernels.keys(release)
        disagreeing = [operator for operator in operators if recorded.of(operator, release).disagreement is not None]
        both = [operator for operator in operators if len(recorded.of(operator, release).obtained) == 2]
        assert len(disagreeing) == most
        assert len(both) > 2000
        if release != "1.12.1":  # "dispatch: {}", which means no kernel at all
            assert all(operator.startswith("aten::_nested_") for operator in disagreeing)


def test_the_seed_case_is_found_by_name(recorded: Dispatches) -> None:
    """A backend that left this operator to decomposition fails from 2.5 on; tests/extension lets it."""
    breaks = [change for change in recorded.changes("2.4.1", "2.5.1") if change.breaks]
    assert [item.operator for item in breaks] == ["aten::_embedding_bag_backward"]
    assert (breaks[0].old.how, breaks[0].new.kind) == (("implicit",), NEEDS_KERNEL)
    assert recorded.of("aten::where.self", "1.11.0").kind == DECOMPOSES
    assert "aten::where.self" in {change.operator for change in recorded.changes("1.11.0", "1.12.1") if change.breaks}


def test_keys_that_serve_every_backend_are_among_what_is_recorded(recorded: Dispatches) -> None:
    assert set(COMPOSITE) <= {word for _, word, _ in recorded.kernels.facts()}


def test_core_operators(recorded: Dispatches) -> None:
    tags = recorded.tags("aten::gelu", "2.13.0")
    assert tags is not None
    assert "core" in tags
