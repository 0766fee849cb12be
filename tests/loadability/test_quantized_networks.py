"""Which releases load quantized networks of 1.3 to 1.5.

Networks of 1.3.1, 1.4.0, 1.5.0, 1.5.1, 1.8.1 and 2.6.0 (a perceptron and an LSTM quantized dynamically, and a convolution quantized per
channel) were loaded by 1.3.1 to 1.12.1 and 2.13.0; the sources here have the lines that decided.
"""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.runtime.archives import archive
from torch_compat.formats.facts import read_facts
from torch_compat.loadability import of

if TYPE_CHECKING:
    from pathlib import Path

PARAMETER = """class PackedParameter(Module):
  __parameters__ = []
  training : bool
  param : {type}
  def __setstate__(self, state: Tuple[Tuple[Tensor, Optional[Tensor]], bool]) -> None:
    _0, _1, = (state)[0]
    _2 = ops.quantized.linear_prepack(_0, _1)
    self.param = _2
    return None
"""
LISTED = """class LSTM(Module):
  training : bool
  def weights(self, w: Tensor, b: Optional[Tensor]) -> List[Tensor]:
    _0 = annotate(List[Tensor], [])
    _1 = ops.quantized.linear_prepack(w, b)
    _2 = torch.append(_0, {item})
    return _0
"""
MODEL = "class Model(Module):\n  training : bool\n  def forward(self,\n    x: Tensor) -> Tensor:\n    return x\n"
PACKED = "__torch__.torch.classes.quantized.LinearPackedParamsBase"


@pytest.mark.parametrize(
    ("source", "readers"),
    [
        (PARAMETER.format(type="Tensor"), "1.5.0..1.11.0"),
        (PARAMETER.format(type=PACKED), "1.6.0.."),
        (PARAMETER.format(type="Tensor").replace("PackedParameter", "LinearPackedParams"), "1.5.0.."),
        (LISTED.format(item="_1"), "1.5.0..1.5.1"),
        (LISTED.format(item="w"), "1.5.0.."),
    ],
)
def test_weights_of_recurrent_networks_were_tensors(source: str, readers: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(archive({"__torch__/m.py": MODEL, "__torch__/rnn.py": source}))
    assert str(of(read_facts(path)).readers) == readers


@pytest.mark.parametrize(("scales", "readers"), [(b"](G?\xe0\0\0\0\0\0\0e", "none"), (b"G?\xe0\0\0\0\0\0\0", "1.5.0..")])
def test_scales_in_a_list_are_read_up_to_1_4(scales: bytes, readers: str, tmp_path: Path) -> None:
    """File format 3 begins with 1.5, so no release loads this archive; 1.3 and 1.4 write format 1."""
    tensor = (
        b"ctorch._utils\n_rebuild_qtensor\n((X\7\0\0\0storagectorch\nQInt8Storage\nX\1\0\0\0000X\3\0\0\0cpuK\1tQK\0(K\1t(K\1t"
        b"(ctorch\nper_channel_affine\n" + scales + b"](K\0eK\0t\x89ccollections\nOrderedDict\n)RtR"
    )
    with zipfile.ZipFile(io.BytesIO(archive({"__torch__/m.py": MODEL}))) as old, zipfile.ZipFile(tmp_path / "a.pt", "w") as new:
        for item in old.infolist():
            new.writestr(item.filename, old.read(item))
        new.writestr("m/constants/0", b"\1")
    path = tmp_path / "b.pt"
    with zipfile.ZipFile(tmp_path / "a.pt") as old, zipfile.ZipFile(path, "w") as new:
        for item in old.infolist():
            new.writestr(
                item.filename, b"\x80\2" + tensor + b"\x85." if item.filename.endswith("constants.pkl") else old.read(item)
            )
    assert str(of(read_facts(path)).readers) == readers
