from __future__ import annotations

from typing import Any

import pytest

from torch_compat.errors import NothingSelected, UsageError
from torch_compat.operators.extensions import (
    CANNOT_BE_TOLD,
    DOES_NOT_FIT,
    FITS,
    ListError,
    RecordedReleases,
    check,
    from_dispatcher,
    from_list,
    known_operator,
    known_release,
)
from torch_compat.operators.history import History
from torch_compat.operators.manifest import ExtensionManifest, ExtensionOperator, Kernel

NEWEST = History.load().releases[-1]
BAG = "aten::_embedding_bag"
BACKWARD = "aten::_embedding_bag_backward"


@pytest.fixture(scope="module")
def recorded() -> RecordedReleases:
    return RecordedReleases()


def listed(text: str, release: str, recorded: RecordedReleases, **more: Any) -> ExtensionManifest:
    return from_list(text, "list.txt", release, recorded, extension="mine", **more)


def verdicts(manifest: ExtensionManifest, recorded: RecordedReleases) -> dict[str, str]:
    return {release: check(manifest, release, recorded).verdict for release in recorded.releases}


# ----------------------------------------------------------------------------------------------------------- the two seed cases


def test_an_operator_that_gained_an_argument(recorded: RecordedReleases) -> None:
    """PyTorch issue 38973, its first case: an extension for 1.4 in 1.5; tests/extension builds it and loads it there."""
    manifest = listed("backend XLA\nregisters aten::_embedding_bag", "1.4.0", recorded)
    assert check(manifest, "1.4.0", recorded).verdict == FITS
    fit = check(manifest, "1.5.0", recorded)
    (fault,) = fit.findings
    assert fit.verdict == DOES_NOT_FIT
    assert (fault.operator, fault.cause) == (BAG, "schema")
    assert "takes 8 arguments instead of 7" in fault.reason
    assert "include_last_offset" in fault.reason


def test_an_operator_that_no_longer_decomposes(recorded: RecordedReleases) -> None:
    """Its second case, with an operator that has done so since: a backend for 2.4 in 2.5."""
    manifest = listed(f"backend PrivateUse1\ncalls {BACKWARD}", "2.4.1", recorded)
    assert manifest.operators[0].relies_on_decomposition
    assert check(manifest, "2.4.1", recorded).verdict == FITS
    fit = check(manifest, "2.5.1", recorded)
    (fault,) = fit.of("fault")
    assert (fault.operator, fault.cause) == (BACKWARD, "dispatch")
    assert fault.reason == "needs its own kernel for the backend, but has none; in 2.4.1 it decomposes (implicit)"


# --------------------------------------------------------------------------------------------------------------------- checking


def test_a_kernel_or_a_fallback_of_its_own_is_all_that_it_needs(recorded: RecordedReleases) -> None:
    text = f"backend PrivateUse1\ncalls {BACKWARD}"
    assert check(listed(f"{text}\nregisters {BACKWARD}", "2.4.1", recorded), "2.5.1", recorded).verdict == FITS
    assert check(listed(text.replace("Use1", "Use1 fallback"), "2.4.1", recorded), "2.5.1", recorded).verdict == FITS
    assert check(listed(f"calls {BACKWARD}", "2.4.1", recorded), "2.5.1", recorded).verdict == FITS, "no backend, so CPU's kernel"


def test_generated_kernels_are_followed(recorded: RecordedReleases) -> None:
    """gelu hands on to gelu.out, which needs a kernel."""
    text = "backend PrivateUse1\ncalls aten::gelu"
    (fault,) = check(listed(text, "2.13.0", recorded), "2.13.0", recorded).of("fault")
    assert fault.reason.startswith("decomposes into aten::gelu.out, which needs its own kernel")
    assert check(listed(f"{text}\nregisters aten::gelu.out", "2.13.0", recorded), "2.13.0", recorded).verdict == FITS


