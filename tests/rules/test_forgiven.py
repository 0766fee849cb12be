"""The differences forgiven by tolerances, and the document that lists them."""

from __future__ import annotations

import base64
import struct
from typing import TYPE_CHECKING, Any

from tests.rules.conftest import TOLERANCE
from torch_compat.judging.forgiven import forgiven
from torch_compat.report.tolerances_md import tolerances_md
from torch_compat.values.compare import compare
from torch_compat.values.delta import departures

if TYPE_CHECKING:
    from tests.rules.conftest import World


def tensor(*values: float) -> dict[str, Any]:
    data = base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()
    return {"value": {"tensor": {"dtype": "float32", "shape": [len(values)], "strides": [1], "bytes": data}}}


def observe(world: World, recipe: str, got: dict[str, Any], *readers: str) -> None:
    fixture = world.fixture(recipe=recipe, golden=tensor(1.0, 1e-5), operators=["aten::exp"])
    result = compare(fixture.golden, got)
    for reader in readers:
        facts: dict[str, Any] = {"extent": result.extent, "count": result.count, "departures": departures(fixture.golden, got)}
        world.observe(fixture, reader, "different", **facts, digest=recipe)


def test_every_recipe_that_passes_by_a_tolerance_is_listed_with_its_distances(world: World) -> None:
    observe(world, "steps", tensor(1.0000001, 1e-5), "1.1.0", "2.0.0")
    observe(world, "beyond", tensor(1.0, 1.00005e-5), "2.0.0")
    observe(world, "other", tensor(2.0, 1e-5), "2.0.0")
    world.observe(world.fixture(recipe="fine"), "2.0.0")
    rows = {row.recipe: row for row in forgiven(world.evidence())}
    assert rows.keys() == {"steps", "beyond"}
    assert (rows["steps"].cells, rows["steps"].beyond, rows["steps"].readers) == (2, 0, ["1.1.0", "2.0.0"])
    assert (rows["beyond"].cells, rows["beyond"].beyond, rows["beyond"].writers) == (1, 1, ["1.0.0"])
    assert rows["steps"].greatest.steps == 1
    assert 4e-5 < rows["beyond"].greatest.relative < 6e-5
    assert 4e-10 < rows["beyond"].greatest.gap < 6e-10


def test_the_document_has_a_section_for_every_tolerance(world: World) -> None:
    observe(world, "beyond", tensor(1.0, 1.00005e-5), "2.0.0")
    wide = TOLERANCE.model_copy(update={"dtype": "float64"})
    text = tolerances_md([TOLERANCE, wide], forgiven(world.evidence()))
    assert "## float32, *\n\n4 ULP, or 1e-06 absolute and 0.0001 relative: kernels differ.\n" in text
    assert "| beyond | `aten::exp` | 1 | 1 | 5e-10 | 5e-05 | 550 | 1.0.0 | 2.0.0 |" in text
    assert text.endswith("No recorded cell needs this tolerance.\n")
