"""Trees of arguments and results (``torch.utils._pytree``): nested containers, as an exported program states them.

A tree is a JSON string: ``[1, {"type": "builtins.tuple", "context": "null", "children_spec": [{"type": null, ...}]}]``, where 1 is the
version of the protocol, and a type of null is a leaf. ``context`` is JSON again: the keys of a dictionary, the name of a named tuple.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from torch_compat.errors import Corrupt, HarnessError, Raised, Unsupported
from torch_compat.pickles import cut
from torch_compat.runtime.values import DictOfClass, ListOfClass, NamedTupleValue, bounded, text_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Tree", "flatten", "read_tree", "unflatten"]

LEAF, SEQUENCE, DICTIONARY, NAMED = "leaf", "sequence", "dictionary", "named"
PROTOCOL = 1
DEEPEST = 64
LISTS = frozenset({"builtins.list", "torch.fx.immutable_collections.immutable_list", "collections.deque"})
TUPLES = frozenset({"builtins.tuple", "torch.Size"})
DICTIONARIES = frozenset(
    {"builtins.dict", "collections.OrderedDict", "torch.fx.immutable_collections.immutable_dict", "collections.defaultdict"}
)
NAMED_TUPLE = "collections.namedtuple"
RETURN_TYPES = "torch.return_types."
PYTREE = "torch.utils._pytree"  # makes the class of a named tuple of 2.1


class Tree(NamedTuple):
    """A tree, or a part of one.

    Attributes:
        kind: ``leaf``, ``sequence``, ``dictionary`` or ``named``.
        type: its name in the program; empty for a leaf.
        keys: of a dictionary; the name of a named tuple.
        children: in order.
        module: of a named tuple, the module of its class.
    """

    kind: str
    type: str = ""
    keys: tuple[Any, ...] = ()
    children: tuple[Tree, ...] = ()
    module: str = ""

    @property
    def leaves(self) -> int:
        """How many leaves it has."""
        return 1 if self.kind == LEAF else sum(child.leaves for child in self.children)


def read_tree(text: str, where: str, named: Mapping[str, tuple[str, ...]]) -> Tree:
    """Read a tree.

    Parameters:
        named: names of the fields of named tuples, by the name of the type.

    Raises:
        Corrupt: it is none.
        Unsupported: it has a container that the reference reader does not know.
    """
    try:
        version, result = json.loads(text)
        if version == PROTOCOL:
            return _read(result, where, named, 0)
    except HarnessError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise Corrupt(
            f"is not a valid tree: {type(error).__name__} {cut(str(error), 200)}", where=where, code="bad-tree"
        ) from error
    raise Unsupported(f"has a pytree spec of protocol {version!r:.40}, expected {PROTOCOL}", where=where, code="tree")


def _read(value: dict[str, Any], where: str, named: Mapping[str, tuple[str, ...]], depth: int) -> Tree:
    if depth > DEEPEST:
        raise ValueError(f"it is nested deeper than {DEEPEST}")
    type_ = value["type"]
    if type_ is None:
        return Tree(LEAF)
    children = tuple([_read(child, where, named, depth + 1) for child in value["children_spec"]])
    context = _context(value["context"])
    if type_ in LISTS or type_ in TUPLES:
        return Tree(SEQUENCE, type_, (), children)
    if type_ in DICTIONARIES:
        keys = context["dict_context"] if type_ == "collections.defaultdict" else context
        if type_ == "collections.defaultdict" and isinstance(keys, str):
            keys = json.loads(keys)
        if len(keys) != len(children) or any(key.__class__ not in {str, int, bool, float} for key in keys):
            raise ValueError("a dictionary whose keys do not match its children")
        return Tree(DICTIONARY, type_, tuple([text_in(key) if key.__class__ is str else key for key in keys]), children)
    if type_ == NAMED_TUPLE or str(type_).startswith(RETURN_TYPES):
        name, fields = str(type_), named.get(str(context), ())
        if type_ == NAMED_TUPLE:
            name = str(context)
            if isinstance(context, dict):  # 2.1: {"class_name": "Point", "fields": ["x", "y"]}
                name, fields = str(context["class_name"]), tuple(map(str, context["fields"]))
        fields = fields or tuple([f"field_{place}" for place in range(len(children))])
        if len(fields) != len(children):
            raise ValueError("a named tuple whose fields do not match its children")
        where_from = (
            RETURN_TYPES[:-1] if type_ != NAMED_TUPLE else PYTREE if isinstance(context, dict) else name.rpartition(".")[0]
        )
        return Tree(NAMED, name, fields, children, where_from)
    message = f"has arguments or results in a custom container {cut(str(type_), 80)!r}, which only the program's own Python code can create"
    raise Unsupported(message, where=where, code="tree")


def _context(stated: Any) -> Any:
    """The context of a container. Before 2.9 the name of a named tuple is not JSON."""
    if not isinstance(stated, str):
        return stated
    try:
        return json.loads(stated)
    except ValueError:
        return stated


def flatten(tree: Tree, value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of a value according to the program's tree, with their paths: ``[0]['key']``.

    As in the releases, items beyond those of the tree are ignored.

    Raises:
        Raised: an item or key is missing, or a value that should be a container is not one.
    """
    if tree.kind == LEAF:
        yield path, value
        return
    if tree.kind == DICTIONARY:
        if not isinstance(value, dict):
            raise Raised(f"'{_python(value)}' object is not subscriptable", code="TypeError")
        for key, child in zip(tree.keys, tree.children, strict=True):
            if key not in value:
                raise Raised(repr(key), code="KeyError")
            yield from flatten(child, value[key], f"{path}[{key!r}]")
        return
    if not isinstance(value, list | tuple):
        raise Raised(f"'{_python(value)}' object is not subscriptable", code="TypeError")
    if len(value) < len(tree.children):
        raise Raised(f"{'list' if tree.type in LISTS else 'tuple'} index out of range", code="IndexError")
    for place, child in enumerate(tree.children):
        yield from flatten(child, value[place], f"{path}[{place}]")


def unflatten(tree: Tree, leaves: Iterator[Any]) -> Any:
    """Build the value of a tree from its leaves.

    Raises:
        StopIteration: there are fewer.
    """
    if tree.kind == LEAF:
        return next(leaves)
    bounded(len(tree.children))
    results = [unflatten(child, leaves) for child in tree.children]
    if tree.kind == DICTIONARY:
        items = zip(tree.keys, results, strict=True)
        return dict(items) if tree.type == "builtins.dict" else DictOfClass(tree.type, items)
    if tree.kind == NAMED:
        space = {"qualified_name": tree.type, "fields": tree.keys, "module": tree.module, "__slots__": ()}
        return type("NamedTuple", (NamedTupleValue,), space)(*results)
    if tree.type in LISTS:
        return results if tree.type == "builtins.list" else ListOfClass(tree.type, results)
    return tuple(results)


def _python(value: Any) -> str:
    return type(value).__name__