def test_what_is_not_recorded_cannot_be_told(recorded: RecordedReleases) -> None:
    manifest = listed("backend PrivateUse1\ncalls aten::linear", "2.4.1", recorded)
    told = verdicts(manifest, recorded)
    assert told["1.6.0"] == told["1.5.1"] == told["1.4.0"] == CANNOT_BE_TOLD
    assert told["1.7.1"] == told[NEWEST] == FITS
    (unknown,) = check(manifest, "1.5.1", recorded).of("unknown")
    assert "does not show its dispatcher" in unknown.reason


def test_an_operator_that_is_not_there(recorded: RecordedReleases) -> None:
    manifest = listed("backend PrivateUse1\nregisters aten::nan_to_num\ncalls aten::nanmean", "2.0.0", recorded)
    assert [(finding.use, finding.cause) for finding in check(manifest, "1.5.0", recorded).of("fault")] == [
        ("registers", "absent"),
        ("calls", "absent"),
    ]
    assert "never called" in check(manifest, "1.5.0", recorded).of("fault")[0].reason
    assert check(manifest, "1.0.0", recorded).verdict == CANNOT_BE_TOLD, "the set of 1.0.0 may be incomplete"


def test_a_call_goes_by_backward_compatibility(recorded: RecordedReleases) -> None:
    manifest = listed("calls aten::_embedding_bag", "1.4.0", recorded)
    assert check(manifest, "1.5.0", recorded).verdict == FITS, "the new argument has a default"
    manifest = listed("calls aten::_embedding_bag", "1.5.0", recorded)
    (fault,) = check(manifest, "1.4.0", recorded).of("fault")
    assert fault.cause == "call"
    assert "include_last_offset" in fault.reason


def test_kernels_in_python_are_handed_what_is_not_at_its_default(recorded: RecordedReleases) -> None:
    schema = known_operator(BAG, "1.8.1", recorded)
    manifest = ExtensionManifest(
        "mine", "1.8.1", [ExtensionOperator(BAG, "registers", schema, (Kernel("PrivateUse1", "python"),))], backend="PrivateUse1"
    )
    fit = check(manifest, "1.9.1", recorded)
    assert (fit.verdict, [finding.verdict for finding in fit.findings]) == (FITS, ["note"])
    assert "padding_idx" in fit.findings[0].reason


def test_compiled_kernels_go_by_their_types(recorded: RecordedReleases) -> None:
    schema = known_operator("aten::narrow", "2.0.0", recorded)
    assert "SymInt" in schema

    def kernel(signature: str) -> ExtensionManifest:
        return ExtensionManifest(
            "mine", "2.0.0", [ExtensionOperator("aten::narrow", "registers", schema, (Kernel("CPU", "c++", signature),))]
        )

    plain = kernel("(Tensor _0, int _1, int _2, int _3) -> Tensor _0")
    symbolic = kernel("(Tensor _0, int _1, SymInt _2, SymInt _3) -> Tensor _0")
    assert check(plain, "2.0.0", recorded).verdict == check(symbolic, "2.0.0", recorded).verdict == FITS
    assert check(plain, "1.12.1", recorded).verdict == FITS
    (fault,) = check(symbolic, "1.12.1", recorded).of("fault")
    assert "takes int as argument 3 instead of SymInt" in fault.reason


def test_an_operator_of_its_own_that_a_release_defines(recorded: RecordedReleases) -> None:
    schema = known_operator("aten::gelu", "2.0.0", recorded)
    manifest = listed(f"defines {schema}", "1.2.0", recorded)
    assert check(manifest, "1.2.0", recorded).of("fault")[0].cause == "taken"
    own = listed("defines mine::gelu(Tensor self) -> Tensor", "1.0.0", recorded)
    assert set(verdicts(own, recorded).values()) == {FITS}


