"""The formats read every fixture as stated in its manifest; calculated values are compared with the bytes."""

from __future__ import annotations

import mmap
from collections import Counter
from pathlib import Path

import pytest

from tests.repository.packed import PACKED_AGAIN, offsets_of
from torch_compat.corpus.manifest import MANIFEST, SYNTHETIC, Fixture, read_manifest
from torch_compat.formats import Facts, read_facts
from torch_compat.policy import load_policy
from torch_compat.releases.release import Release
from torch_compat.values.dtypes import ELEMENT_SIZES

FIXTURES = Path(__file__).parents[2] / "fixtures"
POLICY = load_policy(FIXTURES.parent / "policies" / "torch")
MANIFESTS = sorted(FIXTURES.glob(f"*/{MANIFEST}"))
PROGRAMS = frozenset({"torchscript", "mobile", "export"})

# What recipes call in Python, and what a program then holds instead: torch.nn.Linear, say, is an operator of its own since 1.8
# or so, and was a choice of others before; tracing goes down to what was computed; export decomposes, up to 2.4 further down.
STANDS_FOR: dict[str, set[str]] = {
    "aten::__is__": {"__IS__"},
    "aten::__isnot__": {"__ISNOT__"},
    "aten::baddbmm": {"aten::bmm"},
    "aten::dot": {"aten::matmul"},
    "aten::upsample_bicubic2d": {"aten::__interpolate"},
    "aten::upsample_linear1d": {"aten::__interpolate"},
    # from 1.12 on one operator for every kind of padding; reflection_pad1d is named in the recipe's list, never called by its program
    "aten::constant_pad_nd": {"aten::pad"},
    "aten::pad": {"aten::constant_pad_nd"},
    "aten::reflection_pad1d": {"aten::reflection_pad2d", "aten::pad"},
    "aten::reflection_pad2d": {"aten::pad"},
    "aten::replication_pad1d": {"aten::pad"},
    "aten::replication_pad2d": {"aten::pad"},
    "aten::fill_": {"aten::copy_"},  # of a number that became a tensor
    "aten::addmm": {"aten::linear", "aten::matmul"},
    "aten::conv1d": {"aten::convolution"},
    "aten::convolution": {"aten::conv1d"},
    "aten::dim": {"DIM"},
    "aten::format": {"FORMAT"},
    "aten::ger": {"aten::outer"},
    "aten::linear": {"aten::addmm", "aten::matmul"},
    "aten::lp_pool2d": {"aten::avg_pool2d"},
    "aten::matmul": {"aten::addmm", "aten::linear"},
    "aten::max_pool1d": {"aten::max_pool2d", "aten::max_pool2d_with_indices"},
    "aten::max_pool2d": {"aten::max_pool2d_with_indices"},
    "aten::stack": {"aten::append"},  # named in the recipe's list, never called by its program
    "aten::unsqueeze": {"aten::select"},  # the same
    # 1.2 to 1.4 have one operator for all of interpolate
    "aten::upsample_bilinear2d": {"aten::__interpolate"},
    "aten::upsample_nearest1d": {"aten::__interpolate"},
    "aten::upsample_nearest2d": {"aten::__interpolate"},
}
EXPORTED: dict[str, set[str]] = {
    "aten::_native_batch_norm_legit_functional": {"aten::batch_norm"},
    "aten::adaptive_avg_pool2d": {"aten::mean"},
    "aten::add_": {"aten::add"},
    "aten::aminmax": {"aten::amin"},
    "aten::batch_norm": {"aten::_native_batch_norm_legit_functional", "aten::_native_batch_norm_legit_no_training"},
    "aten::chunk": {"aten::split"},
    "aten::conv2d": {"aten::convolution"},
    "aten::cross_entropy_loss": {"aten::_log_softmax"},
    "aten::einsum": {"aten::bmm"},
    "aten::fill_": {"aten::fill", "aten::copy"},
    "aten::group_norm": {"aten::native_group_norm"},
    "aten::gru": {"aten::sigmoid"},
    "aten::item": {"aten::_local_scalar_dense"},
    "aten::layer_norm": {"aten::native_layer_norm"},
    "aten::lstm": {"aten::mkldnn_rnn_layer", "aten::sigmoid"},
    "aten::masked_fill": {"aten::where"},
    "aten::mse_loss": {"aten::pow"},
    "aten::mul_": {"aten::mul"},
    "aten::one_hot": {"aten::eq"},
    "aten::relu_": {"aten::relu"},
    "aten::scaled_dot_product_attention": {
        "aten::_scaled_dot_product_flash_attention",
        "aten::_scaled_dot_product_flash_attention_for_cpu",
        "aten::bmm",
    },
    "aten::smooth_l1_loss": {"aten::abs"},
    "aten::split": {"aten::chunk"},
    "aten::stack": {"aten::cat"},
    "aten::transpose": {"aten::t", "aten::permute"},
    "aten::upsample_bilinear2d": {"aten::index", "aten::_unsafe_index"},
    "aten::upsample_nearest2d": {"aten::index", "aten::_unsafe_index"},
}
"""What the exporter writes for an operator: what it does, in steps, or without a change in place."""
NOT_TORCH = "this archive was not laid out by torch's writer"
# Why a storage has no calculated offset, by (family, container, release or kind): all there are.
NOT_CALCULATED = {
    ("export", "zip", NOT_TORCH),  # 2.1 to 2.7 keep archives of torch.save in one of Python's zipfile
    ("mobile", "flatbuffer", "a flatbuffer contains the offset of every storage"),
    ("torch-save", "tar", "a pickle of unknown length precedes each storage"),
}
BY_ZIPFILE = {"big_endian", "bytecode_3", *PACKED_AGAIN}  # without the end that torch's writer makes: synthetic, or packed again
NOT_CALLED = {
    ("grids_share_memory", "aten::broadcast_tensors"),
    ("members_given", "prim::EnumName"),
    ("forgotten_gradient_scaled", "aten::add"),
    ("forgotten_gradient_twice", "aten::add"),
}
"""Operators that a recipe names by mistake; its text is pinned with what was written."""
AS_BUILTINS = {"aten::sorted"}
"""Operators that the source of a program calls as functions of the language."""
MANY = 400  # operators that any release since 1.4 has
CALLS_NOTHING = {"attribute_named_nonetype", "sorted_lists"}


