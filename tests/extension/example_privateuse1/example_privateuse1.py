"""A backend in Python: a few kernels at the dispatch key PrivateUse1, and an operator that is left to PyTorch's own decomposition.

Its tensors store their values in a CPU tensor. Suitable only for tests.
"""

import torch
from torch.library import Library

DEVICE = torch.device("privateuseone:0")
if hasattr(torch.utils, "rename_privateuse1_backend"):  # since 2.1
    torch.utils.rename_privateuse1_backend("example")
    DEVICE = torch.device("example:0")


class ExampleTensor(torch.Tensor):
    @staticmethod
    def __new__(cls, raw):
        result = torch.Tensor._make_wrapper_subclass(cls, raw.shape, strides=raw.stride(), dtype=raw.dtype, device=DEVICE)
        result.raw = raw
        return result

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        guard = torch._C._DisableTorchDispatch()  # on to the kernels of PrivateUse1
        try:
            return func(*args, **(kwargs or {}))
        finally:
            del guard


def raw(value):
    return value.raw if isinstance(value, ExampleTensor) else value


def add(self, other, *, alpha=1):
    return ExampleTensor(torch.add(raw(self), raw(other), alpha=alpha))


def dense_backward(*arguments):
    return ExampleTensor(torch.ops.aten._embedding_bag_dense_backward(*[raw(argument) for argument in arguments]))


LIBRARY = Library("aten", "IMPL")
LIBRARY.impl("add.Tensor", add, "PrivateUse1")
LIBRARY.impl("_embedding_bag_dense_backward", dense_backward, "PrivateUse1")


def add_two():
    """A call that meets a kernel of this backend."""
    item = ExampleTensor(torch.ones(3))
    assert (item + item).raw.tolist() == [2.0, 2.0, 2.0]


def embedding_bag_backward():
    """A call that this backend has no kernel for: as long as it decomposes, it ends at _embedding_bag_dense_backward, for which there is one."""
    indices, offsets, offset2bag, bag_size = (torch.tensor(values) for values in ([0, 2, 1], [0, 2], [0, 0, 1], [2, 1]))
    given = [ExampleTensor(item) for item in (torch.ones(2, 2), indices, offsets, offset2bag, bag_size, bag_size)]
    result = torch.ops.aten._embedding_bag_backward(*given, 4, False, 0, False, None)
    assert result.raw.tolist() == [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]