def test_names_that_it_imports(recorded: RecordedReleases) -> None:
    manifest = listed("needs torch.library.Library\ncalls aten::add.Tensor", "2.0.0", recorded)
    told = verdicts(manifest, recorded)
    assert (told["1.11.0"], told["1.12.1"]) == (DOES_NOT_FIT, FITS)
    (fault,) = check(manifest, "1.11.0", recorded).of("fault")
    assert (fault.use, fault.operator) == ("needs", "torch.library.Library")
    unknown = listed("needs elsewhere.name\ncalls aten::add.Tensor", "2.0.0", recorded)
    assert check(unknown, "2.0.0", recorded).verdict == CANNOT_BE_TOLD


def test_nothing_to_check_is_no_pass(recorded: RecordedReleases) -> None:
    with pytest.raises(NothingSelected, match="does not list any operators"):
        check(ExtensionManifest("mine", "2.0.0", []), "2.0.0", recorded)
    with pytest.raises(UsageError, match="there are no records for the release"):
        check(listed("aten::linear", "2.0.0", recorded), "9.9.9", recorded)


def test_every_operator_fits_the_release_it_was_recorded_in(recorded: RecordedReleases) -> None:
    """All operators of all releases, as calls: a schema that does not equal itself would be seen."""
    for release in recorded.releases:
        bit = recorded.schemas.bit(release)
        texts = [text for text, _, bits in recorded.schemas.facts() if bits & bit][::7]
        manifest = ExtensionManifest("all", release, [ExtensionOperator(text.partition("(")[0], "calls", text) for text in texts])
        assert check(manifest, release, recorded) == (release, FITS, ())


# --------------------------------------------------------------------------------------------------------------------- recording


def test_a_list(recorded: RecordedReleases) -> None:
    text = """
    # what a backend does
    backend PrivateUse1 fallback
    needs torch.library.Library
    registers aten::add.Tensor   # at the backend's key
    registers aten::mul.Tensor CPU CUDA
    defines   mine::f(Tensor self,  int x=1) -> Tensor
    calls aten::linear
    aten::relu
    """
    manifest = listed(text, "2.4.1", recorded)
    assert (manifest.backend, manifest.fallback, manifest.needs) == ("PrivateUse1", True, ("torch.library.Library",))
    entries = {entry.operator: entry for entry in manifest.operators}
    assert [kernel.key for kernel in entries["aten::add.Tensor"].kernels] == ["PrivateUse1"]
    assert [kernel.key for kernel in entries["aten::mul.Tensor"].kernels] == ["CPU", "CUDA"]
    assert entries["aten::linear"].schema == recorded.of("aten::linear", "2.4.1")[0]
    assert {name: entry.use for name, entry in entries.items()} == {
        "aten::add.Tensor": "registers", "aten::mul.Tensor": "registers", "mine::f": "defines", "aten::linear": "calls",
        "aten::relu": "calls",
    }  # fmt: skip
    assert [name for name, entry in entries.items() if entry.relies_on_decomposition] == ["aten::linear"]


def test_every_mistake_of_a_list_at_once(recorded: RecordedReleases) -> None:
    text = "calls aten::lineer\nuses x\nregisters aten::add.Tensor\ncalls aten::add\ndefines x::y(Tensor -> Tensor\naten::relu\naten::relu\nbackend A b"
    with pytest.raises(ListError) as caught:
        listed(text, "2.4.1", recorded)
    results = [str(problem) for problem in caught.value.problems]
    expected = [
        "list.txt:1: 2.4.1 has no operator 'aten::lineer'; did you mean aten::linear",
        "list.txt:2: expected backend KEY [fallback], needs NAME",
        "list.txt:5: ",
        "list.txt:7: aten::relu is listed twice",
        "list.txt:8: expected backend KEY",
        "list.txt: registers aten::add.Tensor without a dispatch key",
    ]
    results = [item for item in results if "aten::add'" not in item]
    assert len(results) == len(expected)
    assert all(item.startswith(name) for item, name in zip(results, expected, strict=True))
    assert "column 13" in results[2]


