"""The result of an operator may be as large as a number in the program says: memory is checked before it is allocated."""

from __future__ import annotations

import tracemalloc

import pytest

from tests.runtime.archives import program
from torch_compat.errors import HarnessError
from torch_compat.runtime.limits import LIMITS

LIMIT = 64 << 20
MANY = 30_000_000


@pytest.mark.parametrize("call", [
    f"torch.arange({MANY})",
    f"torch.arange(0., {MANY}, 1)",
    f"torch.range(0, {MANY})",
    f"torch.linspace(0, 1, {MANY})",
    f"torch.logspace(0, 1, {MANY})",
    f"torch.eye({MANY // 1000}, 1000)",
    "torch.eye(6000)",
    f"torch.tril_indices({MANY // 1000}, 1000)",
    f"torch.triu_indices({MANY // 1000}, 1000)",
    f"torch.hann_window({MANY})",
    f"torch.bartlett_window({MANY}, False)",
    f"torch.tile(torch.ones([1]), [{MANY}])",
    f"torch.tile(torch.ones([2]), [{MANY}, -1])",
    f"torch.repeat_interleave(torch.ones([3]), {MANY})",
    f"torch.repeat_interleave(torch.tensor([1, {MANY}]))",
    f"torch.repeat_interleave(torch.ones([1, 3000]), {MANY // 3000}, 0)",
    f"torch.bincount(torch.tensor([1]), None, {MANY})",
    f"torch.bincount(torch.tensor([{MANY}]))",
    f"torch.histc(torch.ones([3]), {MANY})",
    "torch.diag(torch.ones([3]), 6000)",
    "torch.diag_embed(torch.ones([3]), -6000)",
    "torch.diagflat(torch.ones([3]), 6000)",
    "torch.block_diag([torch.ones([6000, 1]), torch.ones([1, 6000])])",
    "torch.meshgrid([torch.ones([6000]), torch.ones([6000])])[0]",
    "torch.cartesian_prod([torch.ones([6000]), torch.ones([6000])])",
    f"torch.constant_pad_nd(torch.ones([3]), [0, {MANY}])",
    f"torch.replication_pad1d(torch.ones([1, 1, 3]), [0, {MANY}])",
    f"torch.conv1d(torch.ones([1, 1, 8]), torch.ones([1, 1, 3]), None, [{MANY}], [{MANY}], [1], 1)",
    f"torch.im2col(torch.ones([1, 1, 8, 8]), [1, 1], [1, 1], [{MANY // 100}, 50], [{MANY}, 1])",
    "torch.im2col(torch.ones([1, 1, 3000, 3000]), [300, 300], [1, 1], [0, 0], [1, 1])",
    f"torch.upsample_nearest1d(torch.ones([1, 1, 3]), [{MANY}])",
    "torch.affine_grid_generator(torch.ones([1, 2, 3]), [1, 1, 6000, 6000])",
    f"torch.fft_fft(torch.ones([3]), {MANY})",
    f"torch.fft_irfft(torch.ones([3]), {MANY})",
    "torch.fft_fftn(torch.ones([3, 3]), [6000, 6000])",
    "torch.irfft(torch.ones([3, 3, 2]), 2, False, True, [6000, 6000])",
    f"torch.rfft(torch.ones([3]), {MANY})",
    f"torch.local_response_norm(torch.ones([1, 3, 2]), {MANY})",
    f"torch.add(1, {MANY}, [1, 2, 3])",
    f"torch.add(1, [1, 2, 3], {MANY})",
    f"torch.sub(1, 'abc', {MANY})",
    f"torch.mul({MANY}, 'abc')",
    f"torch.mul({MANY}, (1, 2))",
    f"torch._pad_packed_sequence(torch.ones([1, 1]), torch.tensor([1]), False, 0, {MANY})",
])  # fmt: skip
def test_memory_is_looked_at_first(call: str) -> None:
    module = program(f"def forward(self) -> Any:\n    return {call}")
    module.program.limits = LIMITS._replace(memory=LIMIT)
    tracemalloc.start()
    try:
        with pytest.raises(HarnessError) as caught:
            module.run("forward")
        assert caught.value.code in {"memory-limit", "too-large", "work-limit", "RuntimeError"}
        assert tracemalloc.get_traced_memory()[1] < LIMIT + (16 << 20)
    finally:
        tracemalloc.stop()
