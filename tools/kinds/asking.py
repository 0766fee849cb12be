"""Load files with a release: each call in a separate process (call.py)."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

HERE = Path(__file__).parent


def answers(python: Path, calls: Iterable[tuple[str, str]]) -> list[str]:
    """The result of each call in a release: empty if it loads the file, otherwise its error.

    Parameters:
        python: its Python.
        calls: the path of a file and the code that loads it, in which ``PATH`` stands for the file. The module ``own_model`` can be imported.
    """
    with tempfile.TemporaryDirectory() as scratch:
        asked, message = Path(scratch, "calls.json"), Path(scratch, "answers.json")
        asked.write_text(json.dumps([[str(Path(path).resolve()), code] for path, code in calls]), encoding="utf-8")
        command = [str(python), "-W", "ignore", str(HERE / "call.py"), str(asked), str(message)]
        environ = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(HERE)}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environ, cwd=scratch)
        results: list[str] = json.loads(message.read_text(encoding="utf-8"))
    return results
