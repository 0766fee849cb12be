"""Every deprecation of the repository has a probe, a policy file and the observations of every release."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.recordings import readers_of
from torch_compat.corpus.recipes import read_deprecation
from torch_compat.judging.evidence import deprecation_key
from torch_compat.policy import Policy, load_policy

if TYPE_CHECKING:
    from torch_compat.corpus.observations import ObservedReader

REPOSITORY = Path(__file__).parents[2]
PROBES = sorted((REPOSITORY / "fixtures" / "deprecations").glob("*.py"))
ASKED_FOR = {  # by the issue that asked for them
    "div_integer", "full_without_dtype", "floor_divide", "symeig", "qr", "lstsq", "solve", "eig", "matrix_rank", "cholesky", "norm",
    "meshgrid_without_indexing", "range", "fft_function", "stft_without_return_complex", "load_default", "jit_script",
    "cuda_amp_autocast", "register_backward_hook", "volatile", "legacy_function", "functional_tanh", "functional_sigmoid",
    "typed_storage", "set_default_tensor_type", "masked_fill_uint8", "torch_function_instance_method", "named_tensors",
}  # fmt: skip


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy(REPOSITORY / "policies" / "torch")


@pytest.fixture(scope="module")
def recorded() -> dict[str, ObservedReader]:
    return readers_of(REPOSITORY)


def test_what_was_asked_for_is_there() -> None:
    names = {path.stem for path in PROBES}
    assert names >= ASKED_FOR
    assert len(names) >= 60


def test_every_probe_has_a_policy_file_and_every_file_a_probe(policy: Policy) -> None:
    assert sorted(deprecation.probe for deprecation in policy.deprecations) == [path.stem for path in PROBES]
    assert [deprecation.id.replace("-", "_") for deprecation in policy.deprecations] == [
        deprecation.probe for deprecation in policy.deprecations
    ]


def test_every_release_was_asked_with_every_probe_as_it_is(policy: Policy, recorded: dict[str, ObservedReader]) -> None:
    probes = [read_deprecation(path) for path in PROBES]
    assert {reader.release for reader in recorded.values()} == set(policy.corpus.readers)
    for reader in recorded.values():
        assert {name: deprecation.key for name, deprecation in reader.deprecations.items()} == {
            probe.name: deprecation_key(probe.sha256, reader) for probe in probes
        }


def test_every_probe_says_since_when_releases_have_the_thing(policy: Policy, recorded: dict[str, ObservedReader]) -> None:
    """SINCE is a release of the calendar; before it every release lacks the thing, and the first one asked from then on does not."""
    order = [release.version for release in policy.calendar]
    readers = sorted(recorded.values(), key=lambda reader: order.index(reader.release))
    for path in PROBES:
        probe = read_deprecation(path)
        outcomes = [(order.index(reader.release), reader.deprecations[probe.name].deprecated.outcome) for reader in readers]
        since = order.index(probe.since)
        assert {outcome for rank, outcome in outcomes if rank < since} <= {"lacks"}, probe.name
        assert next(outcome for rank, outcome in outcomes if rank >= since) == "worked", probe.name


def test_nothing_that_was_recorded_is_of_this_machine(recorded: dict[str, ObservedReader]) -> None:
    for reader in recorded.values():
        for deprecation in reader.deprecations.values():
            text = repr(deprecation)
            assert "/tmp/" not in text
            assert "site-packages/" not in text
            assert "NVIDIA driver" not in text


@pytest.mark.parametrize("path", PROBES, ids=lambda path: path.stem)
def test_a_probe_is_a_few_lines_and_asks_no_clock_and_no_chance(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not names & {"rand", "randn", "random", "time", "urandom", "uuid4", "now"}
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 50
