"""Archives of programs, created here in the format of the releases: source, and a module with plain attributes."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from typing import TYPE_CHECKING, Any

from torch_compat.runtime.limits import LIMITS
from torch_compat.runtime.load import load
from torch_compat.runtime.module import Module

if TYPE_CHECKING:
    from torch_compat.runtime.horizons import Horizon

HEAD = """class Model(Module):
  __parameters__ = []
  training : bool
"""


def _plain(value: Any) -> bytes:
    """A plain value in protocol 2, without the frame around it, so that it can stand inside of another pickle."""
    return (
        pickle.dumps(value, 2)[2:-1].replace(b"q\x00", b"").replace(b"q\x01", b"").replace(b"q\x02", b"").replace(b"q\x03", b"")
    )


def archive(
    sources: dict[str, str | bytes], attributes: dict[str, Any] | None = None, *, version: int = 3, cls: str = "Model"
) -> bytes:
    """The bytes of an archive of 1.4 or newer: ``sources`` by record below code/, of which ``__torch__/m.py`` holds the class."""
    state = (
        b"}(" + b"".join(_plain(name) + _plain(value) for name, value in {"training": False, **(attributes or {})}.items()) + b"u"
    )
    data = b"\x80\x02c__torch__.m\n" + cls.encode() + b"\n)\x81" + state + b"b."
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as result:
        result.writestr("m/data.pkl", data)
        for record, source in sources.items():
            result.writestr(f"m/code/{record}", source)
        result.writestr("m/constants.pkl", b"\x80\x02).")
        result.writestr("m/version", f"{version}\n")
    return stream.getvalue()


def described(source: str, horizon: str | Horizon) -> Module:
    """The module of one file of methods in the layout of 1.0 to 1.2, which describes modules in model.json."""
    model = {"mainModule": {"name": "m", "torchscriptArena": {"key": "code/m.py"}}}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as product:
        product.writestr("m/version", b"1\n")
        product.writestr("m/model.json", json.dumps(model))
        product.writestr("m/code/m.py", "op_version_set = 0\n" + source)
    result = load(stream.getvalue(), horizon)
    assert isinstance(result, Module)
    return result


def program(
    source: str | bytes,
    horizon: str | Horizon = "reference",
    *,
    version: int = 3,
    steps: int = 100_000,
    attributes: dict[str, Any] | None = None,
) -> Module:
    """The module of one file of source; methods alone become those of ``Model``."""
    text = source if isinstance(source, bytes) else source.encode()
    if not text.startswith(b"class "):
        text = HEAD.encode() + b"".join(b"  " + line + b"\n" for line in text.strip(b"\n").split(b"\n"))
    result = load(archive({"__torch__/m.py": text}, attributes, version=version), horizon, limits=LIMITS._replace(steps=steps))
    assert isinstance(result, Module)
    return result


def run(source: str | bytes, *args: Any, horizon: str = "reference", version: int = 3) -> Any:
    """What ``forward`` gives."""
    return program(source, horizon, version=version).run("forward", args)