@pytest.mark.parametrize("text", ["", "# nothing\n", "backend PrivateUse1\nneeds torch.library.Library\n"])
def test_an_empty_list_is_incomplete(text: str, recorded: RecordedReleases) -> None:
    with pytest.raises(NothingSelected, match="lists no operators") as caught:
        listed(text, "2.4.1", recorded)
    assert caught.value.exit_status == 4


ANSWER: dict[str, Any] = {
    "torch": "2.4.1+cpu",
    "error": None,
    "defined": [{"operator": "mine::f", "schema": "mine::f(Tensor x) -> Tensor", "kernels": []}],
    "registered": [
        {
            "operator": "aten::add.Tensor",
            "schema": "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
            "kernels": [{"key": "PrivateUse1", "language": "python", "signature": None}],
        }
    ],
    "dangling": [],
    "fallbacks": [],
}


def test_what_a_dispatcher_said(recorded: RecordedReleases) -> None:
    manifest = from_dispatcher(
        ANSWER, "2.4.1", recorded, extension="mine", listed=(f"calls {BACKWARD}\naten::add.Tensor", "list.txt")
    )
    assert (manifest.torch, manifest.backend, manifest.needs) == ("2.4.1+cpu", "PrivateUse1", ("torch.library.Library",))
    assert [(entry.operator, entry.use, entry.relies_on_decomposition) for entry in manifest.operators] == [
        (BACKWARD, "calls", True),
        ("aten::add.Tensor", "registers", False),
        ("aten::add.Tensor", "calls", False),
        ("mine::f", "defines", False),
    ]
    assert from_dispatcher({**ANSWER, "fallbacks": ["PrivateUse1"]}, "2.4.1", recorded, extension="mine").fallback


def test_an_extension_that_registers_nothing(recorded: RecordedReleases) -> None:
    with pytest.raises(NothingSelected, match="registered nothing"):
        from_dispatcher({**ANSWER, "defined": [], "registered": []}, "2.4.1", recorded, extension="mine")


@pytest.mark.parametrize(
    ("name", "hint"),
    [("2.13.9", "2.13.0"), ("torch-2.4.2", "2.4.1"), ("1.5.9", "1.5.1 or 1.5.0"), ("zzz", "recorded releases: 1.0.0")],
)
def test_releases_that_are_not_recorded(name: str, hint: str, recorded: RecordedReleases) -> None:
    with pytest.raises(UsageError, match="there are no records") as caught:
        known_release(name, recorded.known)
    assert hint in (caught.value.hint or "")
    assert known_release("torch-2.13.0", recorded.known) == known_release("2.13", recorded.known) == "2.13.0"


@pytest.mark.parametrize(
    ("operator", "release", "hint"),
    [
        ("aten::lineer", "1.5.0", "aten::linear"),
        ("linear", "1.5.0", "aten::linear"),
        ("aten::mm.oot", "1.5.0", "it has aten::mm, aten::mm.out"),
        ("aten::nan_to_num", "1.5.0", f"1.8.1 to {NEWEST} have it"),
        ("zzzzzzzzz::qqqqqqqqq", "1.5.0", "use a name such as aten::add.Tensor"),
        ("aten::linear(Tensor x) -> Tensor", "1.5.0", "it has aten::linear(Tensor input"),
        ("aten::add", "1.0.0", "use the schema of one of them: "),
    ],
)
def test_operators_that_a_release_lacks(operator: str, release: str, hint: str, recorded: RecordedReleases) -> None:
    with pytest.raises(UsageError, match=f"{release} has ") as caught:
        known_operator(operator, release, recorded)
    assert hint in (caught.value.hint or "")


def test_one_of_several_of_one_name_is_given_by_its_schema(recorded: RecordedReleases) -> None:
    schema = "aten::add(int a, int b) -> int"
    manifest = listed(f"calls {schema}\nregisters aten::mm(Tensor self, Tensor mat2) -> Tensor", "1.2.0", recorded, backend="XLA")
    assert manifest.operators[0].schema == schema
    assert check(manifest, "1.2.0", recorded).verdict == FITS
    assert len(recorded.of("aten::add", "1.2.0")) > 1
