"""Register functions as operators. :mod:`torch_compat.runtime.registry` looks them up and documents their form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from torch_compat.releases.release import Release
from torch_compat.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch_compat.runtime.differentiated import Recording
    from torch_compat.runtime.doubts import Doubts

__all__ = ["OUTS", "Function", "Grad", "Version", "grad", "operator", "registered"]

Function = TypeVar("Function", bound="Callable[..., Any]")
# Names of out tensors in schemas.
OUTS = frozenset(
    {"out", "out0", "out1", "out2", "out3", "output", "total_weight", "save_mean", "save_invstd", "sign", "logabsdet", "eigenvalues",
     "eigenvectors", "eigvals", "eigvecs", "values", "indices", "min", "max", "min_indices", "max_values", "U", "S", "V", "Vh", "Q", "R", "X", "M",
     "L", "buffer", "mantissa", "exponent", "solution", "lu", "e", "v", "P", "LU", "LD", "pivots", "info", "inverse", "result", "residuals", "rank",
     "singular_values", "a", "tau", "qr", "H"}
)  # fmt: skip


class Grad:
    """The gradient mode, and the tensors into which values that require gradients were written.

    A write to a view of a tensor is visible through its other views, and so are its gradients.

    Attributes:
        enabled: whether results computed from tensors that require gradients require gradients.
        written: the roots of written views, by identity, in the current or latest call.
        doubts: the tensors of the current call that 1.6 assumes to require gradients; None in other releases.
        recording: the operators of the current call, if it is a second call of a method (:mod:`torch_compat.runtime.differentiated`).
    """

    __slots__ = ("doubts", "enabled", "recording", "written")

    def __init__(self) -> None:
        self.enabled = True
        self.doubts: Doubts | None = None
        self.recording: Recording | None = None
        self.written: dict[int, Any] = {}

    def begin(self) -> None:
        """Begin a call."""
        self.enabled = True
        self.doubts = None
        self.recording = None
        self.written.clear()

    def record(self, name: str, args: tuple[Any, ...], keywords: dict[str, Any], result: Any, passes: int | None) -> None:
        """Record an operator that has been called."""
        if self.recording is not None:
            self.recording.failed |= not self.enabled
            self.recording.after(name, args, keywords, result, passes)

    def reaches(self, tensor: Any) -> bool:
        """Whether a tensor requires gradients because of a write through another view of its storage."""
        if not self.written or tensor.__class__ is not Tensor or tensor.is_detached:
            return False
        return id(tensor.storage if tensor.root is None else tensor.root) in self.written

    def write(self, tensor: Tensor) -> None:
        """Record an in-place write to a tensor that requires gradients."""
        root = tensor.storage if tensor.root is None else tensor.root
        self.written[id(root)] = root


grad = Grad()


class Version:
    """The implementation of an operator as of a release."""

    __slots__ = ("call", "function", "gradient", "since")

    def __init__(self, since: Release, function: Callable[..., Any], gradient: bool) -> None:
        self.since = since
        self.function = function
        self.gradient = gradient
        self.call: Callable[..., Any] | None = None


registered: dict[str, dict[str, list[Version]]] = {}  # name -> kind -> versions, oldest first


def operator(*names: str, since: str = "1.0.0", of: str = "tensor", gradient: bool = True) -> Callable[[Function], Function]:
    """Register a function as an operator.

    Parameters:
        names: qualified names without overload.
        since: the first release with this behavior.
        of: the kind of the first argument: ``tensor``, ``opaque``, ``scalar``, ``list``, ``dict``, ``str``, ``tuple``, or ``any`` for all
            others, for which ``tensor`` is used if there is no ``any``.
        gradient: whether results require gradients if arguments do; applies only to ``of="tensor"`` and floating-point results.
    """
    first = Release(since)

    def register(function: Function) -> Function:
        for name in names:
            versions = registered.setdefault(name, {}).setdefault(of, [])
            if any(version.since == first for version in versions):
                raise ValueError(f"{name} of {of} since {since} is registered twice")
            versions.append(Version(first, function, gradient and of == "tensor"))
            versions.sort(key=lambda version: version.since)
        return function

    return register
