"""A runnable exported program: its graph, its weights, and the public ``forward``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from torch_compat.errors import Corrupt, HarnessError, Raised, Unsupported
from torch_compat.formats import _export, export_plain, export_pt2
from torch_compat.pickles import cut
from torch_compat.releases.release import Release
from torch_compat.runtime import registry
from torch_compat.runtime.exchange import Exchange, exchanged
from torch_compat.runtime.exported.document import names_of, read_document
from torch_compat.runtime.exported.execution import Execution
from torch_compat.runtime.exported.guards import GUARDED, Checks, Given
from torch_compat.runtime.exported.higher_order import FUNCTIONS as HIGHER_ORDER
from torch_compat.runtime.exported.trees import DICTIONARY, SEQUENCE, Tree, flatten, read_tree, unflatten
from torch_compat.runtime.exported.weights import read_constants, read_weights
from torch_compat.runtime.faults import CALLED, translated
from torch_compat.runtime.language.types import release_value
from torch_compat.runtime.limits import meter
from torch_compat.runtime.slipping import Slipping
from torch_compat.runtime.tensor import OpaqueTensor, Tensor
from torch_compat.runtime.values import Steps, text_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch_compat.archive import ZipArchive
    from torch_compat.runtime.horizons import Horizon
    from torch_compat.runtime.limits import Limits

__all__ = ["ExportedModule", "ExportedProgram"]

FORWARD = "forward"
LIFTED = frozenset({"parameter", "buffer", "tensor_constant", "custom_obj"})
# Up to 2.2 a module of a program has "conv_weight" for "conv.weight". 2.2 to 2.4 lose unused parameters and buffers. Up to 2.4 tensor
# constants are among the buffers.
DROPS, DOTS, KEEPS = Release("2.2.0"), Release("2.3.0"), Release("2.5.0")


class ExportedProgram:
    """A program: its graph, its weights and notes about its execution.

    The counterpart of :class:`torch_compat.runtime.program.Program` for TorchScript.

    Attributes:
        horizon: the release that the reader emulates.
        limits: the limits of a call.
        notes: notes about its execution.
        applied: upgraders that replace calls: exported programs have none.
        missing: operators that it calls but the reference reader lacks.
        slips: deviations of the horizon's release from its own rules; none is known for exported programs.
        document: the program as read from JSON.
        main: the module.
    """

    mobile = False

    def __init__(self, archive: ZipArchive, horizon: Horizon, limits: Limits, path: str) -> None:
        self.path = path
        self.horizon = horizon
        self.limits = limits
        self.steps = Steps(limits.steps)
        self.notes: list[str] = []
        self.applied: list[tuple[str, int, str, str]] = []
        self.slips = Slipping(horizon)
        self.slips.family = "export"
        record, name = _chosen(archive)
        where = f"{archive.path}, record {record!r}"
        program = _export.load_json(archive, record)
        self.document = read_document(program, _export.schema_version(archive, record, program), archive.allowance, where)
        self.where = where
        self.in_tree = self._in_tree()
        self.out_tree = read_tree(self.document.out_spec, where, self.document.named_tuples) if self.document.out_spec else None
        self.execution = Execution(self.document, horizon, self.steps, where, HIGHER_ORDER)
        self.missing = self.execution.missing
        state, constants = read_weights(archive, name)
        inside = read_constants(self.document.constants, archive, where)
        self.tensors = self._lifted(state, constants)
        self.execution.constants = inside
        self.guarded = horizon.release >= GUARDED and _has_samples(archive, name)
        self.given = self._given()
        self.checks = Checks(self.document, self.given, where)
        self.extra = {
            item.partition("/")[2]: archive.record(item) for item in archive.names if item.startswith(("extra/", "extra_files/"))
        }
        self.main = ExportedModule(self)

    def _in_tree(self) -> Tree:
        """The tree of the arguments: a tuple of the arguments and a dictionary of the keyword arguments."""
        if self.document.in_spec is None:
            raise Corrupt("does not describe the structure of its arguments", where=self.where, code="bad-program")
        tree = read_tree(self.document.in_spec, self.where, self.document.named_tuples)
        pair = tuple([child.kind for child in tree.children])
        if self.document.schema[0] != 1 and pair != (SEQUENCE, DICTIONARY):
            raise Corrupt(
                "does not describe the structure of its arguments and keyword arguments", where=self.where, code="bad-program"
            )
        users = sum(input_.kind in {"user_input", "constant_input"} for input_ in self.document.inputs)
        if tree.leaves != users:
            message = f"declares {tree.leaves} arguments in its pytree spec, but has {users}"
            raise Corrupt(message, where=self.where, code="bad-program")
        return tree

    def _lifted(self, state: dict[str, Any], constants: dict[str, Any]) -> dict[str, tuple[str, Any]]:
        """The kind and tensor of each input that the user does not pass, by input name."""
        results: dict[str, tuple[str, Any]] = {}
        for input_ in self.document.inputs:
            if input_.kind not in LIFTED:
                continue
            first, second = (
                (state, constants) if input_.kind in {"parameter", "buffer"} and input_.persistent else (constants, state)
            )
            value = first.get(input_.target, second.get(input_.target))
            if value is None:
                message = f"has no {input_.kind.replace('_', ' ')} {cut(input_.target, 80)!r}"
                raise Corrupt(message, where=self.where, code="missing-weight")
            if not isinstance(value, Tensor | OpaqueTensor):
                message = f"{cut(input_.target, 80)!r} is not a tensor but a custom Python object"
                raise Unsupported(message, where=self.where, code="custom-class")
            if input_.kind == "parameter" and value.__class__ is Tensor:
                value.is_parameter = True
            results[input_.target] = input_.kind, value
        return results

    @property
    def used(self) -> set[str]:
        """The parameters, buffers and constants that a node or a result uses."""
        graph = self.document.graph
        names = set(names_of(graph.outputs)) | {
            name for node in graph.nodes for name in names_of([*node.args, *node.keywords.values()])
        }
        return {str(input_.target) for name, input_ in zip(graph.inputs, self.document.inputs, strict=True) if name in names}

    @property
    def words(self) -> tuple[str, ...]:
        """The names of the arguments of ``forward``, in order."""
        if self.document.words:
            return self.document.words
        if self.document.schema[0] == 1:  # as many as the tree has children, even if these are the arguments and the keywords
            return tuple([f"arg_{place}" for place in range(len(self.in_tree.children))])
        positional, keywords = self.in_tree.children
        return (*[f"arg_{place}" for place in range(len(positional.children))], *map(str, keywords.keys))

    @property
    def by_keyword(self) -> bool:
        """Whether the tree of the arguments is a tuple of them and a dictionary of those by keyword."""
        children = self.in_tree.children
        return len(children) == 2 and (children[0].kind, children[1].kind) == (SEQUENCE, DICTIONARY)

    def root(self, given: list[Any]) -> Any:
        """The arguments in the form of their tree."""
        if not self.by_keyword:
            return given
        positional, keywords = self.in_tree.children
        count = len(positional.children)
        return [given[:count], dict(zip(keywords.keys, given[count:], strict=False))]

    @property
    def parts(self) -> tuple[Tree, ...]:
        """The trees of the arguments, in the order of their names."""
        if not self.by_keyword:
            return self.in_tree.children
        positional, keywords = self.in_tree.children
        return (*positional.children, *keywords.children)

    def _given(self) -> tuple[Given, ...]:
        users = [
            (name, input_)
            for name, input_ in zip(self.document.graph.inputs, self.document.inputs, strict=True)
            if input_.kind in {"user_input", "constant_input"}
        ]
        words, parts = self.words, self.parts
        if self.document.schema[0] == 1:
            words = tuple([f"arg_{place}" for place in range(len(parts))])
        if len(words) != len(parts):
            raise Corrupt(f"names {len(words)} arguments, but its tree has {len(parts)}", where=self.where, code="bad-program")
        paths = [(word, path) for word, part in zip(words, parts, strict=True) for path in _paths(part)]
        return tuple([
            Given(None if item.kind == "constant_input" else name, path, item.target, item.kind)
            for (name, item), path in zip(users, paths, strict=True)
        ])  # fmt: skip


class ExportedModule:
    """The public module of an exported program; the counterpart of :class:`torch_compat.runtime.module.Module` for TorchScript.

    Attributes:
        program: the underlying program.
    """

    def __init__(self, program: ExportedProgram) -> None:
        self.program = program

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"an exported program has no method or attribute {name!r}; call the program directly")

    @property
    def methods(self) -> dict[str, Any]:
        """Its methods, by name: ``forward``."""
        return {FORWARD: self.forward}

    @property
    def notes(self) -> list[str]:
        """Notes about its execution."""
        return list(self.program.notes)

    def run(self, method: str, args: tuple[Any, ...] = (), keywords: dict[str, Any] | None = None, *, hooks: bool = False) -> Any:
        """Call ``forward`` with values of the runtime.

        Parameters:
            method: ``forward``, or ``__call__``, which checks the inputs first.
            hooks: whether ``forward`` checks them, too.

        Raises:
            Raised: the program raised, or the arguments do not fit.
            Unsupported: the reference reader lacks something that the call needs.
        """
        if method == CALLED:
            method, hooks = FORWARD, True
        if method != FORWARD:
            raise Raised(f"the module has no method {method}", code="AttributeError")
        program = self.program
        program.steps.begin()
        meter.begin(program.limits)
        registry.grad.begin()
        try:
            with np.errstate(all="ignore"):  # torch has no arithmetic warnings
                return release_value(self._forward(args, keywords or {}, hooks=hooks))
        except HarnessError:
            raise
        except Exception as error:
            raise translated(error) from error
        finally:
            registry.grad.enabled = True

    def _forward(self, args: tuple[Any, ...], keywords: dict[str, Any], *, hooks: bool) -> Any:
        program = self.program
        given = _bound(program.words, args, keywords)
        flat = [value for _, value in flatten(program.in_tree, program.root([_text_in(value) for value in given]))]
        if hooks and not program.guarded:
            program.checks.check_hook(flat)
        if program.guarded:
            program.checks.check_guards(flat)
        results = program.execution.run(flat, program.tensors)
        if program.out_tree is None:
            return results[0] if len(results) == 1 else tuple(results)
        if program.out_tree.leaves != len(results):
            message = f"declares {program.out_tree.leaves} results in its pytree spec, but returns {len(results)}"
            raise Corrupt(message, where=program.where, code="bad-program")
        return unflatten(program.out_tree, iter(results))

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call the module as Python would, with NumPy arrays in and out (:mod:`torch_compat.runtime.exchange`).

        Raises:
            Raised: the program raised, or the arguments do not fit.
            Unsupported: the reference reader lacks something that the call needs.
        """
        return self._exchanged(CALLED, args, keywords)

    def forward(self, *args: Any, **keywords: Any) -> Any:
        """Call ``forward`` without the checks that run only when the module is called."""
        return self._exchanged(FORWARD, args, keywords)

    def _exchanged(self, method: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        return exchanged(partial(self.run, method), args, keywords)

    def named_tensors(self) -> Iterator[tuple[str, str, Tensor | OpaqueTensor]]:
        """``(name, "parameter" or "buffer", tensor)``, each tensor once, parameters first."""
        program, release = self.program, self.program.horizon.release
        results = {name: pair for name, pair in program.tensors.items() if not DROPS <= release < KEEPS or name in program.used}
        results |= {name: ("buffer", tensor) for name, tensor in program.execution.constants.items()}
        if release < KEEPS:
            results = {
                name: ("buffer" if kind == "tensor_constant" else kind, tensor) for name, (kind, tensor) in results.items()
            }
        for wanted in ("parameter", "buffer"):
            seen: set[int] = set()
            for name, (kind, tensor) in results.items():
                if kind == wanted and id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield name.replace(".", "_") if release < DOTS else name, kind, tensor

    def state(self) -> dict[str, Any]:
        """Its parameters and buffers by name, as NumPy arrays that share the program's memory."""
        return {name: Exchange().give(tensor) for name, _, tensor in self.named_tensors()}


def _chosen(archive: ZipArchive) -> tuple[str, str | None]:
    """The record of the program that torch.export.load would read, and its name.

    Raises:
        Unsupported: there is none, or there are several.
    """
    if export_plain.recognise(frozenset(archive.names)):
        return export_plain.PROGRAM, None
    records = export_pt2.programs(archive.names)
    if not records:
        compiled = export_pt2.native(archive)
        more = ": an AOTInductor package, whose native code is never run here" if compiled else ""
        raise Unsupported(f"contains no exported program{more}", where=archive.path, code="no-program")
    names = [record.removeprefix("models/").removesuffix(".json") for record in records]
    if len(names) > 1 and "model" not in names:
        message = (
            f"contains {len(names)} exported programs ({cut(', '.join(names), 200)}), none named model: only load_pt2 reads them"
        )
        raise Unsupported(message, where=archive.path, code="several-programs")
    name = "model" if "model" in names else names[0]
    return f"models/{name}.json", name


def _has_samples(archive: ZipArchive, name: str | None) -> bool:
    record = "serialized_example_inputs.pt" if name is None else f"data/sample_inputs/{name}.pt"
    return record in archive.names and archive.member(record).size > 0


def _paths(tree: Tree, path: str = "") -> Iterator[str]:
    if tree.kind == "leaf":
        yield path
        return
    for place, child in enumerate(tree.children):
        key = tree.keys[place] if tree.kind == "dictionary" else place
        yield from _paths(child, f"{path}[{key!r}]")


def _bound(words: tuple[str, ...], args: tuple[Any, ...], keywords: dict[str, Any]) -> list[Any]:
    """The arguments of ``forward`` in order, as Python binds them.

    Raises:
        Raised: there are too many or too few.
    """
    if len(args) > len(words):
        message = f"forward() takes {len(words) + 1} positional arguments but {len(args) + 1} were given"
        raise Raised(message, code="TypeError")
    results = dict(zip(words, args, strict=False))
    for name, value in keywords.items():
        if name in results:
            raise Raised(f"forward() got multiple values for argument '{name}'", code="TypeError")
        if name not in words:
            raise Raised(f"forward() got an unexpected keyword argument '{name}'", code="TypeError")
        results[name] = value
    missing = [word for word in words if word not in results]
    if missing:
        plural = "" if len(missing) == 1 else "s"
        names = " and ".join(repr(word) for word in missing[:20])
        raise Raised(f"forward() missing {len(missing)} required positional argument{plural}: {names}", code="TypeError")
    return [results[word] for word in words]


def _text_in(value: Any) -> Any:
    if value.__class__ is str:
        return text_in(value)
    if value.__class__ is dict:
        return {_text_in(key): _text_in(item) for key, item in value.items()}
    if value.__class__ is list:
        return [_text_in(item) for item in value]
    return tuple([_text_in(item) for item in value]) if value.__class__ is tuple else value
