"""Isolates processes of a release from the network, the user's home and variables, and decides what may run without isolation.

``launcher.py`` builds the fence. This module probes once what the machine supports, and describes the fence of one process.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import pwd
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from torch_compat.errors import Untrusted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = [
    "Isolation",
    "Trust",
    "isolation",
    "launch",
    "plain_environ",
    "refuse_unless_trusted",
    "trust_everything",
    "trust_nothing",
    "warn_unless_isolated",
    "widened",
]

LAUNCHER = Path(__file__).with_name("launcher.py")
PROBE_SECONDS = 30
PATH = "/usr/local/bin:/usr/bin:/bin"

Trust: TypeAlias = "Callable[[Path], bool]"
"""Decides whether a release that is not isolated may run an archive."""


@dataclass(frozen=True)
class Isolation:
    """What a process of a release cannot reach.

    Attributes:
        network: no socket of any kind can be opened.
        home: the user's home cannot be read or written, nor anything else that the release does not need.
        reasons: the reason for each of these that is False.
    """

    network: bool
    home: bool
    reasons: Mapping[str, str]

    @property
    def whole(self) -> bool:
        """Whether it cannot reach either."""
        return self.network and self.home

    def as_json(self) -> dict[str, bool]:
        """The form that commands print."""
        return {"network": self.network, "home": self.home}

    def __str__(self) -> str:
        open_ = [f"{text} ({self.reasons[part]})" for part, text in _REACHED.items() if part in self.reasons]
        return " and ".join(open_) or "neither the network nor the home directory can be accessed"


_REACHED = {"network": "the network can be accessed", "home": "the home directory can be read and written"}


def isolation() -> Isolation:
    """Return what this machine supports; probed once per process."""
    return _probe(tuple(_homes()))


def warn_unless_isolated(say: Callable[[str], None]) -> None:
    """Report what a release can reach here but should not, if anything."""
    fence = isolation()
    if not fence.whole:
        say(f"torch-compat: releases are not isolated on this machine: {fence}")


@functools.cache
def _probe(homes: tuple[str, ...]) -> Isolation:
    with tempfile.TemporaryDirectory(prefix="torch-compat-") as scratch:
        spec = {**_spec(isolate={"network": True, "home": True}, reads=(), writes=(scratch,), homes=homes), "probe": True}
        try:
            done = subprocess.run(
                _command(spec), stdin=subprocess.DEVNULL, capture_output=True, cwd=scratch, env=launcher_environ(plain_environ()), timeout=PROBE_SECONDS,
                check=False,
            )  # fmt: skip
            reasons = json.loads(done.stdout)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            reasons = dict.fromkeys(_REACHED, f"the launcher did not respond: {type(error).__name__}")
    results = {part: str(reason) for part, reason in reasons.items() if reason}
    return Isolation("network" not in results, "home" not in results, results)


def launch(
    command: Sequence[str | Path], *, fence: Isolation, reads: Iterable[Path], writes: Iterable[Path], reply: int
) -> list[str]:
    """Return the command line that starts a command inside a fence; the fence is never weaker than ``fence``.

    Parameters:
        reads: what it may read in addition to the system's own programs and libraries: files, or folders with all their contents.
        writes: folders that it may read and write.
        reply: the file descriptor to which the launcher writes why the command does not start.
    """
    spec = _spec(isolate=fence.as_json(), reads=map(str, reads), writes=map(str, writes), homes=_homes())
    return _command({**spec, "reply": reply, "command": [str(word) for word in command]})


def _spec(*, isolate: dict[str, bool], reads: Iterable[str], writes: Iterable[str], homes: Iterable[str]) -> dict[str, Any]:
    return {"parent": os.getpid(), "isolate": isolate, "reads": [*reads], "writes": [*writes], "homes": [*homes]}


def _command(spec: Mapping[str, Any]) -> list[str]:
    return [sys.executable, "-I", "-S", str(LAUNCHER), json.dumps(spec)]


def _homes() -> list[str]:
    """Return the user's home, from the variable and from the system's user database."""
    homes = [os.environ.get("HOME", "")]
    with contextlib.suppress(KeyError):  # a user id without a name, as in containers
        homes.append(pwd.getpwuid(os.getuid()).pw_dir)
    return list(dict.fromkeys(home for home in homes if home.startswith("/") and home != "/"))


def widened(fence: Isolation, reads: Iterable[Path]) -> Isolation:
    """Return a fence that lets these paths be read: no longer whole if one of them is, or contains, the home."""
    homes = [Path(home).resolve() for home in _homes()]
    for path in reads:
        if fence.home and any(home.is_relative_to(path.resolve()) for home in homes):
            reason = f"{path} must be readable, and the home directory is in it"
            return Isolation(fence.network, False, {**fence.reasons, "home": reason})
    return fence


def plain_environ(scratch: Path | None = None) -> dict[str, str]:
    """Return the environment variables of a process that inherits none from the user.

    Parameters:
        scratch: the folder for its home, temporary files, caches and settings; none is set by default.
    """
    plain = {"PATH": PATH, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "USER": "torch-compat", "LOGNAME": "torch-compat"}
    if scratch is None:
        return plain
    return plain | {
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "TORCH_HOME": str(scratch / ".cache" / "torch"),
        "XDG_CACHE_HOME": str(scratch / ".cache"),
        "XDG_CONFIG_HOME": str(scratch / ".config"),
        "XDG_DATA_HOME": str(scratch / ".local" / "share"),
        "XDG_STATE_HOME": str(scratch / ".local" / "state"),
    }


def launcher_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of the launcher that starts a command with ``environ``.

    The launcher runs on our own Python, which may need LD_LIBRARY_PATH to start; the launcher removes it again.
    """
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return {**environ, **kept}


# ------------------------------------------------------------------------------------------------------------------ trust


def trust_nothing(_: Path) -> bool:
    """Trust no archive."""
    return False


def trust_everything(_: Path) -> bool:
    """Trust every archive: the user passed --trust."""
    return True


def refuse_unless_trusted(path: Path, fence: Isolation, trust: Trust) -> None:
    """Refuse an archive unless the release is isolated or the archive is trusted.

    Raises:
        Untrusted: neither is the case.
    """
    if not fence.whole and not trust(path):
        raise Untrusted(
            f"a release would run code from this archive, but is not isolated on this machine: {fence}",
            where=str(path),
            hint="run it on a machine that supports isolation, or use --trust if you trust its author",
        )
