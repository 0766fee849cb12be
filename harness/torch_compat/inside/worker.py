"""The worker of one torch release: runs under that release's own Python and imports nothing from the harness.

Python 3.6 syntax, standard library and torch only. Started as ``python worker.py REPLY_FD VERSION`` in an empty directory.

The protocol has one JSON object per line. Requests arrive on standard input; replies are written to the file descriptor REPLY_FD, which
nothing else uses, so output from torch cannot corrupt them. The first reply, unprompted, is the identity; a worker with a torch other than
VERSION then exits. A request is ``{"id": n, "do": name, "timeout_s": seconds, ...}``; its reply repeats the id and contains exactly one of

* ``"result"``    the result (for ``"many"``: the list of replies to its ``"requests"``, in order),
* ``"failed"``    the request itself could not be carried out ``{"type", "message", "trace"}``: a fault of the harness,
* ``"crashed"``   the process died: ``{"signal": "SIGSEGV", "said": last words}`` or ``{"exit": status, ...}``,
* ``"timed-out"`` it exceeded its time limit: ``{"timeout_s": n}``.

torch is imported once; every request is carried out in a fork of that process, so a crash costs milliseconds and exactly one reply. The
requests of a ``"many"`` share a fork as long as they do not change its state (see ``serve_many``). A release's answer about an archive
(including an error) is a *result*: a fact without judgment.

It is one file, and longer than others, because the release starts it by path and cannot import other files.
"""

import base64
import ctypes
import enum
import gc
import importlib.machinery
import json
import os
import select
import signal
import sys
import tempfile
import time
import traceback
import types
import warnings

PROTOCOL = 1
PR_SET_PDEATHSIG = 1  # of Linux's prctl: sets the signal that a process gets when its parent dies

# ---------------------------------------------------------------------------------------------------------------------
# Neutral file names. TorchScript stores the file name of every source line. Code objects of this environment get names relative to its
# site-packages, so that no archive can contain a path of the machine that wrote it.


class _NeutralLoader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname):
        import _imp

        code = super().get_code(fullname)
        for entry in sys.path:
            if entry and self.path.startswith(entry + os.sep):
                _imp._fix_co_filename(code, self.path[len(entry) + 1 :])
                break
        return code


def _install_neutral_file_names():
    details = (
        (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES),
        (_NeutralLoader, importlib.machinery.SOURCE_SUFFIXES),
    )
    sys.path_hooks.insert(0, importlib.machinery.FileFinder.path_hook(*details))
    sys.path_importer_cache.clear()


# ---------------------------------------------------------------------------------------------------------------------
# Values: torch -> JSON and back, in the neutral form that every part of the project shares.


def _float(x):
    if x != x:
        return "nan"
    if x in (float("inf"), float("-inf")):
        return "inf" if x > 0 else "-inf"
    return x


def _type_name(value):
    cls = type(value)
    if hasattr(value, "original_name") and hasattr(value, "_c"):  # a ScriptModule: its Python class is not informative
        return str(value.original_name)
    module = cls.__module__
    if module.startswith("<torch_package_"):  # a class from a torch.package has a module name with a package counter
        module = module.partition(">.")[2]
    return module + "." + getattr(cls, "__qualname__", cls.__name__)