def read(manifest: Path) -> list[tuple[Fixture, Path, Facts]]:
    results = []
    for fixture in read_manifest(manifest).fixtures:
        with offsets_of(fixture.recipe):
            results.append((fixture, manifest.parent / fixture.file, read_facts(manifest.parent / fixture.file)))
    return results


def line(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.parent.name)
@pytest.mark.sampled(3)
def test_every_archive_is_read_as_what_it_is(manifest: Path) -> None:
    wrong = []
    for entry, path, facts in read(manifest):
        message = (facts.family, facts.container, facts.versions)
        if message != (entry.family, entry.container, entry.versions):
            wrong.append(f"{entry.id}: {message}")
        if facts.damage:
            wrong.append(f"{entry.id}: {facts.damage[0]}")
        wrong += [
            f"{entry.id}: {problem}"
            for problem in (*_operators(entry, facts), *_raising(entry, facts), *_places(path, facts), *_producer(entry, facts))
        ]
    assert wrong == []


def _operators(entry: Fixture, facts: Facts) -> list[str]:
    if "*" in entry.operators:  # every operator of a release: a table of the classes says which
        return [] if len(facts.operators) > MANY else [f"calls {len(facts.operators)} operators"]
    if entry.family not in PROGRAMS:
        return [] if not facts.calls or entry.family == "package" else [f"calls {facts.operators[:3]}"]
    used = {call.name for call in facts.calls} | set(facts.extra.get("instructions", ()))
    if entry.recipe == "dtypes_mobile" and not facts.calls:  # the bytecode of 1.5 builds lists without an operator
        return []
    if bool(facts.calls) is (entry.recipe in CALLS_NOTHING):
        return ["calls an operator" if facts.calls else "calls no operator"]
    wanted = {operator.partition(".")[0] for operator in entry.operators}
    wanted -= {operator for recipe, operator in NOT_CALLED if recipe == entry.recipe} | AS_BUILTINS
    exported = EXPORTED if entry.family == "export" else {}
    return [
        f"does not call {name}"
        for name in sorted(wanted)
        if not used & {name, *STANDS_FOR.get(name, ()), *exported.get(name, ())}
    ]


def _raising(entry: Fixture, facts: Facts) -> list[str]:
    """Operators of the program that change with a version of the format, beside those that the rule versions-lowest takes it to hold."""
    if entry.release == SYNTHETIC or "*" in entry.operators or entry.family not in {"torchscript", "mobile", "package"}:
        return []
    changed = {operator for format_ in POLICY.formats if format_.kind == "file-format" for operator in format_.operators or ()}
    taken = {operator.partition(".")[0] for operator in entry.operators}
    for item in POLICY.behaviors:
        if item.operators and item.of(entry.recipe, Release(entry.release)):
            taken |= {operator.partition(".")[0] for operator in item.operators}
    held = {call.name for call in facts.calls}
    return [f"{name} is {'not ' * (name in taken)}in the program" for name in sorted(changed & (held ^ taken))]


