from __future__ import annotations

import datetime as dt
import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from tests.tooling import program
from torch_compat.policy import policy_schema
from torch_compat.policy.table_base import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

POLICIES = Path(__file__).parents[2] / "policies"
REFERENCE = program("documentation").policy_reference(POLICIES.parent)
FILES = sorted((*POLICIES.glob("torch/**/*.toml"), *POLICIES.glob("examples/*.toml")))


def as_json(value: Any) -> Any:
    """A TOML document as a JSON document: dates as text."""
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_json(item) for item in value]
    return value.isoformat() if isinstance(value, dt.date | dt.time) else value


def schemas(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from schemas(item)


def test_the_published_schema_is_current() -> None:
    published = (POLICIES / "policy.schema.json").read_text(encoding="utf-8")
    assert published == json.dumps(policy_schema(), indent=2, ensure_ascii=False) + "\n", "nox -s generate"


def test_the_schema_is_one_that_toml_editors_read() -> None:
    schema = policy_schema()
    jsonschema.Draft7Validator.check_schema(schema)
    for part in schemas(schema):
        assert not part.keys() & {"$defs", "prefixItems", "unevaluatedProperties"}
        assert part.get("type") != "null"
        assert part.keys() == {"$ref"} or "$ref" not in part
        assert (
            not part.get("$ref", "#/definitions/").removeprefix("#/definitions/")
            or part["$ref"].rpartition("/")[2] in schema["definitions"]
        )


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(POLICIES).as_posix())
def test_every_policy_file_matches_the_schema_and_points_to_it(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    jsonschema.Draft7Validator(policy_schema(), format_checker=jsonschema.FormatChecker()).validate(as_json(tomllib.loads(text)))
    pointer = text.splitlines()[0].removeprefix("#:schema ")
    assert (file.parent / pointer).resolve() == POLICIES / "policy.schema.json"


def test_there_are_policy_files() -> None:
    assert {file.name for file in FILES} >= {"releases.toml", "formats.toml", "promises.toml"}


@pytest.mark.parametrize(
    "document",
    [
        {"releases": []},
        {"release": {}},
        {"policy": []},
        {"rule": [{"id": "Not Kebab", "asks": "a", "source": "s"}]},
        {"rule": [{"id": "r", "asks": "a", "source": "s", "sevrity": 1}]},
        {"rule": [{"id": "r", "asks": "a", "source": "s", "parameters": {"a": {}}}]},
        {"format": [{"kind": "bytecode", "version": 3, "meaning": "m", "read_from": {"release": "1.0.0"}}]},
        {"options": [{"id": "x", "families": []}]},
    ],
)
def test_the_schema_refuses_what_one_file_can_show_to_be_wrong(document: dict[str, Any]) -> None:
    assert not jsonschema.Draft7Validator(policy_schema()).is_valid(document)


def test_every_key_has_a_description() -> None:
    for name, definition in policy_schema()["definitions"].items():
        for key, part in definition["properties"].items():
            assert part.get("description"), f"{name}.{key}"


def tables() -> list[type[Table]]:
    return sorted(Table.__subclasses__(), key=lambda table: table.__name__)


@pytest.mark.parametrize("table", tables(), ids=lambda table: table.__name__)
def test_the_reference_names_every_key(table: type[Table]) -> None:
    for key in table.model_fields:
        assert f"`{key}`" in REFERENCE, key


def test_the_manual_points_to_the_reference() -> None:
    assert "(../docs/reference/policy.md)" in (POLICIES / "README.md").read_text(encoding="utf-8")
