"""Defects in recipes and probes."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from tests.planted.defects.table import defect

if TYPE_CHECKING:
    from random import Random

    from tests.planted.conftest import Tree


@defect(seeds=1)
def corpus_emptied(tree: Tree, random: Random) -> str:
    shutil.rmtree(tree.fixtures)
    tree.fixtures.mkdir()
    return "the corpus has no fixtures"


@defect(4, seeds=1)
def no_fixtures_folder(tree: Tree, random: Random) -> str:
    shutil.rmtree(tree.fixtures)
    return "has no fixtures/"


@defect(seeds=1)
def no_recipes(tree: Tree, random: Random) -> str:
    shutil.rmtree(tree.fixtures / "recipes")
    return "its recipe no longer exists"


@defect()
def recipe_edited(tree: Tree, random: Random) -> str:
    path = random.choice(tree.recipes())
    path.write_text(path.read_text() + "# one more line\n")
    return f"{path.stem}: the recipe has changed since it was run"


@defect()
def recipe_removed(tree: Tree, random: Random) -> str:
    path = random.choice(tree.recipes())
    path.unlink()
    return f"{path.stem}: its recipe no longer exists"


@defect(4)
def recipe_that_nobody_ran(tree: Tree, random: Random) -> str:
    path = random.choice(tree.recipes())
    shutil.copyfile(path, path.with_name("brand_new.py"))
    return "brand_new: no release has run this recipe yet"


@defect(4)
def recipe_with_a_placeholder(tree: Tree, random: Random) -> str:
    path = random.choice(tree.recipes())
    path.with_name("brand_new.py").write_text(f"{path.read_text()}# <replace this: what it is for>\n")
    return "recipes/brand_new.py: "


@defect()
def recipe_is_no_python(tree: Tree, random: Random) -> tuple[str, ...]:
    path = random.choice(tree.recipes())
    path.write_text("def (:\n")
    return f"recipes/{path.name}:1: is not valid Python 3.6", f"{path.stem}: its recipe no longer exists"


@defect()
def recipe_damaged(tree: Tree, random: Random) -> str:
    path = random.choice(tree.recipes())
    data = bytearray(path.read_bytes())
    data[random.randrange(len(data))] = 0
    path.write_bytes(data)
    return f"recipes/{path.name}"


@defect(4)
def probe_edited(tree: Tree, random: Random) -> str:
    path = random.choice(tree.probes())
    path.write_text(path.read_text() + "# one more line\n")
    return f"{path.stem} in torch-1.5.1: the probe changed since it was observed"


@defect(1, seeds=1)
def probes_removed(tree: Tree, random: Random) -> str:
    shutil.rmtree(tree.fixtures / "probes")
    return "is recorded, but no longer exists"


@defect(4)
def probe_that_nobody_asked(tree: Tree, random: Random) -> str:
    path = random.choice(tree.probes())
    shutil.copyfile(path, path.with_name("brand_new.py"))
    return "brand_new in torch-2.13.0: not observed"


@defect()
def probe_is_no_python(tree: Tree, random: Random) -> str:
    path = random.choice(tree.probes())
    path.write_text("def (:\n")
    return f"probes/{path.name}:1: is not valid Python 3.6"
