"""Names globals of a pickle that are known to do harm when called; it does not search for others.

This is not a scanner. A global that is not listed is not necessarily harmless: any class may do anything when it is constructed, and any
installed package may contain a function that runs code. Only a reader that never calls what a pickle names is safe, such as this package
and ``weights_only=True``. The list is for people who ask what a file would have done elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_compat.pickles.values import Global

__all__ = ["OUTSIDE", "dangerous", "dangerous_operator"]

CODE = "executes code"
SYSTEM = "runs commands, or changes files or the environment"
FILES = "opens, changes or removes files"
NETWORK = "accesses the network"
IMPORTS = "imports modules, or accesses any attribute of them"
PICKLES = "unpickles its argument"

# Whole modules, with everything below them.
_MODULES: dict[str, str] = {
    "os": SYSTEM, "posix": SYSTEM, "nt": SYSTEM, "subprocess": CODE, "_posixsubprocess": CODE, "pty": CODE, "commands": CODE, "popen2": CODE,
    "sys": IMPORTS, "code": CODE, "codeop": CODE, "pdb": CODE, "bdb": CODE, "runpy": CODE, "timeit": CODE, "profile": CODE, "cProfile": CODE,
    "trace": CODE, "ctypes": CODE, "_ctypes": CODE, "cffi": CODE, "multiprocessing": CODE, "signal": CODE, "doctest": CODE,
    "idlelib": CODE, "venv": CODE, "ensurepip": CODE, "pip": CODE, "distutils": CODE, "setuptools": CODE, "asyncio.unix_events": CODE,
    "shutil": FILES, "tempfile": FILES, "fileinput": FILES, "linecache": FILES, "zipfile": FILES, "tarfile": FILES, "mmap": FILES,
    "socket": NETWORK, "_socket": NETWORK, "ssl": NETWORK, "http": NETWORK, "httplib": NETWORK, "urllib": NETWORK, "urllib2": NETWORK,
    "requests": NETWORK, "ftplib": NETWORK, "smtplib": NETWORK, "telnetlib": NETWORK, "poplib": NETWORK, "imaplib": NETWORK,
    "xmlrpc": NETWORK, "socketserver": NETWORK, "webbrowser": NETWORK, "aiohttp": NETWORK,
    "importlib": IMPORTS, "imp": IMPORTS, "pkgutil": IMPORTS, "zipimport": IMPORTS, "pydoc": IMPORTS,
    "pickle": PICKLES, "_pickle": PICKLES, "cPickle": PICKLES, "dill": PICKLES, "cloudpickle": PICKLES, "joblib": PICKLES, "shelve": PICKLES,
}  # fmt: skip

_NAMES: dict[str, str] = {
    "builtins.eval": CODE, "builtins.exec": CODE, "builtins.execfile": CODE, "builtins.compile": CODE, "builtins.apply": CODE,
    "builtins.breakpoint": CODE, "builtins.input": CODE, "builtins.map": CODE, "builtins.filter": CODE,
    "builtins.open": FILES, "builtins.file": FILES, "io.open": FILES, "io.FileIO": FILES, "_io.open": FILES, "_io.FileIO": FILES,
    "io.open_code": FILES, "_io.open_code": FILES, "codecs.open": FILES, "pathlib.Path.unlink": FILES, "pathlib.Path.write_bytes": FILES,
    "pathlib.Path.write_text": FILES, "numpy.fromfile": FILES, "numpy.save": FILES, "torch.save": FILES,
    "builtins.__import__": IMPORTS, "builtins.getattr": IMPORTS, "builtins.setattr": IMPORTS, "builtins.globals": IMPORTS,
    "builtins.locals": IMPORTS, "builtins.vars": IMPORTS, "builtins.delattr": IMPORTS, "operator.attrgetter": IMPORTS,
    "functools.partial": CODE, "functools.reduce": CODE, "itertools.starmap": CODE, "operator.methodcaller": CODE,
    "_operator.attrgetter": IMPORTS, "_operator.methodcaller": CODE, "types.CodeType": CODE, "types.FunctionType": CODE,
    "marshal.loads": CODE, "marshal.load": CODE, "platform.popen": CODE, "threading.Thread": CODE, "_thread.start_new_thread": CODE,
    "torch.load": PICKLES, "torch.serialization.load": PICKLES, "torch.storage._load_from_bytes": PICKLES, "numpy.load": PICKLES,
    "torch.hub.load": NETWORK, "torch.hub.load_state_dict_from_url": NETWORK, "torch.hub.download_url_to_file": NETWORK,
    "torch.jit.unsupported_tensor_ops.execWrapper": CODE, "torch.utils.cpp_extension.load": CODE,
    "torch.utils.cpp_extension.load_inline": CODE, "torch.ops.load_library": CODE, "torch.classes.load_library": CODE,
    "numpy.testing._private.utils.runstring": CODE,
}  # fmt: skip

_OPERATORS: dict[str, str] = {
    "aten::from_file": "opens or creates a file named by the program, and maps it into memory",
    "inductor::_reinterpret_tensor": "creates a view without checking that it stays within the memory of its tensor",
}
"""Operators that programs may call and that access more than their tensor arguments. ``as_strided`` is not
included: every release refuses a view outside its storage."""
OUTSIDE = "is outside its storage; releases do not check this and read unrelated memory"
"""For a tensor of a program whose shape, strides or offset exceed its storage."""
DEEPEST_MODULE = 1 + max(module.count(".") for module in _MODULES)

_REACHED = frozenset({
    "os", "sys", "subprocess", "builtins", "__import__", "__builtins__", "__globals__", "__subclasses__", "__code__",
})  # fmt: skip


def dangerous_operator(name: str) -> str | None:
    """Why an operator without overload, ``aten::from_file``, is known to access more than its tensors; None if it is not known to."""
    return _OPERATORS.get(name)


def dangerous(global_: Global) -> str | None:
    """Why a global is known to do harm when called, in a few words; None if it is not known to.

    None does not mean that it is harmless (see the module).
    """
    path = f"{global_.module}.{global_.name}"
    reason = _NAMES.get(path)
    if reason is not None:
        return reason
    # "os" and "path.join" name what "os.path" and "join" do: any part of the dotted path may be the module
    module = ".".join(path.split(".", DEEPEST_MODULE)[:DEEPEST_MODULE])
    while module:
        reason = _MODULES.get(module)
        if reason is not None:
            return reason
        module = module.rpartition(".")[0]
    # a module reached through another, or from the insides of a function
    return None if _REACHED.isdisjoint(global_.name.split(".")) else IMPORTS
