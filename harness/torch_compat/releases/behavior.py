"""Behaviors of releases: a condition over signs, and the releases that behave in a stated way if it holds.

``policies/torch/behaviors.toml`` lists them; :mod:`torch_compat.policy.behaviors` checks the file and documents its keys. A condition
consists of signs, which are properties of an archive, or of an operation on it:

    family:torch-save                  also torchscript, mobile, package, export, distributed
    container:zip                      also stream, tar, flatbuffer, pickle, directory
    version:bytecode                   the archive states a version of this kind
    newer:export-schema:8.2            the archive states a schema version above this one
    record:model.json                  the archive has this record; record:data/: any record in this folder
    field:attributes                   model.json has a field with this name, at any depth
    none-in:attributes.pkl             the pickle in this record contains None
    no-tensor-in:constants.pkl         the pickle in this record is a tuple with an item that is not a tensor
    damaged:no-directory               the archive has damage with this code
    first-outside                      the first record of a zip archive is outside the folder of the others
    protocol:5                         a pickle has this protocol
    storage-as-text                    a pickle of protocol 0 has a persistent id, which this protocol writes as text
    names:torch.distributed.checkpoint.metadata.StorageMeta   a pickle refers to this global
    checkpoint-strides                 a distributed checkpoint states the strides of its tensors
    args:torch._utils._rebuild_qtensor/7   this function is called with this number of arguments to rebuild a tensor
    storage:quint4x2                   a storage has elements of this dtype
    sparse:csr                         a sparse tensor has this layout; sparse:coalesced: it states whether it is coalesced;
                                       sparse:indices: it has at least one index
    nested:none                        a nested tensor contains no tensor
    lacks:torch.nn.modules.rnn.GRU/_flat_weights   an object of this class lacks this attribute
    state-ends:torch.utils.hooks.RemovableHandle/tuple   the state of an object of this class is a tuple whose last item has this type
    bytecode-type:undefined            the table of types in bytecode names a named tuple that no earlier type defines; class: it names a
                                       class of the program; undefined-in-schema: a larger type in a schema names an undefined class
    debug:string-table                 the debug records keep their strings in one table
    type:NoneType                      TorchScript source has this type in an annotation
    function:unchecked_cast            TorchScript source calls this builtin function
    class-sets:__buffers__             the body of a class in TorchScript source sets this to a list
    name:NoneType                      TorchScript source has a variable, an attribute or a method of its own with this name
    base:Enum                          TorchScript source defines a class derived from this one
    call:aten::upsample_nearest3d/3    TorchScript source calls this operator with this number of positional arguments
    whole-floats                       TorchScript source has an int, which was a float, where its compiler requires a float
    mixed-items                        TorchScript source has a list or a dict of floats and of ints, which were floats
    own-name                           TorchScript source calls or constructs something under the name of the program in model.json
    custom-class:quantized.LinearPackedParamsBase   a program refers to this class of torch.classes
    custom-object:quantized.LinearPackedParamsBase   a program contains an object of this class of torch.classes
    custom-state:quantized.LinearPackedParamsBase/2   the state of an object of this class of torch.classes has this number of parts;
                                       -1: it is not a tuple
    packed-transposed                  a program contains packed parameters of a transposed convolution
    attribute:is                       TorchScript source accesses an attribute with this name, as in self.is
    declares:is                        the body of a class in TorchScript source declares an attribute with this name
    empty-tuple-type                   TorchScript source contains the type of an empty tuple
    sorts-texts                        TorchScript source sorts a list that it declares as a list of strings
    ill-formed-escape                  TorchScript source has a string with an escape that releases cannot parse
    dtype:UNDEFINED                    model.json states this dtype for a tensor
    calls:higher_order::scan           an exported program calls this operator
    tree:collections.namedtuple        an exported program has arguments or results in a container of this type
    result:as_bool                     an exported program has a result of this kind
    integer-parameter                  an exported program that lists its weights has a parameter of integers or bools
    argument:as_optional_tensors       an exported program calls an operator with an argument of this kind
    range-from:0                       an input of an exported program has a symbolic size whose range begins with this number
    input:as_int                       an exported program has an input of this kind
    changed-name-with-dot              an exported program of 2.1 mutates a buffer with a dot in its name
    optional-literal:list              TorchScript source gives a list an optional type, as annotate(Optional[List[int]], [1]); dict: an empty
                                       dict; returned-list: a function whose result is optional returns a list
    packed-as-tensor:attribute         a class in TorchScript source keeps packed parameters in an attribute declared as a tensor; item: a list of
                                       tensors has them
    scales-as-list                     a tensor quantized per channel has its scales in a list
    complex-constant                   TorchScript source has a complex number
    statement-with                     TorchScript source has a ``with`` statement
    none-listed                        TorchScript source has a list of tensors with a None that is not declared optional
    hidden-name                        TorchScript source calls a builtin or an operator whose name is hidden by a variable that cannot be
                                       called in this way
    unlike-branches                    TorchScript source reads a variable that has another type after each branch of an ``if``

:mod:`torch_compat.loadability.archive_features` looks for these signs of archives, and only for those that a behavior uses; it always looks
for custom classes, because the recorded facts about releases determine which have them.

If a release lacks something that an archive needs, or runs a program, :mod:`torch_compat.runtime` looks for

    unmet:file-format                  the release lacks what the archive needs: the id of a behavior with the outcome ``loads``, or
                                       ``file-format``, ``bytecode``, ``operator``, ``container``
    unmet-in:code/                     records in this folder need something that the release lacks
    untyped:__buffers__                a class that the loader reaches, before anything that it refuses, sets this name without a type
    runs:attribute-store               the program reaches this while it runs; :mod:`torch_compat.runtime.slipping` lists them all

For calls, and for recorded facts about archives when none is opened:

    given:bool                         an argument of an operator has this type
    recipe:save_bool                   this recipe wrote the archive
    weights-only                       it is loaded with ``weights_only=True``
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from torch_compat.releases.sets import ReleaseSet

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

__all__ = ["LOADS", "OF_ARCHIVES", "OF_CALLS", "OF_CELLS", "OF_RUNS", "SIGN_KINDS", "SLIPS", "Behavior", "Condition"]

OF_ARCHIVES: Final = frozenset({
    "args", "argument", "attribute", "base", "bytecode-type", "call", "calls", "changed-name-with-dot", "checkpoint-strides", "class-sets", "complex-constant", "container", "custom-class", "custom-object", "custom-state", "damaged", "debug", "declares", "dtype", "empty-tuple-type", "family", "field", "first-outside", "function", "hidden-name", "ill-formed-escape", "input", "integer-parameter", "lacks", "mixed-items", "name", "names", "nested", "newer", "no-tensor-in", "none-in", "none-listed", "optional-literal", "own-name", "packed-as-tensor", "packed-transposed", "protocol", "range-from", "record", "result", "scales-as-list", "sorts-texts", "sparse", "state-ends", "statement-with", "storage", "storage-as-text", "tree", "type", "unlike-branches", "version", "whole-floats",
})  # fmt: skip
"""The kinds of signs that depend only on the archive."""
OF_RUNS: Final = frozenset({"debug", "family", "runs", "unmet", "unmet-in", "untyped"})
"""The kinds of signs that appear when a release refuses an archive or runs its program."""
OF_CALLS: Final = frozenset({"given"})
"""The kinds of argument signs."""
OF_CELLS: Final = frozenset({"recipe", "weights-only"})
"""The kinds of signs from the records about an archive, used if no archive is opened: in judging, and for stored
predictions."""
SIGN_KINDS: Final = OF_ARCHIVES | OF_RUNS | OF_CALLS | OF_CELLS
LOADS: Final = "loads"
"""The outcome of a requirement: only these releases load an archive with these signs."""
SLIPS: Final = frozenset({"crashed", "timed-out", "unstable", "raised", "value"})
"""The outcomes of slips, in which a release breaks its own rules: it crashes, does not finish, varies, raises by mistake,
or gives or leaves different values."""


class Condition(NamedTuple):
    """The signs of a condition: all of ``all``, at least one of ``any`` if it is given, and none of ``none`` must be present."""

    all: tuple[str, ...] = ()
    any: tuple[str, ...] = ()
    none: tuple[str, ...] = ()

    @property
    def signs(self) -> tuple[str, ...]:
        """All signs in the condition."""
        return (*self.all, *self.any, *self.none)

    def holds(self, signs: Container[str]) -> bool:
        """Whether the condition holds, given the signs that are present."""
        return (
            all(sign in signs for sign in self.all)
            and (not self.any or any(sign in signs for sign in self.any))
            and not any(sign in signs for sign in self.none)
        )


class Behavior(NamedTuple):
    """The behavior of some releases if a condition holds.

    Attributes:
        id: its name.
        when: the condition.
        readers: the releases; None if it depends only on the Python version (``python``), and for ``writes``.
        python: the oldest Python that loads it; "" if it depends only on the release.
        outcome: :data:`LOADS`, one of :data:`SLIPS`, ``offers``, ``converts``, ``exploited``, ``refused`` or ``writes``.
        stage: ``load`` or ``call``.
        signal: the signal that ends the process, if it crashes or may crash.
        because: the reason.
        operator: the schema of an operator that these releases have.
        taken_as: the types that they convert the argument to.
        call, safe: the affected call, and the safe alternative.
        evidence: the evidence for it.
    """

    id: str
    when: Condition
    readers: ReleaseSet | None
    because: str
    outcome: str = LOADS
    stage: str = "load"
    signal: str = ""
    python: str = ""
    operator: str = ""
    taken_as: tuple[str, ...] = ()
    call: str = ""
    safe: str = ""
    evidence: str = ""

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Behavior:
        """Create it from a table of a policy file, which :mod:`torch_compat.policy` has checked."""
        return cls(
            entry["id"],
            Condition(*(tuple(entry.get(key, ())) for key in Condition._fields)),
            ReleaseSet.parse(entry["readers"]) if "readers" in entry else None,
            entry["because"],
            entry["outcome"],
            entry.get("stage", "load"),
            entry.get("signal", ""),
            entry.get("python", ""),
            entry.get("operator", ""),
            tuple(entry.get("taken_as", ())),
            entry.get("call", ""),
            entry.get("safe", ""),
            entry.get("evidence", ""),
        )
