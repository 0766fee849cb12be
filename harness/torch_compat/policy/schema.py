"""The JSON Schema of a policy file, for TOML editors, which read draft-07 with ``definitions``."""

from __future__ import annotations

from typing import Any, Final

from pydantic.json_schema import models_json_schema

from torch_compat.policy.policy import REGISTRY

__all__ = ["policy_schema"]

_DRAFT: Final = "http://json-schema.org/draft-07/schema#"
_REFERENCE: Final = "#/definitions/{model}"


def policy_schema() -> dict[str, Any]:
    """Return the schema that each policy file must match. Every top-level table is optional: a file may hold any of them.

    The schema covers only what can be checked in a single file. :func:`torch_compat.policy.load_policy` checks the folder as a whole
    (unknown releases, duplicates), and is also stricter about details such as numbers in quotes.
    """
    references, document = models_json_schema([(kind.model, "validation") for kind in REGISTRY], ref_template=_REFERENCE)
    return {
        "$schema": _DRAFT,
        "title": "A policy file of torch-compat",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            kind.name: {"type": "array", "items": references[kind.model, "validation"]}
            if kind.repeated
            else references[kind.model, "validation"]
            for kind in REGISTRY
        },
        "definitions": {name: _without_null(schema) for name, schema in sorted(document["$defs"].items())},
    }


def _without_null(schema: Any) -> Any:
    """Return the schema without ``null`` and generated titles: TOML has no null, and omits keys without a value."""
    if isinstance(schema, list):
        return [_without_null(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    cleaned = {
        key: _without_null(value)
        for key, value in schema.items()
        if not (key == "default" and value is None) and not (key == "title" and isinstance(value, str))
    }
    options = [option for option in cleaned.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        del cleaned["anyOf"]
        cleaned = {**options[0], **cleaned}
    if "$ref" in cleaned and len(cleaned) > 1:  # draft-07 ignores keys next to a $ref
        cleaned = {"allOf": [{"$ref": cleaned.pop("$ref")}], **cleaned}
    return cleaned
