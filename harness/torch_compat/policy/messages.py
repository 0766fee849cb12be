"""Pydantic's errors in this project's wording: what is required, and what was found."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final, get_args

from pydantic import BaseModel

from torch_compat.policy.table_base import SHAPES
from torch_compat.words import american, did_you_mean, similar_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic_core import ErrorDetails

__all__ = ["HALF_DONE", "UNFINISHED", "explain", "found", "suggestion", "unknown_key"]

_TYPES = {
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "date_type": "must be a date such as 2027-01-31, without quotes",
    "date_from_datetime_inexact": "must be a date such as 2027-01-31, without a time",
    "tuple_type": "must be an array",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "string_too_short": "must not be empty",
}
_LONGEST = 60
UNFINISHED: Final = "<replace this: "
"""The placeholder in a file created by ``torch-compat new`` for information that only its author knows."""
HALF_DONE: Final = "the entry is unfinished: replace the placeholder with "


def explain(error: ErrorDetails, model: type[BaseModel], value: Any) -> str:
    """Return a one-line message for an error that pydantic found in a table; ``value`` is the value at the error's location."""
    kind, context = error["type"], error.get("ctx", {})
    match kind:
        case "missing":
            return f"key '{error['loc'][-1]}' is missing"
        case "extra_forbidden":
            known = list(_model_at(model, error["loc"][:-1]).model_fields)
            return unknown_key(str(error["loc"][-1]), known)
        case "too_short":
            return "must name at least one"
        case "literal_error":
            allowed = [american(option.strip("'")) for option in context["expected"].replace(" or ", ", ").split(", ")]
            return f"must be one of {', '.join(allowed)}; found {found(value)}{suggestion(value, allowed)}"
        case "string_pattern_mismatch":
            return f"must be {SHAPES[context['pattern']]}; found {found(value)}"
        case "greater_than" | "greater_than_equal":
            bound = "more than" if kind == "greater_than" else "at least"
            return f"must be {bound} {context.get('gt', context.get('ge'))}; found {found(value)}"
        case "less_than_equal":
            return f"must be at most {context['le']}; found {found(value)}"
        case "distinct" | "parameter" | "pattern":
            return error["msg"]
        case _:
            return f"{_TYPES.get(kind, error['msg'])}; found {found(value)}"


def unknown_key(key: str, known: Iterable[str], what: str = "key") -> str:
    """Return the message for an unknown key, with the closest known one."""
    known = list(known)
    return f"unknown {what} {found(key)}" + (suggestion(key, known) or f"; known: {', '.join(known)}")


def suggestion(word: object, known: Iterable[str]) -> str:
    """Return ``; did you mean ...?`` for the closest known word; empty if none is close."""
    nearest = similar_names(word, known, most=1) if isinstance(word, str) else []
    return f"; {did_you_mean([found(nearest[0])])}" if nearest else ""


def found(value: Any) -> str:
    """Return the value that was found as one short line, roughly in TOML syntax."""
    match value:
        case bool():
            return str(value).lower()
        case dict():
            return "a table"
        case list():
            return "an array" if value else "an empty array"
        case dt.date() | dt.time():
            return value.isoformat()
        case _:
            text = repr(value)
            return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _model_at(model: type[BaseModel], path: Iterable[str | int]) -> type[BaseModel]:
    """The model of a nested table."""
    for key in path:
        if isinstance(key, str):  # a number only counts the elements of an array, which are all of one model
            model = next(_models(model.model_fields[key].annotation))
    return model


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the models in an annotation: the annotation itself, or its type arguments if it is an array or a union."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)
