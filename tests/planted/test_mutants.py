"""Every change in the table of mutants makes the tests fail that the table names, and these pass without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.planted.mutants import FAILED, MUTANTS, PACKAGE, ROOT, Copy, Mutant

if TYPE_CHECKING:
    from collections.abc import Iterator

EVERY = pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("mutants"))


@pytest.fixture
def changed(copy: Copy, mutant: Mutant) -> Iterator[Copy]:
    copy.change(mutant)
    yield copy
    copy.restore(mutant)


@EVERY
def test_a_changed_text_occurs_once(mutant: Mutant) -> None:
    text = (ROOT / PACKAGE / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1
    assert mutant.new != mutant.old
    assert mutant.tests
    assert mutant.why.endswith(".")


def test_the_tests_pass_without_a_change(copy: Copy) -> None:
    status, output = copy.run(*dict.fromkeys(test for mutant in MUTANTS.values() for test in mutant.tests))
    assert status == 0, output


@EVERY
@pytest.mark.sampled(8)
def test_the_tests_fail_with_a_change(mutant: Mutant, changed: Copy) -> None:
    for test in mutant.tests:
        status, output = changed.run(test)
        assert status == FAILED, output
