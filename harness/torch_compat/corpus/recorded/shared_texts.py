"""Long texts in outcomes and answers: each is stored once in a folder, and referenced by id in outcomes and answers.

A release gives the same error message for hundreds of programs, and every outcome that differs in anything else would repeat it.
"""

from __future__ import annotations

from typing import Any, Final

from torch_compat.corpus.json_lines import digest
from torch_compat.corpus.observations import OUTCOME_DIGITS
from torch_compat.errors import CorpusError

__all__ = ["MissingTextError", "Texts", "apart", "text_id"]

LONG: Final = 60  # letters; from this length on, an id is much shorter
MARK: Final = "@"


class MissingTextError(Exception):
    """No file defines a referenced text. The argument is its id."""


def text_id(text: str) -> str:
    """Return the id of a text: its digest."""
    return digest(text)[:OUTCOME_DIGITS]


def apart(value: Any, element: dict[str, str]) -> Any:
    """Replace long texts in a JSON value by ids. Tensor data, which contains no blanks, and keys are left unchanged.

    Parameters:
        element: receives the texts by id.
    """
    if isinstance(value, str):
        if len(value) > LONG and " " in value:
            name = text_id(value)
            element[name] = value
            return f"{MARK}{name}"
        return f"{MARK}{value}" if value.startswith(MARK) else value
    if isinstance(value, dict):
        return {key: apart(item, element) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [apart(item, element) for item in value]
    return value


class Texts:
    """The texts that files define, and the expansion of values with them.

    Parameters:
        most: limit on the letters of all expanded texts: a short id can stand for a long text.
    """

    def __init__(self, most: int) -> None:
        self.known: dict[str, str] = {}
        self._most = self._room = most

    def whole(self, value: Any) -> Any:
        """Replace ids in a JSON value by their texts: the inverse of ``apart(value, ...)``.

        Raises:
            MissingTextError: a text is not defined.
            CorpusError: (``too-large``) the total length of the texts is too large.
        """
        if isinstance(value, str):
            return self._text(value) if value.startswith(MARK) else value
        if isinstance(value, dict):
            return {key: self.whole(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.whole(item) for item in value]
        return value

    def _text(self, value: str) -> str:
        name = value.removeprefix(MARK)
        if name.startswith(MARK):
            return name
        text = self.known.get(name)
        if text is None:
            raise MissingTextError(name)
        self._room -= len(text)
        if self._room < 0:
            raise CorpusError(
                f"contains more than {self._most:,} characters of text, too many for files of this size", code="too-large"
            )
        return text
