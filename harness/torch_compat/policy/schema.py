"""The JSON Schema of a policy file, for editors: draft-07 with ``definitions``, which is what TOML editors read."""

from __future__ import annotations

from typing import Any, Final

from pydantic.json_schema import models_json_schema

from torch_compat.policy.policy import REGISTRY

__all__ = ["policy_schema"]

_DRAFT: Final = "http://json-schema.org/draft-07/schema#"
_REFERENCE: Final = "#/definitions/{model}"


def policy_schema() -> dict[str, Any]:
    """The schema that one policy file must match. Every top-level table is optional: a file may hold any of them.

    It says what one file can be held to. What only the whole folder shows (unknown releases, duplicates) is checked by
    :func:`torch_compat.policy.load_policy`, which is also stricter about numbers in quotes and the like.
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
    """The schema without ``null`` and generated titles: TOML has no null, a key that is not given is not written."""
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
    if "$ref" in cleaned and len(cleaned) > 1:  # draft-07 ignores what stands beside a $ref
        cleaned = {"allOf": [{"$ref": cleaned.pop("$ref")}], **cleaned}
    return cleaned
