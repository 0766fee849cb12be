"""Behaviors of releases: a condition over signs, and the releases that behave in a stated way if it holds.

``policies/torch/behaviors.toml`` lists them; :mod:`torch_compat.policy.behaviors` checks the file and documents its keys. A condition
consists of signs, which are properties of an archive, or of an operation on it:

    family:torch-save                  also torchscript, mobile, package, export, distributed
    container:zip                      also stream, tar, flatbuffer, pickle, directory
    version:bytecode                   the archive states a version of this kind
    newer:export-schema:8.2            it states a schema version above this one
    record:model.json                  it has this record; record:data/ any record in this folder
    field:attributes                   model.json has a field of this name, at any depth
    none-in:attributes.pkl             the pickle in this record holds a None
    no-tensor-in:constants.pkl         the pickle in this record is a tuple that has an item which is no tensor
    damaged:no-directory               the archive has damage with this code
    first-outside                      the first record of a zip archive lies outside of the folder of the others
    protocol:5                         a pickle is of this protocol
    storage-as-text                    a pickle of protocol 0 has a persistent id, which this protocol writes as a text
    names:torch.distributed.checkpoint.metadata.StorageMeta   a pickle names this
    checkpoint-strides                 a distributed checkpoint states the strides of its tensors
    args:torch._utils._rebuild_qtensor/7   this function is called with so many arguments to rebuild a tensor
    storage:quint4x2                   a storage has elements of this dtype
    sparse:csr                         a sparse tensor has this layout; sparse:coalesced: it says whether it is coalesced;
                                       sparse:indices: it has some
    nested:none                        a nested tensor holds no tensor
    lacks:torch.nn.modules.rnn.GRU/_flat_weights   an object of this class has no such attribute
    state-ends:torch.utils.hooks.RemovableHandle/tuple   the state of an object of this class is a tuple that ends with an object of this type
    debug:string-table                 the debug records keep their texts in one table
    type:NoneType                      TorchScript source has this type in an annotation
    function:unchecked_cast            TorchScript source calls this function of the language
    class-sets:__buffers__             the body of a class in TorchScript source sets this to a list
    name:NoneType                      TorchScript source calls something of its own so: a variable, an attribute, a method
    base:Enum                          TorchScript source defines a class derived from this one
    call:aten::upsample_nearest3d/3    TorchScript source calls this operator with so many arguments by position
    whole-floats                       TorchScript source has an int, which was a float, where its compiler asks for a float
    mixed-items                        TorchScript source has a list or a dict of ints, which were floats, and floats
    own-name                           TorchScript source of model.json makes or calls something below the name of the program itself
    custom-class:quantized.LinearPackedParamsBase   a program names this class of torch.classes
    custom-object:quantized.LinearPackedParamsBase   a program holds an object of this class of torch.classes
    custom-state:quantized.LinearPackedParamsBase/2   an object of this class of torch.classes has a state of so many parts; -1: that is no tuple
    packed-transposed                  a program holds packed parameters of a transposed convolution
    attribute:is                       TorchScript source takes an attribute of this name, as in self.is
    declares:is                        the body of a class in TorchScript source declares an attribute of this name
    empty-tuple-type                   TorchScript source spells the type of a tuple without elements
    sorts-texts                        TorchScript source sorts a list that it declares as a list of texts
    ill-formed-octal                   TorchScript source has a text with a backslash and a digit that are no character
    dtype:UNDEFINED                    model.json states this dtype of a tensor
    calls:higher_order::scan           an exported program calls this operator
    tree:collections.namedtuple        an exported program has arguments or results in a container of this type
    result:as_bool                     an exported program states a result of this kind
    integer-parameter                  an exported program that lists its weights has a parameter of integers or bools
    argument:as_optional_tensors       an exported program calls an operator with an argument of this kind
    range-from:0                       a size of an input of an exported program is a symbol whose range begins with this number
    input:as_int                       an exported program has an input of this kind
    changed-name-with-dot              an exported program of 2.1 changes a buffer that has a dot in its name
    complex-constant                   TorchScript source has a complex number
    statement-with                     TorchScript source has the statement ``with``
    none-listed                        TorchScript source has a list of tensors with a None that it does not call optional
    hidden-name                        TorchScript source calls a word of the language, or an operator, by the name of a variable that is no such thing

Those of archives above are looked for by :mod:`torch_compat.loadability.archive_features`, and only where a behavior asks for them; custom
classes always are, since what is recorded of the releases decides who has them.
Where a release lacks something that an archive needs, or runs a program, :mod:`torch_compat.runtime` looks for

    unmet:file-format                  the release lacks what the archive needs: the id of a behavior that only some releases load, or
                                       ``file-format``, ``bytecode``, ``operator``, ``container``
    unmet-in:code/                     records in this folder need something that the release lacks
    untyped:__buffers__                a class that the loader comes to, before anything that it refuses, sets this name without a type
    runs:attribute-store               the program comes to this while it runs; :mod:`torch_compat.runtime.slipping` has them all

Of calls, and of what is recorded of archives where none is opened:

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
    "args", "argument", "attribute", "base", "call", "calls", "changed-name-with-dot", "checkpoint-strides", "class-sets", "complex-constant", "container", "custom-class", "custom-object", "custom-state", "damaged", "debug", "declares", "dtype", "empty-tuple-type", "family", "field", "first-outside", "function", "hidden-name", "ill-formed-octal", "input", "integer-parameter", "lacks", "mixed-items", "name", "names", "nested", "newer", "no-tensor-in", "none-in", "none-listed", "own-name", "packed-transposed", "protocol", "range-from", "record", "result", "sorts-texts", "sparse", "state-ends", "statement-with", "storage", "storage-as-text", "tree", "type", "version", "whole-floats",
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
    """The condition of a behavior: signs that must all be present, of which at least one must be present, and that must be absent."""

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
