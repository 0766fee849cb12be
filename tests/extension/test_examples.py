"""The predictions for the examples, confirmed by loading them. `nox -s extension` runs all of them, including the extension in C++."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.extension.examples import MANUAL, documented, record_privateuse1, seed_manifest, try_out
from torch_compat.operators.dispatch import DECOMPOSES
from torch_compat.operators.extensions import DOES_NOT_FIT, FITS, RecordedReleases, check
from torch_compat.operators.manifest import ExtensionManifest, ExtensionOperator, Kernel
from torch_compat.readers.environments import Environment, Environments

if TYPE_CHECKING:
    from pathlib import Path

    from torch_compat.operators.extensions import ExtensionFinding


def environment(version: str) -> Environment:
    result = Environments().get(version)
    assert result is not None
    return result


def written(manifest: ExtensionManifest, folder: Path) -> Path:
    path = folder / "manifest.json"
    path.write_text(manifest.text(), encoding="utf-8")
    return path


@pytest.mark.real_torch("2.4.1", "2.5.1")
def test_a_backend_in_python_is_recorded_and_does_as_was_said(tmp_path: Path) -> None:
    recorded = RecordedReleases()
    manifest = record_privateuse1(environment("2.4.1"), recorded)
    assert [(entry.operator, entry.use, entry.kernels, entry.relies_on_decomposition) for entry in manifest.operators] == [
        ("aten::_embedding_bag_backward", "calls", (), True),
        ("aten::_embedding_bag_dense_backward", "registers", (Kernel("PrivateUse1", "python"),), False),
        ("aten::add.Tensor", "registers", (Kernel("PrivateUse1", "python"),), False),
        ("aten::add.Tensor", "calls", (), False),
    ]
    path = written(manifest, tmp_path)

    assert check(manifest, "2.4.1", recorded).verdict == FITS
    answer = try_out(environment("2.4.1"), module="example_privateuse1", manifest=path)
    assert (answer["error"], answer["verify"]["told"]) == (None, [])

    assert check(manifest, "2.5.1", recorded).verdict == DOES_NOT_FIT
    answer = try_out(environment("2.5.1"), module="example_privateuse1", manifest=path)
    assert documented(answer["error"].partition(" FuncTorch")[0])
    (told,) = answer["verify"]["told"]
    assert documented(told)
    assert answer["verify"]["ms"] < 100


@pytest.mark.real_torch("1.4.0")
def test_the_warning_of_the_seed_is_silent_where_it_fits(tmp_path: Path) -> None:
    answer = try_out(environment("1.4.0"), manifest=written(seed_manifest(RecordedReleases()), tmp_path))
    assert answer["verify"] == {"fits": True, "told": [], "faults": [], "unchecked": [], "ms": answer["verify"]["ms"]}


@pytest.mark.real_torch("1.5.0")
def test_the_warning_of_the_seed_is_as_documented(tmp_path: Path) -> None:
    answer = try_out(environment("1.5.0"), manifest=written(seed_manifest(RecordedReleases()), tmp_path))
    (told,) = answer["verify"]["told"]
    assert documented(told)


def test_a_text_that_is_not_documented_would_be_seen() -> None:
    assert MANUAL.is_file()
    assert not documented("OperatorApiWarning: something else")


@pytest.mark.parametrize("use", ["calls", "registers"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("2.13.0", "2.4.1", marks=pytest.mark.real_torch("2.4.1")),
        pytest.param("2.4.1", "2.13.0", marks=pytest.mark.real_torch("2.13.0")),
    ],
)
def test_verify_says_of_every_operator_what_check_says(use: str, old: str, new: str, tmp_path: Path) -> None:
    """All operators of one release, as an extension that uses them all would meet them in another."""
    recorded = RecordedReleases()
    texts = [text for text, _, bits in recorded.schemas.facts() if bits & recorded.schemas.bit(old)]
    kernels = (Kernel("CPU"),) if use == "registers" else ()
    entries = []
    for text in texts:
        operator = text.partition("(")[0]
        relies = use == "calls" and recorded.dispatches.of(operator, old).kind == DECOMPOSES
        entries.append(ExtensionOperator(operator, use, text, kernels, relies))
    manifest = ExtensionManifest("all", old, entries, backend="PrivateUse1")
    assert len(entries) > 4000

    told = try_out(environment(new), manifest=written(manifest, tmp_path))["verify"]
    fit = check(manifest, new, recorded)
    by_verify = {operator for operator, *_ in told["faults"]}
    by_check = {item.operator for item in fit.of("fault") if not _handed_on(item, new, recorded)}
    unsure = {item.operator for item in fit.of("unknown")} | {item.partition(": ")[0] for item in told["unchecked"]}
    assert by_verify - unsure == by_check - unsure
    assert len(by_verify - unsure) > 20
    assert len(unsure) < 200


def _handed_on(finding: ExtensionFinding, release: str, recorded: RecordedReleases) -> bool:
    """Whether the operator itself decomposes, and only the one that it hands on to needs a kernel: verify does not see that."""
    return finding.cause == "dispatch" and recorded.dispatches.of(finding.operator, release).kind == DECOMPOSES
