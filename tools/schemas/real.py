"""Query torch 2.13.0 and our parser about schemas, and find disagreements."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch_compat.operators.compatibility import CompatibilityResult, backward, forward
from torch_compat.operators.schema import Argument, Schema, SchemaError, canonical, parse
from torch_compat.readers.environments import Environments

if TYPE_CHECKING:
    from collections.abc import Sequence

RELEASE = "2.13.0"
SCRIPT = Path(__file__).with_name("torch_schemas.py")

# Our causes for the messages of 2.13.0 about forward incompatibility, by a part of the message.
FORWARD = {
    "same number of out arguments": {"out-count"},
    "did not provide a default value": {"no-default"},
    "has a container type": {"container-default"},
    "is not forward compatible with the older version": {
        "renamed",
        "size",
        "alias",
        "keyword-only",
        "type",
        "default-changed",
        "default-added",
    },
    "is not FC with the older version": {"renamed", "size", "alias", "keyword-only", "type", "default-changed", "default-added"},
    "": {"operator", "vararg", "returns-count"},
}


def ask(texts: Sequence[str], pairs: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """The answers of the real release; see torch_schemas.py."""
    environment = Environments().get(RELEASE)
    assert environment is not None, f"torch-{RELEASE} is not built"
    with tempfile.TemporaryDirectory() as place:
        questions, answers = Path(place, "questions.json"), Path(place, "answers.json")
        questions.write_text(json.dumps({"texts": texts, "pairs": pairs}), encoding="utf-8")
        subprocess.run(
            [environment.python, SCRIPT, questions, answers], check=True, env=environment.environ(), stderr=subprocess.DEVNULL
        )
        results: dict[str, Any] = json.loads(answers.read_text(encoding="utf-8"))
    assert results["version"].split("+")[0] == RELEASE
    return results


def read(text: str) -> Schema | str:
    """The schema, or the reason why we reject it."""
    try:
        return parse(text)
    except SchemaError as error:
        return str(error)


def facts(ones: Sequence[Argument]) -> list[list[Any]]:
    """The properties of arguments, as reported by torch_schemas.py."""
    return [
        [argument.name, argument.default is not None, argument.kwarg_only, argument.is_out, argument.size] for argument in ones
    ]


def why_unread(text: str, message: str) -> str:
    """Why 2.13.0 cannot read a schema printed by an earlier release."""
    if "=<default>" in text:
        return "a default that is not stated"
    if "Dict[" in text:
        return "a Dict in brackets"
    if text.endswith("-> "):
        return "no returns, printed as nothing"
    if "custom class" in message:
        return "a custom class that 2.13.0 does not have"
    if "unknown type" in message:
        return "a type that 2.13.0 does not read"
    raise AssertionError(f"2.13.0 refuses {text!r} for an unlisted reason: {message}")


def text_disagreement(text: str, theirs: Any, mine: Schema | str) -> str | None:
    """The difference in how both read a text, or None. If torch rejects it only because of an unknown custom class, they agree."""
    if isinstance(theirs, str):
        if isinstance(mine, str) or "custom class" in theirs:
            return None
        return f"only 2.13.0 refuses {text!r}: {theirs}"
    if isinstance(mine, str):
        return f"only we refuse {text!r}: {mine}"
    if canonical(mine) != theirs[0]:
        return f"{text!r} is printed as {canonical(mine)!r} here, as {theirs[0]!r} by 2.13.0"
    for here, there in ((mine.arguments, theirs[1]), (mine.returns, theirs[2])):
        if facts(here) != there:
            return f"{text!r} is read as {facts(here)} here, as {there} by 2.13.0"
    return None


def pair_disagreement(new: Schema, old: Schema, theirs: Sequence[Any]) -> str | None:
    """The difference in how both judge a pair; None if they agree, including the cause."""
    back, ahead = backward(new, old), forward(new, old)
    for what, mine, real in (("backward", back, theirs[0]), ("forward", ahead, theirs[1])):
        if mine.compatible is not (real is True) or (mine.reason is None) is not mine.compatible:
            return f"{what}: {mine} here, {real} in 2.13.0, for\n  new {canonical(new)}\n  old {canonical(old)}"
    cause = forward_cause(ahead, theirs[1], theirs[2])
    return f"{cause}, for\n  new {canonical(new)}\n  old {canonical(old)}" if cause else None


def forward_cause(mine: CompatibilityResult, real: Any, reason: str) -> str | None:
    """The difference between the forward causes; None if there is none."""
    if mine.compatible or real == "IndexError":
        return None
    text = next(item for item in FORWARD if item in reason)
    if mine.cause not in FORWARD[text]:
        return f"our cause is {mine.cause}, 2.13.0 reports {reason!r}"
    named = reason.split("'")[1] if text and text != "same number of out arguments" and "Out argument" not in reason else None
    return (
        f"our cause names {mine.argument!r}, 2.13.0 reports {reason!r}"
        if named and named != mine.argument and mine.cause != "renamed"
        else None
    )
