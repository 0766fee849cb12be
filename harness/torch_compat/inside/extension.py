"""Records how an extension changes the dispatcher of one torch release: operators that it defines and kernels that it registers.

Python 3.6 syntax, standard library and torch only: the worker runs this file under the release's own Python. ``ask(torch, request)``
dumps the dispatcher, loads the extension, and dumps it again. The difference is plain JSON:

    {"torch": version, "defined": [operator...], "registered": [operator...], "dangling": [name...], "fallbacks": [key...],
     "error": {"stage": "load" or "call", "type", "message"} or None}

where an operator is ``{"operator", "schema", "kernels": [{"key", "language", "signature"}...]}``.
"""

import re
import sys

KERNEL = r"^(\w+)(?:\[alias\])?(?: \(inactive\))?: (?:registered at )?(.*?) :: (.*) \[ (?:boxed|unboxed|fallthrough)[\w ]*\]$"
BACKENDS = ("PrivateUse1", "PrivateUse2", "PrivateUse3", "XLA", "HPU", "IPU", "XPU", "MPS", "MTIA", "VE", "Lazy", "ORT", "MAIA")
"""Dispatch keys that an out-of-tree backend can have; those that a release lacks are skipped."""


class Unaskable(Exception):
    """This release does not expose its dispatcher."""


def ask(torch, request):
    """Load an extension and return what it did.

    ``request``: ``paths`` (folders to import from), ``module`` or ``library`` (what to load), ``call`` (a function of the module to call
    afterwards, or None).
    """
    answer = {"torch": str(torch.__version__), "error": None}
    before, fallbacks, dangling = operators(torch), fallback_keys(torch), dangling_impls(torch)
    stage = "load"
    try:
        sys.path[:0] = request["paths"]
        if request.get("library"):
            torch.ops.load_library(request["library"])
        else:
            __import__(request["module"])
        if request.get("call"):
            stage = "call"
            getattr(sys.modules[request["module"]], request["call"])()
    except Exception as error:  # an error in the extension is a valid answer
        answer["error"] = {"stage": stage, "type": type(error).__name__, "message": str(error)}
    after = operators(torch)
    answer["defined"] = [described(name, after[name], {}) for name in sorted(set(after) - set(before))]
    changed = [name for name in sorted(set(after) & set(before)) if after[name] != before[name]]
    answer["registered"] = [described(name, after[name], kernels(before[name])) for name in changed]
    answer["dangling"] = sorted(set(dangling_impls(torch)) - set(dangling))
    answer["fallbacks"] = [key for key in fallback_keys(torch) if key not in fallbacks]
    return answer


def operators(torch):
    """Return ``{operator: what the dispatcher says of it}``."""
    release = [int(part) for part in re.findall(r"\d+", str(torch.__version__))[:2]]
    if not hasattr(torch._C, "_dispatch_dump") or release < [1, 7]:
        raise Unaskable("torch %s does not show its dispatcher (torch._C._dispatch_dump)" % torch.__version__)
    if hasattr(torch._C, "_dispatch_get_all_op_names"):
        names = torch._C._dispatch_get_all_op_names()
    else:
        names = {s.name + ("." + s.overload_name if s.overload_name else "") for s in torch._C._jit_get_all_schemas()}
    dumps = {name: torch._C._dispatch_dump(name) for name in names}
    return {name: text for name, text in dumps.items() if text}


def kernels(text):
    """Parse a dump into ``{key: (place, signature)}``."""
    return {key: (place, signature) for key, place, signature in re.findall(KERNEL, text, re.MULTILINE) if key != "debug"}


def described(name, text, before):
    results = [(key, value) for key, value in sorted(kernels(text).items()) if before.get(key) != value]
    schema = re.search(r"^schema: (.*)$", text, re.MULTILINE).group(1)
    schema = re.sub(r"-> \((?!\.)([^(),\s]+(?:\([^()]*\))?[^(),\s]*)\)$", r"-> \1", schema)
    return {"operator": name, "schema": schema, "kernels": [kernel(key, place, message) for key, (place, message) in results]}


def kernel(key, place, signature):
    if signature != "(none)":
        language = "c++"
    elif re.match(r".*\.py:\d+$|/dev/null:\d+$", place.split(" ")[0]):
        language, signature = "python", None
    else:
        language, signature = None, None
    return {"key": key, "language": language, "signature": signature}


def fallback_keys(torch):
    """Return backends with a fallback kernel; empty for releases that do not expose this."""
    if not hasattr(torch._C, "_dispatch_has_backend_fallback"):
        return []
    known = getattr(torch._C, "DispatchKey", None)
    return [key for key in BACKENDS if known is not None and hasattr(known, key) and has_fallback(torch, getattr(known, key))]


def has_fallback(torch, key):
    return bool(torch._C._dispatch_has_backend_fallback(key))


def dangling_impls(torch):
    """Return operators that have a kernel but no definition."""
    if not hasattr(torch._C, "_dispatch_find_dangling_impls"):
        return []
    return [re.search(r"^name: (.*)$", text, re.MULTILINE).group(1) for text in torch._C._dispatch_find_dangling_impls()]
