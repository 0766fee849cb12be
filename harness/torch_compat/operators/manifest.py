"""The manifest of an extension: the operators that it registers, defines or calls, as they were in the release it was built against.

A JSON object, published as ``harness/torch_compat/schemas/extension-manifest.schema.json``::

    schema_version   1; increases when the meaning of the format changes. A newer one is refused
    extension        its name
    built_against    the release, such as 2.4.1, as named in recorded sets
    torch            the exact version of the queried torch, or null if none was queried
    obtained         how the manifest was made, one sentence
    backend          the dispatch key of a backend of its own, such as PrivateUse1, or null
    fallback         whether that backend has a kernel for every operator without one (a boxed fallback)
    needs            names of torch's Python modules without which it cannot be imported, such as torch.library.Library
    operators        [{operator, use, schema, kernels, relies_on_decomposition}]

``use`` is ``registers`` (a kernel for an operator that PyTorch defines), ``defines`` (an operator of its own) or ``calls``. A kernel is
``{key, language, signature}``: its dispatch key; ``c++``, ``python`` or null if unknown; and the signature that the dispatcher inferred
from compiled code, or null. ``relies_on_decomposition`` states that the operator is called on the backend, which has no kernel for it.
"""

from __future__ import annotations

import json
from functools import cached_property
from json.decoder import scanstring  # type: ignore[attr-defined]  # missing in typeshed
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from torch_compat.errors import Problem, UsageError
from torch_compat.extension import SCHEMA_VERSION
from torch_compat.operators.schema import SchemaError, parse
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["USES", "ExtensionManifest", "ExtensionOperator", "Kernel", "ManifestError", "read_manifest"]

USES: Final = ("registers", "defines", "calls")
LANGUAGES: Final = ("c++", "python", None)
_TOP: Final = ("schema_version", "extension", "built_against", "torch", "obtained", "backend", "fallback", "needs", "operators")
_ENTRY: Final = ("operator", "use", "schema", "kernels", "relies_on_decomposition")
_KERNEL: Final = ("key", "language", "signature")
_HINT: Final = "torch-compat extension record writes it"


class ManifestError(UsageError):
    """A manifest is invalid. Carries all mistakes at once."""

    default_code = "manifest"

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        count = len(problems)
        super().__init__(
            f"{count_of(count, 'error')} in the manifest:\n" + "\n".join(f"  {problem}" for problem in problems),
            hint=_HINT,
        )


class Kernel(NamedTuple):
    """One kernel that an extension registers."""

    key: str
    """The dispatch key: ``PrivateUse1``, ``CPU``..."""
    language: str | None = None
    """``c++``, ``python``, or None if unknown."""
    signature: str | None = None
    """The signature that the dispatcher inferred from compiled code: ``(Tensor _0, int _1) -> Tensor _0``."""


class ExtensionOperator(NamedTuple):
    """One operator of an extension."""

    operator: str
    use: str
    schema: str
    kernels: tuple[Kernel, ...] = ()
    relies_on_decomposition: bool = False

    @property
    def keys(self) -> frozenset[str]:
        """The dispatch keys for which it has kernels."""
        return frozenset(kernel.key for kernel in self.kernels)


class ExtensionManifest:
    """The operators that an extension registers, defines and calls.

    Attributes:
        extension: its name.
        built_against: the release, as named in recorded sets.
        torch: the exact version of the queried torch; None if none was queried.
        obtained: how the manifest was made.
        backend: the dispatch key of its own backend, if it is one.
        fallback: whether that backend has a kernel for every operator.
        needs: names of torch's Python modules.
        operators: sorted by name, then use.
    """

    def __init__(
        self,
        extension: str,
        built_against: str,
        operators: list[ExtensionOperator] | tuple[ExtensionOperator, ...],
        *,
        torch: str | None = None,
        obtained: str = "From a list of operators.",
        backend: str | None = None,
        fallback: bool = False,
        needs: tuple[str, ...] = (),
    ) -> None:
        self.extension = extension
        self.built_against = built_against
        self.torch = torch
        self.obtained = obtained
        self.backend = backend
        self.fallback = fallback
        self.needs = needs
        self.operators = tuple(sorted(operators, key=lambda entry: (entry.operator, USES.index(entry.use))))

    def document(self) -> dict[str, Any]:
        """The manifest as a JSON object."""
        entries = [
            {**entry._asdict(), "kernels": [kernel._asdict() for kernel in sorted(entry.kernels)]} for entry in self.operators
        ]
        head = {key: getattr(self, key) for key in _TOP[1:-2]}
        return {"schema_version": SCHEMA_VERSION, **head, "needs": list(self.needs), "operators": entries}

    def text(self) -> str:
        """The text of the file: one line per operator, so that a diff shows which operators changed."""
        document = self.document()
        entries = ",\n".join("    " + json.dumps(entry) for entry in document.pop("operators"))
        head = "".join(f"  {json.dumps(key)}: {json.dumps(value)},\n" for key, value in document.items())
        return "{\n" + head + '  "operators": [\n' + entries + "\n  ]\n}\n"

    def has_kernel(self, operator: str) -> bool:
        """Whether the extension's backend has a kernel of its own for an operator."""
        return operator in self._at_backend

    @cached_property
    def _at_backend(self) -> frozenset[str]:
        return frozenset(entry.operator for entry in self.operators if self.backend in entry.keys)


