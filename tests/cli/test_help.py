"""Every command states the meaning of its exit statuses in its help."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click
import pytest

from torch_compat.cli import top_level

if TYPE_CHECKING:
    from collections.abc import Iterator


def runnable(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, with its name."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None
            yield from runnable(found, f"{name} {inner}".strip())
    if not isinstance(command, click.Group) or (name and command.invoke_without_command):
        yield name, command


COMMANDS = dict(runnable(top_level))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_states_its_exit_statuses(name: str) -> None:
    text = " ".join((COMMANDS[name].help or "").split())
    _, heading, statuses = text.partition("Exit status: ")
    assert heading
    assert statuses.endswith(".")
    numbers = [int(number) for number in re.findall(r"(?:^|; )(\d) ", statuses)]
    assert numbers == sorted(set(numbers))
    assert {0, 2, 3} <= set(numbers) <= {0, 1, 2, 3, 4}
    assert "3 internal error in torch-compat" in statuses