def _places(path: Path, facts: Facts) -> list[str]:
    """Storages whose place is not what it is said to be; by the bytes, found without the reader of zip archives."""
    wrong: list[str] = []
    if facts.container == "directory":  # each storage has a place in one of its files, which .metadata states
        return wrong
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for storage in facts.storages:
            where = f"storage {storage.key!r}"
            if storage.offset is None:
                wrong.append(f"{where} has no offset: {storage.why}")
                continue
            if not 0 <= storage.offset <= storage.offset + (0 if storage.absent else storage.nbytes) <= len(data):
                wrong.append(f"{where} lies at {storage.offset}, outside of the file")
            if storage.calculated_offset is None:
                if (facts.family, facts.container, storage.why) not in NOT_CALCULATED and path.stem not in BY_ZIPFILE:
                    wrong.append(f"{where} has no calculated offset: {storage.why}")
            elif storage.calculated_offset != storage.offset:
                wrong.append(f"{where} lies at {storage.offset}, calculated {storage.calculated_offset}")
            if (
                facts.container == "zip"
                and storage.record is not None
                and not _behind_its_header(data, storage.offset, storage.record)
            ):
                wrong.append(f"{where} is not behind the local header of {storage.record}")
            if facts.container == "stream":
                count = int.from_bytes(data[storage.offset - 8 : storage.offset], "little")
                if count * ELEMENT_SIZES[storage.dtype or ""] != storage.nbytes:
                    wrong.append(f"{where} is not behind the number of its elements")
    return wrong


def _behind_its_header(data: mmap.mmap, offset: int, record: str) -> bool:
    """Whether the bytes right before an offset are a local header with this name at its end, or that and torch's padding."""
    inner = record.rpartition(".pt/")[2] if ".pt/" in record or ".json/" not in record else record.rpartition(".json/")[2]
    start = data.rfind(b"PK\x03\x04", 0, offset)
    name = int.from_bytes(data[start + 26 : start + 28], "little")
    extra = int.from_bytes(data[start + 28 : start + 30], "little")
    message = data[start + 30 : start + 30 + name].decode()
    return message.endswith(f"/{inner}") and start + 30 + name + extra == offset


def _producer(entry: Fixture, facts: Facts) -> list[str]:
    """A range of releases that the real writer lies in."""
    if entry.release == SYNTHETIC:
        return []
    producer = facts.producer
    if producer is None:
        return ["knows nothing of its writer"]
    own = line(entry.release)
    wrong = []
    if (producer.first and own < line(producer.first)) or (producer.last and own > line(producer.last)):
        wrong.append(f"is said to be written by {producer.first} to {producer.last}")
    if producer.torch is not None and producer.torch.partition("+")[0] != entry.release:
        wrong.append(f"is said to be written by {producer.torch}")
    return wrong


def test_what_is_read_is_there() -> None:
    """Nothing above could fail if nothing were found."""
    results: Counter[tuple[str, str, str]] = Counter()
    absent: Counter[str] = Counter()
    for manifest in MANIFESTS:
        for entry, _, facts in read(manifest):
            if entry.container == "directory":
                continue
            kinds = [f"{'not ' * (storage.calculated_offset is None)}calculated" for storage in facts.storages]
            results.update((entry.family, entry.container, kind) for kind in ("files", *kinds))
            absent[entry.recipe] += sum(storage.absent for storage in facts.storages)
    assert results["torch-save", "zip", "calculated"] >= 3000
    assert results["torch-save", "stream", "calculated"] >= 800
    assert results["torchscript", "zip", "calculated"] >= 700
    assert results["mobile", "zip", "calculated"] >= 200
    assert results["package", "zip", "calculated"] >= 200
    assert results["export", "zip", "calculated"] >= 40
    left_out = {key: count for key, count in results.items() if key[2] == "not calculated"}
    assert left_out.keys() == {
        ("export", "zip", "not calculated"),
        ("mobile", "flatbuffer", "not calculated"),
        ("mobile", "zip", "not calculated"),
        ("torch-save", "tar", "not calculated"),
        ("torch-save", "zip", "not calculated"),
    }
    assert left_out["torch-save", "zip", "not calculated"] == 9 + 29  # all of big_endian.pt; one in each save_without_version.pt
    assert left_out["mobile", "zip", "not calculated"] == 1  # bytecode_3.ptl
    assert {recipe for recipe, count in absent.items() if count} == {
        "save_skip_data",
        "save_fake_tensors",
        "traced",
        "padding",
        "logsigmoid_of_infinity",
        "traced_at_another_size",
    }