def read_manifest(path: Path) -> ExtensionManifest:
    """Read the manifest in a file.

    Raises:
        ManifestError: it is not a manifest, or was written by a newer version of torch-compat; carries all mistakes at once.
    """
    where = path.as_posix()
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError("file not found", where=where, hint=_HINT, code="no-file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot be read: {error}", where=where, hint=_HINT, code="no-file") from error
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise ManifestError([Problem(where, error.lineno, "", f"is not JSON: {error.msg}, column {error.colno}")]) from error
    except (ValueError, RecursionError) as error:
        raise ManifestError([Problem(where, 0, "", f"is not JSON: {error}")]) from error
    return _Reading(where, text).manifest(document)


class _Reading:
    """Collects the mistakes of one document, each with its line."""

    def __init__(self, where: str, text: str) -> None:
        self.where = where
        self.text = text
        self.found: list[tuple[tuple[str | int, ...], str]] = []

    def wrong(self, path: tuple[str | int, ...], message: str) -> None:
        self.found.append((path, message))

    def finish(self) -> None:
        if self.found:
            lines = dict(_lines(self.text))
            raise ManifestError([Problem(self.where, _line(lines, path), _shown(path), message) for path, message in self.found])

    def manifest(self, document: Any) -> ExtensionManifest:
        if not isinstance(document, dict):
            self.wrong((), f"expected an object, found {_what(document)}")
            self.finish()
        version = document.get("schema_version")
        if type(version) is int and version > SCHEMA_VERSION:
            self.wrong(
                ("schema_version",),
                f"{version} was written by a newer torch-compat; {SCHEMA_VERSION} is the newest version that this torch-compat reads: update torch-compat",
            )
            self.finish()  # the rest cannot be validated
        self._keys(document, (), _TOP)
        if "schema_version" in document and (type(version) is not int or version != SCHEMA_VERSION):
            self.wrong(("schema_version",), f"expected {SCHEMA_VERSION}, found {_what(version)}")
        for key in ("extension", "built_against", "obtained"):
            self._text(document, (), key)
        for key in ("torch", "backend"):
            self._text(document, (), key, optional=True)
        self._flag(document, (), "fallback")
        needs = document.get("needs", [])
        if not isinstance(needs, list) or not all(isinstance(need, str) and "." in need for need in needs):
            self.wrong(("needs",), f"expected a list of names such as torch.library.Library, found {_what(needs)}")
        operators = document.get("operators", [])
        if not isinstance(operators, list):
            self.wrong(("operators",), f"expected a list, found {_what(operators)}")
            operators = []
        entries = [self._entry(item, ("operators", index), document) for index, item in enumerate(operators)]
        self._twice(operators)
        self.finish()
        return ExtensionManifest(
            document["extension"],
            document["built_against"],
            [entry for entry in entries if entry is not None],
            torch=document["torch"],
            obtained=document["obtained"],
            backend=document["backend"],
            fallback=document["fallback"],
            needs=tuple(needs),
        )

    def _entry(self, item: Any, path: tuple[str | int, ...], document: dict[str, Any]) -> ExtensionOperator | None:
        if not isinstance(item, dict):
            self.wrong(path, f"expected an object, found {_what(item)}")
            return None
        before = len(self.found)
        self._keys(item, path, _ENTRY)
        self._text(item, path, "operator")
        self._text(item, path, "schema")
        operator, schema, use = item.get("operator"), item.get("schema"), item.get("use")
        if isinstance(operator, str) and isinstance(schema, str) and schema.partition("(")[0] != operator:
            self.wrong((*path, "schema"), f"is a schema of {schema.partition('(')[0]!r}, expected a schema of {operator!r}")
        elif isinstance(schema, str) and schema:
            try:
                parse(schema, recorded=True)
            except SchemaError as error:
                self.wrong((*path, "schema"), str(error))
        if isinstance(operator, str) and "::" not in operator:
            self.wrong((*path, "operator"), f"{operator!r} has no namespace, expected a name such as 'aten::{operator}'")
        if use not in USES and "use" in item:
            self.wrong((*path, "use"), f"expected {', '.join(USES[:-1])} or {USES[-1]}, found {_what(use)}")
        self._flag(item, path, "relies_on_decomposition")
        if item.get("relies_on_decomposition") is True and document.get("backend") is None:
            self.wrong((*path, "relies_on_decomposition"), "is true, but the manifest does not name a backend")
        kernels = item.get("kernels", [])
        if not isinstance(kernels, list):
            self.wrong((*path, "kernels"), f"expected a list, found {_what(kernels)}")
            kernels = []
        if use == "registers" and not kernels and "kernels" in item:
            self.wrong((*path, "kernels"), "is empty, but the extension registers a kernel for this operator")
        results = [self._kernel(kernel, (*path, "kernels", index)) for index, kernel in enumerate(kernels)]
        if len(self.found) != before:
            return None
        return ExtensionOperator(
            item["operator"],
            item["use"],
            item["schema"],
            tuple(entry for entry in results if entry),
            item["relies_on_decomposition"],
        )

    def _kernel(self, item: Any, path: tuple[str | int, ...]) -> Kernel | None:
        if not isinstance(item, dict):
            self.wrong(path, f"expected an object, found {_what(item)}")
            return None
        before = len(self.found)
        self._keys(item, path, _KERNEL)
        self._text(item, path, "key")
        self._text(item, path, "signature", optional=True)
        if item.get("language") not in LANGUAGES:
            self.wrong((*path, "language"), f'expected "c++", "python" or null, found {_what(item.get("language"))}')
        return Kernel(item["key"], item["language"], item["signature"]) if len(self.found) == before else None

    def _keys(self, item: dict[str, Any], path: tuple[str | int, ...], expected: tuple[str, ...]) -> None:
        for key in expected:
            if key not in item:
                self.wrong(path, f"lacks {key!r}")
        for key in item:
            if key not in expected:
                self.wrong((*path, key), f"is unknown; expected {', '.join(expected)}")

    def _text(self, item: dict[str, Any], path: tuple[str | int, ...], key: str, *, optional: bool = False) -> None:
        value = item.get(key)
        if key in item and not (isinstance(value, str) and value) and not (optional and value is None):
            self.wrong((*path, key), f"expected a string{' or null' if optional else ''}, found {_what(value)}")

    def _flag(self, item: dict[str, Any], path: tuple[str | int, ...], key: str) -> None:
        if key in item and not isinstance(item[key], bool):
            self.wrong((*path, key), f"expected true or false, found {_what(item[key])}")

    def _twice(self, operators: list[Any]) -> None:
        seen: set[tuple[Any, Any]] = set()
        for index, item in enumerate(operators):
            if isinstance(item, dict) and isinstance(item.get("operator"), str) and isinstance(item.get("use"), str):
                name = (item["operator"], item["use"])
                if name in seen:
                    self.wrong(("operators", index), f"{name[0]} is listed twice as an operator that the extension {name[1]}")
                seen.add(name)


