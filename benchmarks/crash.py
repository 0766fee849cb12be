"""What a crash of a reader costs, against an observation that does not crash and against starting the reader anew."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from statistics import median

from torch_compat.corpus.corpus import Corpus, load_corpus
from torch_compat.readers.environments import Environments
from torch_compat.readers.torch_release import TorchRelease

ROOT = Path(__file__).resolve().parent.parent
READER, CRASHES, WORKS = "1.5.1", "torch-1.6.0/gelu", "torch-1.5.1/gelu"


def cost(reader: TorchRelease, corpus: Corpus, name: str) -> tuple[float, bool]:
    """Median milliseconds of one observation, and whether it crashed."""
    fixture = corpus.fixtures[name]
    times, crashed = [], False
    for _ in range(20):
        started = time.perf_counter()
        reply = reader.request("observe", family=fixture.family, path=str(corpus.path(fixture)), calls=fixture.calls, options={})
        times.append(1000 * (time.perf_counter() - started))
        crashed = "crashed" in reply
    return median(times), crashed


def main() -> None:
    """Measure and print."""
    environment = Environments().get(READER)
    if environment is None:
        print(f"torch-{READER} is not built here: nothing to measure")
        sys.exit(4)
    corpus = load_corpus(ROOT / "fixtures")
    started = time.perf_counter()
    with TorchRelease(environment) as reader:
        start = 1000 * (time.perf_counter() - started)
        works, wrong = cost(reader, corpus, WORKS)
        crash, right = cost(reader, corpus, CRASHES)
    if wrong or not right:
        sys.exit(f"{WORKS} is expected to work and {CRASHES} to crash torch-{READER}")
    print(f"starting torch-{READER}          {start:7.1f} ms")
    print(f"an observation that works   {works:7.1f} ms   ratio to starting {works / start:.3f}")
    print(f"an observation that crashes {crash:7.1f} ms   ratio to starting {crash / start:.3f}")


if __name__ == "__main__":
    main()
