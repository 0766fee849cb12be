"""Every pickle of the corpus is read to its last byte, and every tensor lies within its storage."""

from __future__ import annotations

import collections
import random
import zipfile
from typing import TYPE_CHECKING

from torch_compat.errors import ArchiveError
from torch_compat.pickles import Described, Unpickled, tensors, unpickle, walk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from torch_compat.corpus.corpus import Corpus


def pickles(path: Path, container: str) -> Iterator[tuple[str, Unpickled]]:
    """Every pickle of an archive by the name of its record; of a stream, by their number."""
    if container == "zip":
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if member.filename.endswith("pkl"):
                    member.CRC = member.CRC or None  # type: ignore[assignment]  # not protected
                    data = archive.read(member)
                    start = 0
                    while start < len(data):  # what is traced is pickled more than once
                        result = unpickle(data, start, where=f"{path}, {member.filename}")
                        yield member.filename, result
                        start = result.end
    elif container == "stream":
        start = 0
        for number in range(5):
            result = unpickle(memoryview(path.read_bytes()), start, where=str(path))
            yield str(number), result
            start = result.end


def test_every_pickle_of_the_corpus_is_read(corpus: Corpus) -> None:
    read: collections.Counter[str] = collections.Counter()
    described = set()
    for fixture in corpus.fixtures.values():
        for record, result in pickles(corpus.path(fixture), fixture.container):
            read[fixture.family] += 1
            assert all(tensor.fits for _, tensor in tensors(result.value)), (fixture.id, record)
            for _, part in walk(result.value):
                if type(part) is Described and part.target.module.partition(".")[0] != "__torch__":
                    described.add(part.target.path)
    assert set(read) >= {"mobile", "package", "torch-save", "torchscript"}
    assert sum(read.values()) > 8000
    # what is only described: modules, classes of the writer's own, and what no value stands for
    assert {name for name in described if not name.startswith("torch.nn.modules.")} == {
        "builtins.getattr", "fractions.Fraction", "save_class_of_the_writer.Config", "scaling.Scale",
        "torch.jit._pickle.build_tensor_from_id", "torch.nn.backends.thnn._get_thnn_function_backend",
        "torch.nn.parallel.data_parallel.DataParallel", "torch.nn.parameter.UninitializedBuffer",
        "torch.nn.parameter.UninitializedParameter", "torch.utils.hooks.RemovableHandle",
    }  # fmt: skip


def test_damaged_pickles_of_the_corpus_raise_nothing_of_ours(corpus: Corpus) -> None:
    chance = random.Random(4)
    fixtures = [item for item in corpus.fixtures.values() if item.container == "zip" and item.release == "2.13.0"]
    ended: collections.Counter[str] = collections.Counter()
    for fixture in chance.sample(fixtures, 60):
        with zipfile.ZipFile(corpus.path(fixture)) as archive:
            data = [archive.read(member) for member in archive.infolist() if member.filename.endswith("data.pkl") and member.CRC]
        for _ in range(50 * len(data)):
            damaged = bytearray(data[0])
            for _ in range(chance.choice((1, 1, 1, 2, 5))):
                at = chance.randrange(len(damaged))
                way = chance.randrange(4)
                if way == 0:
                    damaged[at] ^= 1 << chance.randrange(8)
                elif way == 1:
                    damaged[at] = chance.randrange(256)
                elif way == 2:
                    del damaged[at : at + chance.randrange(1, 9)]
                else:
                    damaged[at:at] = damaged[max(0, at - 8) : at]
                damaged = damaged or bytearray(b".")
            try:
                result = unpickle(bytes(damaged), where=fixture.id)
            except ArchiveError as error:
                ended[error.code] += 1
            else:
                ended["read"] += 1
                assert sum(1 for _ in walk(result.value)) <= 10 * len(damaged)
    assert ended["read"]
    assert ended["pickle-stack"]
    assert len(ended) > 5