def _what(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _shown(path: tuple[str | int, ...]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def _line(lines: dict[tuple[str | int, ...], int], path: tuple[str | int, ...]) -> int:
    """The line of a path, or of its nearest ancestor in the text."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def _lines(text: str) -> Iterator[tuple[tuple[str | int, ...], int]]:
    """``(path, line)`` of every value in a text that is known to be valid JSON."""
    path: list[Any] = []  # the current key or index in each open container
    keys: list[bool] = []  # whether each of them is an object
    at, line, expects_key = 0, 1, False  # whether the next string is a key
    while at < len(text):
        character = text[at]
        if character == "\n":
            line += 1
        elif character == '"' and expects_key:
            key, at = scanstring(text, at + 1)
            path[-1], expects_key = key, False
            continue
        elif character in "}]":
            path.pop()
            keys.pop()
            expects_key = False
        elif character == ",":
            if keys[-1]:
                expects_key = True
            else:
                path[-1] += 1
        elif character not in " \t\r:":
            yield tuple(path), line
            if character in "{[":
                keys.append(character == "{")
                path.append(0)
                expects_key = keys[-1]
            elif character == '"':
                _, at = scanstring(text, at + 1)
                continue
            else:
                while at + 1 < len(text) and text[at + 1] not in ",]} \t\r\n":
                    at += 1
        at += 1
