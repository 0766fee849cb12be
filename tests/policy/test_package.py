from __future__ import annotations

import subprocess
import sys

import pytest

import torch_compat.policy


@pytest.mark.parametrize("name", torch_compat.policy.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(torch_compat.policy, name)


def test_importing_policies_loads_nothing_heavier_than_pydantic() -> None:
    script = "import sys, torch_compat.policy; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    assert "pydantic" in loaded
    assert not {"numpy", "rich", "click", "torch", "jsonschema"} & set(loaded)
