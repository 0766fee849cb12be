"""Long texts in outcomes and answers: each stands once in a folder, and is meant by its id wherever an outcome or an answer has it.

A release words an error alike in hundreds of programs, and every outcome that differs in anything else would say it again.
"""

from __future__ import annotations

from typing import Any, Final

from torch_compat.corpus.json_lines import digest
from torch_compat.corpus.observations import OUTCOME_DIGITS
from torch_compat.errors import CorpusError

__all__ = ["MissingTextError", "Texts", "apart", "text_id"]

LONG: Final = 60  # letters, from which on an id is much shorter
MARK: Final = "@"


class MissingTextError(Exception):
    """No file tells a text that is meant. The argument is its id."""


def text_id(text: str) -> str:
    """The name of a text: a digest of it."""
    return digest(text)[:OUTCOME_DIGITS]


def apart(value: Any, found: dict[str, str]) -> Any:
    """A JSON value with ids in the place of its long texts. Numbers of tensors, which have no blanks, stay; so do keys.

    Parameters:
        found: where the texts are put, by their ids.
    """
    if isinstance(value, str):
        if len(value) > LONG and " " in value:
            name = text_id(value)
            found[name] = value
            return f"{MARK}{name}"
        return f"{MARK}{value}" if value.startswith(MARK) else value
    if isinstance(value, dict):
        return {key: apart(one, found) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [apart(one, found) for one in value]
    return value


class Texts:
    """The texts that files tell, and values made whole with them.

    Parameters:
        most: letters of all texts in all values: a value means a text with a few letters, however long that is.
    """

    def __init__(self, most: int) -> None:
        self.known: dict[str, str] = {}
        self._most = self._room = most

    def whole(self, value: Any) -> Any:
        """A JSON value with the texts that its ids mean: of ``apart(value, ...)``, the value.

        Raises:
            MissingTextError: there is no such text.
            CorpusError: (``too-large``) the texts are too long together.
        """
        if isinstance(value, str):
            return self._text(value) if value.startswith(MARK) else value
        if isinstance(value, dict):
            return {key: self.whole(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.whole(one) for one in value]
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