class Encoder:
    """Encodes values that belong together, so that storages shared between any of them are detected.

    ``storages`` numbers the storages in the order in which they are encountered; empty ones have no number.
    """

    def __init__(self, torch):
        self.torch = torch
        self.storages = {}
        self.open = []
        self.parts = []  # kept alive: otherwise a freed address could be reused and look shared

    def encode(self, value):
        torch = self.torch
        if value is None or isinstance(value, (bool, str)) or type(value) is int:
            return value
        if type(value) is float:
            return {"float": _float(value)}
        if type(value) is complex:
            return {"complex": [_float(value.real), _float(value.imag)]}
        if isinstance(value, torch.Tensor):
            try:
                return self.tensor(value)
            except Exception as error:  # torch created a tensor that it cannot inspect: record the error
                return {"object": {"type": _type_name(value), "state": "<raises %s when looked at>" % _type_name(error)}}
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).replace("torch.", "")}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        if isinstance(value, bytes):
            return {"object": {"type": "bytes", "state": base64.b64encode(value).decode("ascii")}}
        if any(value is other for other in self.open):
            return {"object": {"type": _type_name(value), "state": "<cycle>"}}
        self.open.append(value)
        try:
            return self._container(value)
        finally:
            self.open.pop()

    def _container(self, value):
        if type(value) is list:
            return [self.encode(item) for item in value]
        if type(value) is tuple:
            return {"tuple": [self.encode(item) for item in value]}
        if type(value) is dict:
            return {"dict": [[self.encode(k), self.encode(v)] for k, v in value.items()]}
        if isinstance(value, self.torch.nn.Module):
            state = module_state(self, value)
        elif isinstance(value, dict):
            state = {"dict": [[self.encode(k), self.encode(v)] for k, v in value.items()]}
        elif isinstance(value, (set, frozenset)):
            state = sorted((self.encode(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
        elif isinstance(value, (list, tuple)):
            state = [self.encode(item) for item in value]
        elif isinstance(value, enum.Enum):
            state = value.name
        elif isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
            state = "%s.%s" % (value.__module__, value.__qualname__)
        elif type(value).__module__ == "numpy" and hasattr(value, "__array_interface__"):
            return {"object": {"type": "numpy." + type(value).__name__, "state": self._numpy(value)}}
        elif type(value).__name__ == "ScriptObject":  # its class may raise on any attribute access
            state, name = value.__getstate__()
            return {"object": {"type": name, "state": self._part(state)}}
        elif self.torch.is_storage(value):
            return {"object": {"type": "torch.Storage", "state": self._storage(value)}}
        elif getattr(value, "__dict__", None) and not isinstance(value, (int, float, complex)):
            state = {"dict": [[k, self.encode(v)] for k, v in sorted(value.__dict__.items())]}
        else:
            state = self._reduced(value)
        return {"object": {"type": _type_name(value), "state": state}}

    def _storage(self, value):
        """Encode a storage as a tensor of all its elements; its class name varies between releases."""
        name = type(value).__name__.replace("Storage", "Tensor")
        if hasattr(value, "dtype"):
            empty = self.torch.zeros(0, dtype=value.dtype)
        else:  # of 1.0, where each dtype has its own classes; else untyped
            empty = getattr(self.torch, name)() if hasattr(self.torch, name) else self.torch.zeros(0, dtype=self.torch.uint8)
        return self._part(empty.set_(value))

    def _numpy(self, value):
        """Encode a numpy array or scalar: the pickled form of its dtype depends on numpy, not on torch."""
        if value.dtype.hasobject:
            parts = [["items", self._part(value.tolist())]]
        else:
            parts = [["bytes", base64.b64encode(value.tobytes()).decode("ascii")]]
        return {"dict": [["dtype", value.dtype.str], ["shape", list(value.shape)]] + parts}

    def _reduced(self, value):
        """Encode the pickled form of an object whose state is not in its ``__dict__``, such as a numpy scalar."""
        try:
            parts = value.__reduce_ex__(2)
            if isinstance(parts, str):
                return parts
            arguments, state, items, pairs = (tuple(parts[1:]) + (None, None, None))[:4]
            stored = [arguments, state, None if items is None else list(items), None if pairs is None else list(pairs)]
        except Exception:  # it cannot be pickled: the repr of a layout identifies it, that of a lock is an address
            message = _text(repr(value))
            return "<opaque>" if " at 0x" in message else message
        return self._part(stored)

    def tensor(self, value):
        torch = self.torch
        unusual = getattr(value, "is_quantized", False) or getattr(value, "is_nested", False)
        if str(value.layout) != "torch.strided" or unusual:
            return self._unusual_tensor(value)
        plain = value.detach()
        if hasattr(plain, "resolve_conj"):
            plain = plain.resolve_conj()
        if hasattr(plain, "resolve_neg"):
            plain = plain.resolve_neg()
        plain = plain.contiguous()
        size = plain.numel() * plain.element_size()
        body = {
            "dtype": str(value.dtype).replace("torch.", ""),
            "shape": list(value.shape),
            "strides": list(value.stride()),
            "bytes": base64.b64encode(ctypes.string_at(plain.data_ptr(), size) if size else b"").decode("ascii"),
        }
        key = self._storage_key(value)
        if key:
            body["storage"] = self.storages.setdefault(key, len(self.storages))
            body["offset"] = value.storage_offset()
        if type(value) is not torch.Tensor:
            body["class"] = _type_name(value)
        if value.requires_grad:
            body["requires_grad"] = True
        return {"tensor": body}

    def _storage_key(self, value):
        storage = value.untyped_storage() if hasattr(value, "untyped_storage") else value.storage()
        return storage.data_ptr()

    def _part(self, value):
        self.parts.append(value)
        return self.encode(value)

    def _unusual_tensor(self, value):
        """A sparse, nested or quantized tensor: described by its parts."""
        shape = None if getattr(value, "is_nested", False) else list(value.shape)
        if getattr(value, "is_quantized", False):
            parts = [["int_repr", self._part(value.int_repr())], ["qscheme", str(value.qscheme())]]
            if "per_tensor" in str(value.qscheme()):
                parts += [["scale", self.encode(value.q_scale())], ["zero_point", value.q_zero_point()]]
            elif "per_channel" in str(value.qscheme()):
                for name in ("scales", "zero_points"):
                    parts.append([name, self._part(getattr(value, "q_per_channel_" + name)())])
                parts.append(["axis", value.q_per_channel_axis()])
        elif shape is None:
            parts = [["tensors", [self._part(part) for part in value.detach().unbind()]]]
        elif str(value.layout) == "torch.sparse_coo":  # its contents only: releases do not preserve whether it is coalesced
            whole = value.detach()
            parts = [["indices", self._part(whole._indices())], ["values", self._part(whole._values())]]
        elif str(value.layout) in ("torch.sparse_csr", "torch.sparse_bsr"):
            parts = [[name, self._part(getattr(value.detach(), name)())] for name in ("crow_indices", "col_indices", "values")]
        elif str(value.layout) in ("torch.sparse_csc", "torch.sparse_bsc"):
            parts = [[name, self._part(getattr(value.detach(), name)())] for name in ("ccol_indices", "row_indices", "values")]
        else:
            parts = [["dense", self._part(value.detach().to_dense())]]
        parts += [["dtype", str(value.dtype)], ["shape", shape]]
        return {"object": {"type": str(value.layout), "state": {"dict": parts}}}


def module_state(encoder, module):
    """``{"dict": [[key, {"tuple": [kind, tensor]}], ...]}`` of a module's parameters and buffers; None if they cannot be listed."""
    if not hasattr(module, "named_parameters"):
        return None
    entries = []
    for kind, items in (("parameter", module.named_parameters()), ("buffer", module.named_buffers())):
        for name, value in items:
            encoded = encoder.encode(value)
            encoded.get("tensor", {}).pop("class", None)  # a scripted module returns plain tensors; the kind is more informative
            entries.append([name, {"tuple": [kind, encoded]}])
    return {"dict": sorted(entries, key=lambda entry: entry[0])}


class NoSuchDtype(Exception):
    """This release does not have the dtype of an input value."""


class Decoder:
    """Decodes values: those that were encoded together share the same storages again."""

    def __init__(self, torch):
        self.torch = torch
        self.storages = {}

    def decode(self, value):
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        ((kind, body),) = value.items()
        if kind == "float":
            return float(body)
        if kind == "complex":
            return complex(float(body[0]), float(body[1]))
        if kind == "tuple":
            return tuple(self.decode(item) for item in body)
        if kind == "dict":
            return {self.decode(k): self.decode(v) for k, v in body}
        if kind == "tensor":
            return self.tensor(body)
        if kind == "dtype":
            return self._dtype(body)
        if kind == "device":
            return self.torch.device(body)
        raise ValueError("cannot give a value of kind %r to a program" % kind)

    def _dtype(self, name):
        if not hasattr(self.torch, name):
            raise NoSuchDtype("this release has no dtype torch.%s" % name)
        return getattr(self.torch, name)

    def tensor(self, body):
        """Decode a tensor element by element: a view may overlap itself, and torch refuses to copy into it."""
        torch = self.torch
        dtype, shape, strides = self._dtype(body["dtype"]), body["shape"], body["strides"]
        offset = body.get("offset", 0)
        raw = base64.b64decode(body["bytes"])
        places = [offset]
        for n, step in zip(shape, strides):
            places = [place + i * step for place in places for i in range(n)]
        base = self.storages.get(body.get("storage"))
        if base is None or base.dtype != dtype:
            base = torch.empty(0, dtype=dtype)
        size = base.element_size()
        if len(raw) != len(places) * size:
            raise ValueError("a tensor of %s %s does not have %d bytes" % (body["dtype"], shape, len(raw)))
        known, extent = base.numel(), max(places) + 1 if places else 0
        if known < extent:
            base.resize_(extent)  # also grows the storage of earlier views of it
            # neither zeros() nor zero_(): 1.0 has no such operator for float16
            ctypes.memset(base.data_ptr() + known * size, 0, (extent - known) * size)
        for i, place in enumerate(places):
            ctypes.memmove(base.data_ptr() + place * size, raw[i * size : (i + 1) * size], size)
        if "storage" in body:
            self.storages[body["storage"]] = base
        view = base.as_strided(shape, strides, offset)
        return view.requires_grad_() if body.get("requires_grad") else view


# ---------------------------------------------------------------------------------------------------------------------
# Load options, as one object; an error is raised for options that a release lacks.


class NoSuchOption(Exception):
    """This release does not have a requested load option."""


class NotUnderstood(Exception):
    """The harness requests something that this worker does not support; must not be taken for an answer of the release."""


def _apply_options(torch, options):
    """Apply the global options; return the keyword arguments of ``torch.load``."""
    import torch.serialization as serialization

    keywords = {}
    for name, value in sorted(options.items()):
        if name in ("weights_only", "mmap"):
            import inspect

            if name not in inspect.signature(torch.load).parameters:
                raise NoSuchOption(name)
            keywords[name] = value
        elif name == "endianness":
            _need(serialization, "set_default_load_endianness", name)
            serialization.set_default_load_endianness(getattr(serialization.LoadEndianness, value.upper()))
        elif name == "mmap_flags":
            import mmap

            _need(serialization, "set_default_mmap_options", name)
            serialization.set_default_mmap_options({"private": mmap.MAP_PRIVATE, "shared": mmap.MAP_SHARED}[value])
        elif name == "crc32":
            _need(serialization, "set_crc32_options", name)
            serialization.set_crc32_options(value)
        elif name == "calculate_storage_offsets":
            config = _serialization_config()
            if config is None or not hasattr(config.load, name):
                raise NoSuchOption(name)
            config.load.calculate_storage_offsets = value
        elif name == "debug":
            with open(serialization.__file__) as source:
                if "TORCH_SERIALIZATION_DEBUG" not in source.read():
                    raise NoSuchOption(name)
            os.environ["TORCH_SERIALIZATION_DEBUG"] = "1" if value else "0"
        else:
            raise NotUnderstood("unknown load option %r" % name)
    return keywords


def _need(module, attribute, option):
    if not hasattr(module, attribute):
        raise NoSuchOption(option)


def _serialization_config():
    try:
        import torch.utils.serialization as serialization
    except ImportError:
        return None
    return serialization.config


# ---------------------------------------------------------------------------------------------------------------------
# Loading and running


class NoLoader(Exception):
    """This release cannot load archives of this family."""


def load(torch, family, path, options):
    if family == "torch-save":
        return torch.load(path, **_apply_options(torch, options))
    if options:
        raise NoSuchOption("%s (family %s)" % (", ".join(sorted(options)), family))
    if family == "torchscript":
        return torch.jit.load(path)
    if family == "mobile":
        try:
            from torch.jit.mobile import _load_for_lite_interpreter
        except ImportError:
            raise NoLoader("this release has no lite interpreter that Python can reach (torch.jit.mobile)")
        return _load_for_lite_interpreter(path)
    if family == "package":
        try:
            from torch.package import PackageImporter
        except ImportError:
            raise NoLoader("this release has no torch.package")
        return PackageImporter(path).load_pickle("model", "object.pkl")
    if family == "export":
        try:
            import torch.export

            read = torch.export.load
        except (ImportError, AttributeError):
            raise NoLoader("this release has no torch.export that loads")
        return read(path)
    if family == "distributed":
        return load_checkpoint(torch, path)
    raise NotUnderstood("unknown family %r" % family)


def load_checkpoint(torch, path):
    """Load the nested state dict of a distributed checkpoint, with the calls that `inspect` shows, which need no process group.

    From 2.3 on, a release can convert it to a single file. Before, it is loaded into tensors with the shapes and dtypes from the metadata,
    which also contains the keys that lead to each value.
    """
    try:
        import torch.distributed.checkpoint as checkpoint
    except ImportError:
        raise NoLoader("this release has no torch.distributed.checkpoint")
    try:
        from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
    except ImportError:
        from torch.distributed.checkpoint._nested_dict import unflatten_state_dict

        reader = checkpoint.FileSystemReader(path)
        metadata = reader.read_metadata()
        state = {
            name: torch.empty(item.size, dtype=item.properties.dtype) if hasattr(item, "size") else None
            for name, item in metadata.state_dict_metadata.items()
        }
        checkpoint.load_state_dict(state, reader, no_dist=True)
        return unflatten_state_dict(state, metadata.planner_data)
    with tempfile.TemporaryDirectory() as folder:
        whole = os.path.join(folder, "whole.pt")
        dcp_to_torch_save(path, whole)
        return torch.load(whole, weights_only=False)


def _text(message):
    """Return the text of an error or a warning in a form that can be encoded in UTF-8."""
    return str(message).encode("utf-8", "replace").decode("utf-8")


def _error(stage, error):
    return {"stage": stage, "type": _type_name(error), "message": _text(error)}


def _warnings(caught):
    return sorted({(w.category.__name__, _text(w.message)) for w in caught})


def run_calls(torch, program, calls):
    """Call methods of a loaded program, each twice with fresh inputs, because a program may keep state."""
    results = []
    for call in calls:
        result = {"method": call["method"]}
        for name in ("first", "second"):
            try:
                args = Decoder(torch).decode({"tuple": call["args"]})
            except NoSuchDtype as error:  # a fact about the release: this program cannot be called there with these inputs
                result[name] = {"error": _error("call", error)}
                continue
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    value = getattr(program, call["method"])(*args)
                except BaseException as error:  # exiting is also an answer
                    result[name] = {"error": _error("call", error)}
                else:
                    together = Encoder(torch)
                    result[name] = {"value": together.encode(value), "inputs": [together.encode(a) for a in args]}
            if caught:
                result[name]["warnings"] = _warnings(caught)
        results.append(result)
    return results


def perform(torch, family, obtain, calls, progress=lambda stage: None):
    """Record what a program or value from ``obtain`` does, in the common form of goldens and observations.

    ``progress`` is called with "call" once the program is loaded: a later crash is not one of loading.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            loaded = obtain()
            if family == "export":  # an exported program is not callable: it is converted to a module
                loaded = loaded.module()
        except (NoSuchOption, NotUnderstood):
            raise
        except BaseException as error:  # an archive that makes the loader exit also counts as refused
            result = {"error": _error("load", error)}
            if caught:
                result["warnings"] = _warnings(caught)
            return result
    progress("call")
    result = {"warnings": _warnings(caught)} if caught else {}
    if family in ("torch-save", "package", "distributed"):
        result["value"] = Encoder(torch).encode(loaded)
        return result
    result["state"] = module_state(Encoder(torch), loaded)
    result["calls"] = run_calls(torch, loaded, calls)
    result["state_after"] = module_state(Encoder(torch), loaded)
    return result


def do_observe(torch, request, progress):
    """Read an archive and run its calls. Needs ``path, family, calls, options``."""
    if not os.path.exists(request["path"]):
        raise ValueError("there is no file or directory %r" % request["path"])  # otherwise its absence would count as a refusal
    # torch gets only the file's own name, so that neither its messages nor its memory depend on the corpus's location.
    folder, name = os.path.split(request["path"])
    os.chdir(folder)
    try:
        return perform(
            torch,
            request["family"],
            lambda: load(torch, request["family"], name, request["options"]),
            request["calls"],
            progress,
        )
    except NoSuchOption as error:
        return {"no_such_option": str(error)}


# ---------------------------------------------------------------------------------------------------------------------
# Producing


def run_file(path, name):
    """Run a recipe or probe as module ``name`` under the neutral file name ``name.py``; return its namespace."""
    import linecache

    with open(path, encoding="utf-8") as stream:
        source = stream.read()
    file_name = name + ".py"
    module = types.ModuleType(name)
    module.__file__ = file_name
    sys.modules[name] = module
    linecache.cache[file_name] = (len(source), None, source.splitlines(True), file_name)  # for inspect.getsource
    exec(compile(source, file_name, "exec"), module.__dict__)
    return module


def write(torch, recipe, value, path):
    if hasattr(recipe, "write"):
        recipe.write(value, path)
    elif recipe.FAMILY == "torch-save":
        torch.save(value, path)
    elif recipe.FAMILY == "torchscript":
        torch.jit.save(value, path)
    elif recipe.FAMILY == "mobile":
        value._save_for_lite_interpreter(path)
    elif recipe.FAMILY == "export":
        import torch.export

        torch.export.save(value, path)
    elif recipe.FAMILY == "distributed":
        save_checkpoint(value, path)
    else:
        raise ValueError("a recipe of family %r must have a function write(made, path)" % recipe.FAMILY)


def save_checkpoint(value, path):
    """Save a one-process distributed checkpoint, for 2.0 and newer. Newer metadata contains the path, here only the name."""
    import torch.distributed.checkpoint as checkpoint

    here = os.getcwd()
    folder, name = os.path.split(path)
    os.chdir(folder)
    try:
        if hasattr(checkpoint, "async_save"):  # since 2.3, when `save` needs no process group
            checkpoint.save(value, storage_writer=checkpoint.FileSystemWriter(name))
        else:
            checkpoint.save_state_dict(value, checkpoint.FileSystemWriter(name), no_dist=True)
    finally:
        os.chdir(here)


def do_produce(torch, request, progress):
    """Run a recipe. Needs ``recipe`` (path), ``name``, ``path`` (of the archive to write).

    Returns ``{"calls", "golden"}``, ``{"not_writable": error}`` if this release cannot write it, or ``{"not_recordable": text}`` if the values
    of the recipe cannot be encoded, or its arguments not be decoded. The golden is computed in a separate fork: if a release crashes on its
    own program, the archive is kept and the golden records the crash.
    """
    _neutral_module_files(torch)
    try:
        torch.manual_seed(0)  # 1.0 initializes the weights of a BatchNorm randomly, whatever a recipe sets afterwards
        recipe = run_file(request["recipe"], request["name"])
        result = recipe.build()
        write(torch, recipe, result, request["path"])
    except Exception as error:
        return {"not_writable": _error("write", error)}
    # Each call's inputs are encoded together, so that shared storages are shared again in every reader.
    calls = []
    for method, args in recipe.calls() if hasattr(recipe, "calls") else ():
        try:
            calls.append({"method": method, "args": Encoder(torch).encode(tuple(args))["tuple"]})
            Decoder(torch).decode({"tuple": calls[-1]["args"]})
        except RecursionError:
            return {"not_recordable": "an argument of %s is nested too deeply" % method}
        except ValueError as error:
            return {"not_recordable": "an argument of %s: %s" % (method, error)}

    def golden(torch, request, progress):
        return perform(torch, recipe.FAMILY, lambda: result, calls, progress)

    answer = serve_one(torch, golden, {"timeout_s": float(request.get("timeout_s", 60)) / 2})
    failed = answer.get("failed")
    if failed is not None and failed["type"] == "builtins.RecursionError":
        return {"not_recordable": "a value is nested too deeply"}
    if failed is not None:
        return {"not_recordable": "encoding its values failed with %s: %s" % (failed["type"], failed["message"])}
    return {"calls": calls, "golden": answer["result"] if "result" in answer else answer}


def _neutral_module_files(torch):
    """Make module file names, which pickled classes and scripted functions contain, relative to where they are found."""
    site_packages = os.path.dirname(os.path.abspath(torch.__path__[0]))
    os.chdir(site_packages)
    for module in list(sys.modules.values()):
        if type(module) is type(sys) and (vars(module).get("__file__") or "").startswith(site_packages + os.sep):
            module.__file__ = module.__file__[len(site_packages) + 1 :]


# ---------------------------------------------------------------------------------------------------------------------
# Probes


def do_probe(torch, request, progress):
    """Run a probe. Needs ``probe`` (path) and ``name``. Returns ``{"value" | "error", "warnings"}``.

    A probe's ``probe()`` returns ``[[check, holds, note], ...]``; ``holds`` is None if the release lacks the feature.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = {"value": Encoder(torch).encode(run_file(request["probe"], request["name"]).probe())}
        except Exception as error:
            result = {"error": _error("probe", error)}
    if caught:
        result["warnings"] = _warnings(caught)
    return result


def do_survey(torch, request, progress):
    """Run the script of a survey, whose ``survey(torch)`` returns plain JSON. Needs ``script`` (path)."""
    return run_file(request["script"], "survey").survey(torch)


# ---------------------------------------------------------------------------------------------------------------------
# Deprecations


def do_deprecation(torch, request, progress):
    """Use a deprecated feature and its replacement. Needs ``probe`` (path) and ``name``.

    Returns ``{"deprecated", "alternative", "docs"}``. Each is used in a separate fork: some warnings appear only once per process, and a
    crash must not affect the other. ``docs`` is the docstring of the probe's SUBJECT.
    """
    _neutral_module_files(torch)  # otherwise releases that find source code by file name would look in their own sources
    probe = run_file(request["probe"], request["name"])
    seconds = float(request.get("timeout_s", 60)) * 0.4
    result = {
        "deprecated": _used(torch, probe, "deprecated", getattr(probe, "NEEDS", [probe.SUBJECT]), seconds),
        "alternative": _used(torch, probe, "alternative", [probe.ALTERNATIVE] if hasattr(probe, "ALTERNATIVE") else [], seconds),
    }
    try:
        subject = _named(probe.SUBJECT)
        docs = getattr(subject, "__doc__", None)
        if docs == type(subject).__doc__ and not isinstance(subject, type):
            docs = None  # a plain value has only the docstring of its class
    except LookupError:
        docs = None
    result["docs"] = _text(docs) if isinstance(docs, str) else None
    return result


def _used(torch, probe, way, needs, seconds):
    """Return what happens when a probe's function ``way`` is called in a fork."""
    answer = serve_one(torch, lambda torch, request, progress: _use(probe, way, needs), {"timeout_s": seconds})
    if "failed" in answer:
        raise RuntimeError("%s() of %s: %s" % (way, probe.__name__, answer["failed"]["trace"]))
    if "result" in answer:
        return answer["result"]
    if "timed-out" in answer:
        return {"outcome": "timed-out"}
    death = answer["crashed"]
    return {"outcome": "crashed", "error": [death.get("signal") or "exit %d" % death["exit"], death["said"]]}


def _use(probe, way, needs):
    """``outcome``, ``warnings``, ``said`` (on standard error, where some releases warn), ``behaves`` and ``error``."""
    result = {"outcome": "worked"}
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that the server keeps only this fork's standard error
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = getattr(probe, way)()
        except Exception as error:
            lacking = _lacking(needs) or (str(error) if isinstance(error, getattr(probe, "Lacks", ())) else None)
            if lacking is None:
                result.update(outcome="raised", error=[_type_name(error), _text(error)])
            else:
                result.update(outcome="lacks", error=["lacks", _text(lacking)])
    result["warnings"] = _warnings(caught)
    sys.stdout.flush()
    sys.stderr.flush()
    result["said"] = os.pread(2, 1 << 16, 0).decode("utf-8", "replace")
    if result["outcome"] == "worked" and hasattr(probe, "behaves"):
        result["behaves"] = probe.behaves(value)
    return result


def _lacking(names):
    """Return the first of these dotted names that this release does not have; None if it has them all."""
    for name in names:
        try:
            _named(name)
        except LookupError:
            return name
    return None


def _named(name):
    """Return the object of a dotted name; raises LookupError if there is none."""
    parts = name.split(".")
    module = None
    for count, part in enumerate(parts, 1):
        try:
            module = getattr(module, part)
        except Exception:  # not every class with dynamic attributes raises AttributeError for missing ones
            if module is not None and not isinstance(module, types.ModuleType):
                raise LookupError(name)
            try:
                __import__(".".join(parts[:count]))
                module = sys.modules[".".join(parts[:count])]
            except ImportError:
                raise LookupError(name)
    return module


# ---------------------------------------------------------------------------------------------------------------------
# The server


def identity(torch):
    import numpy

    capability = None
    if hasattr(torch.backends, "cpu") and hasattr(torch.backends.cpu, "get_cpu_capability"):
        capability = torch.backends.cpu.get_cpu_capability()
    return {
        "protocol": PROTOCOL,
        "torch": str(torch.__version__),
        "git": str(getattr(torch.version, "git_version", "")),
        "python": "%d.%d.%d" % sys.version_info[:3],
        "numpy": str(numpy.__version__),
        "threads": torch.get_num_threads(),
        "byteorder": sys.byteorder,
        "machine": os.uname().machine,
        "cpu_capability": capability or os.environ.get("ATEN_CPU_CAPABILITY", "unknown"),
    }


def _child(torch, handler, requests, out, message):
    """Carry out requests in the forked process, write their replies and exit. Never returns to the server's loop.

    Stops after the first reply that may have changed the process's state (see ``_leaves_no_trace``).
    """
    status = 1
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # an endless loop must not outlive the harness
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # an archive that reads standard input must not get any requests
        os.dup2(message, 1)
        os.dup2(message, 2)

        def progress(stage):
            os.write(out, json.dumps({"stage": stage}).encode("ascii") + b"\n")

        with os.fdopen(out, "wb") as stream:
            for request in requests:
                try:
                    answer = {"result": handler(torch, request, progress)}
                    reply = json.dumps(answer, allow_nan=False, sort_keys=True)
                except BaseException as error:  # any error becomes this one reply: a fault of the harness
                    failed = {"type": _type_name(error), "message": _text(error), "trace": _text(traceback.format_exc())}
                    answer = {"failed": failed}
                    reply = json.dumps(answer)
                stream.write(reply.encode("ascii") + b"\n")
                stream.flush()
                if not _leaves_no_trace(answer):
                    break
        status = 0
    finally:
        os._exit(status)


def _leaves_no_trace(reply):
    """Whether a process may continue after this reply: a value was read, without a warning.

    A refusal leaves a trace: torch keeps the sparse tensors of an interrupted load and validates them in the next load.
    """
    return _needs_no_fork(reply) and "value" in reply["result"]


def _needs_no_fork(reply):
    """Whether the reply is the same in a fork that has read other values: a value was read or refused, without a warning."""
    result = reply.get("result")
    return isinstance(result, dict) and ("value" in result or "error" in result) and "warnings" not in result


def serve_one(torch, handler, request):
    """Carry out one request in a fork; return its reply without the id."""
    return _serve(torch, handler, [request])[0]


def serve_many(torch, handler, requests):
    """Carry out requests with the same replies as :func:`serve_one`, but with less than one fork each.

    A fork continues with the next request as long as its replies are values without a warning, because some warnings appear only once. A
    refusal is the last reply of its fork. Any other reply is used only if its request was the first in its fork; otherwise that request is
    repeated as the first of another fork.
    """
    replies = []
    while len(replies) < len(requests):
        given = _serve(torch, handler, requests[len(replies) :])
        replies.extend(given if len(given) == 1 or _needs_no_fork(given[-1]) else given[:-1])
    return replies


def _serve(torch, handler, requests):
    """Carry out requests in one fork; return the replies to the first of them, at least one. A crash is a reply."""
    limit = float(requests[0].get("timeout_s", 60))
    out_read, out_write = os.pipe()
    with tempfile.TemporaryFile() as text:
        pid = os.fork()
        if pid == 0:
            os.close(out_read)
            _child(torch, handler, requests, out_write, text.fileno())
        os.close(out_write)
        chunks, late = _drain(out_read, time.monotonic() + limit)
        if late:
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        text.seek(0, os.SEEK_END)
        text.seek(max(0, text.tell() - 2000))
        last_words = text.read().decode("utf-8", "replace")
    replies, stage = [], "load"
    for line in b"".join(chunks).decode("ascii").split("\n")[:-1]:  # text without a newline was incomplete when it died
        message = json.loads(line)
        if "stage" in message:
            stage = message["stage"]
        else:
            replies.append(message)
            stage = "load"
    if late:
        replies[len(requests) - 1 :] = [{"timed-out": {"timeout_s": limit, "stage": stage}}]
    elif os.WIFSIGNALED(status):
        replies[len(requests) - 1 :] = [{"crashed": {"signal": _signal_name(os.WTERMSIG(status)), "stage": stage, "said": last_words}}]
    elif not replies or (len(replies) < len(requests) and _leaves_no_trace(replies[-1])):  # it exited before its reply
        replies.append({"crashed": {"exit": os.WEXITSTATUS(status), "stage": stage, "said": last_words}})
    return replies


def _signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:  # most real-time signals have no name
        return "signal %d" % number


def _drain(fd, deadline):
    """Read a pipe until its writers are gone; return its chunks and whether the deadline came first."""
    chunks = []
    try:
        while True:
            ready, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return chunks, True
            chunk = os.read(fd, 1 << 16)
            if not chunk:
                return chunks, False
            chunks.append(chunk)
    finally:
        os.close(fd)


EXPORTED_NEEDS = ("torch.export", "torch.export._unlift", "torch._dynamo", "torch._export.serde.serialize", "torch._export.verifier")


class Prepared:
    """A fork of the server that has imported the modules for exported programs, and serves their requests in its own forks.

    These imports take more than a second, a hundred times as long as loading a small program. They register operators and emit warnings, so
    they must not affect the processes that read other archives.
    """

    def __init__(self, torch, handlers):
        request_read, request_write = os.pipe()
        reply_read, reply_write = os.pipe()
        if os.fork() == 0:
            try:
                ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                os.close(request_write)
                os.close(reply_read)
                self.serve(torch, handlers, os.fdopen(request_read), os.fdopen(reply_write, "w"))
            finally:
                os._exit(1)
        os.close(request_read)
        os.close(reply_write)
        self.requests, self.replies = os.fdopen(request_write, "w"), os.fdopen(reply_read)

    @staticmethod
    def serve(torch, handlers, requests, replies):
        for name in EXPORTED_NEEDS:
            try:
                __import__(name)
            except ImportError:  # this release does not have it and does not need it
                pass
        gc.collect()
        if hasattr(gc, "freeze"):
            gc.freeze()
        for line in requests:
            request = json.loads(line)
            replies.write(json.dumps(serve_one(torch, handlers[request["do"]], request), allow_nan=False) + "\n")
            replies.flush()

    def ask(self, request):
        """Return its reply; None if the process has ended, for example because an import killed it."""
        try:
            self.requests.write(json.dumps(request) + "\n")
            self.requests.flush()
        except BrokenPipeError:
            return None
        line = self.replies.readline()
        return json.loads(line) if line.endswith("\n") else None


WARM_UP = """
def once(x):
    y = torch.add(x, x)
    if bool(y.sum() > 0):
        y = torch.mul(y, 2)
    return torch.relu(y)
"""


def _warm_up(torch):
    """Run a program a few times and load one, so that forks need not repeat one-time initialization.

    The programs are compiled into separate compilation units, so that names in later ones do not change.
    """
    unit = torch.jit.CompilationUnit(WARM_UP)
    for _ in range(3):
        unit.once(torch.ones(2))

    class Warmed(torch.nn.Module):  # a traced function cannot be saved in 1.1
        def forward(self, x):
            return x + 1

    program = torch.jit.trace(Warmed(), (torch.ones(2),))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "warm.pt")
        program.save(path)
        loaded = torch.jit.load(path)
    for _ in range(3):
        loaded(torch.ones(2))


def main():
    reply_fd, version = int(sys.argv[1]), sys.argv[2]
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # hundreds of crashes are expected; core dumps are useless
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) not in (here, os.getcwd())]
    _install_neutral_file_names()
    import torch

    torch.set_num_threads(1)
    if hasattr(torch, "set_num_interop_threads"):  # since 1.2: several that start at once in a fork occasionally fail an assertion
        torch.set_num_interop_threads(1)
    _warm_up(torch)
    gc.collect()
    if hasattr(gc, "freeze"):  # since 3.7: a collection in a fork would otherwise write to, and so copy, every page
        gc.freeze()
    handlers = {"observe": do_observe, "produce": do_produce, "probe": do_probe, "survey": do_survey, "deprecation": do_deprecation}
    prepared = None
    with os.fdopen(reply_fd, "w") as replies:

        def reply(message):
            replies.write(json.dumps(message, allow_nan=False, sort_keys=True) + "\n")
            replies.flush()

        reply({"identity": identity(torch)})
        if str(torch.__version__).partition("+")[0] != version:
            return  # wrong torch: the identity was sent, nothing else is answered
        for line in sys.stdin:
            request = json.loads(line)
            if request["do"] in handlers:
                answer = None
                if request.get("family") == "export":
                    prepared = prepared or Prepared(torch, handlers)
                    answer = prepared.ask(request)
                answer = answer or serve_one(torch, handlers[request["do"]], request)
            elif request["do"] == "many":
                answer = {"result": serve_many(torch, do_observe, request["requests"])}
            else:
                answer = {"failed": {"type": "ValueError", "message": "unknown request %r" % request["do"], "trace": ""}}
            answer["id"] = request["id"]
            reply(answer)


if __name__ == "__main__":
    main()
