"""Options that have no effect together are refused: a command never ignores an option."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_compat.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["refuse_ignored"]


def refuse_ignored(option: str, why: str, others: Mapping[str, object]) -> None:
    """Refuse options that have no effect with another option.

    Parameters:
        option: the option that is given.
        why: why the others have no effect, as the end of a sentence that begins with the option.
        others: the values of the options that have no effect with it, by name.

    Raises:
        UsageError: one of them is given.
    """
    given = [name for name, value in others.items() if value]
    if given:
        raise UsageError(
            f"{option} {why}, so it cannot be combined with {' or '.join(given)}",
            hint=f"remove {option}, or remove {' and '.join(given)}",
            code="together",
        )
