"""The type of an empty list follows from the origin of its variable, as in 1.5.1, 1.8.1, 1.12.1 and 2.15.0."""

from __future__ import annotations

import pytest

from tests.runtime.archives import program

PARAMETERS = "xs: List[int],\n    bs: List[bool],\n    rows: List[List[int]],\n    d: Dict[str, int],\n    n: int"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ('ys = [d["a"]]\n  if torch.eq(n, 0):\n    zs = torch.slice(ys, None, 0)\n  else:\n    zs = ys\n  return torch.tensor(zs)', "int64"),
        ("ys = torch.slice(bs, None, 0)\n  return torch.tensor(ys)", "bool"),
        ("return torch.tensor(zs)", "int64"),
        ("ys = (rows)[0]\n  zs = torch.slice(ys, None, 0)\n  return torch.tensor(zs)", "int64"),
        ("ys = [int(n)]\n  zs = torch.add(torch.slice(ys, 1), torch.slice(ys, 1))\n  return torch.tensor(zs)", "int64"),
        ("ys = torch.slice([1.], n, 0)\n  return torch.tensor(ys)", "float32"),
        ("ys = self.sizes\n  return torch.tensor(torch.slice(ys, 9))", "float32"),
    ],
)  # fmt: skip
def test_an_empty_list_is_of_what_its_variable_holds(body: str, kind: str) -> None:
    body = body if body.startswith("ys") else "zs = torch.slice(xs, 5)\n  " + body
    source = f"def forward(self: __torch__.m.Model,\n    {PARAMETERS}):\n  {body}\n"
    module = program(source, "reference@2.15.0")
    module.object.__dict__["a_sizes"] = [1.5]
    tensor = module.run("forward", ([1], [True], [[1]], {"a": 1}, 0))
    assert (tensor.array.size, str(tensor.dtype).removeprefix("torch.")) == (0, kind)
