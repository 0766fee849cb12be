"""Scripts that run inside an old release; they use only Python 3.6 syntax, the standard library and torch.

* ``worker.py``: answers requests one at a time; :class:`torch_compat.readers.torch_release.TorchRelease` starts it
* ``survey.py``: lists operators, kernels, upgraders and limits of a release
* ``exported.py``: lists the schema of exported programs, and the loader's behavior on altered ones
* ``extension.py``: loads an extension and reports what it registers

Each script is a single file, because a release starts it by path and cannot import other files. This is why ``worker.py`` and ``survey.py``
are longer than other files. No module imports them; use :func:`script` for their paths.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["script"]


def script(name: str) -> Path:
    """Return the path of a script in this folder.

    Parameters:
        name: ``worker``, ``survey``, ``exported`` or ``extension``.
    """
    return Path(__file__).with_name(f"{name}.py")
