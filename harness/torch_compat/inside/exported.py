"""Records one torch release's schema of exported programs, and its loader's behavior on altered archives.

Python 3.6 syntax, standard library and torch only: the worker runs this file under the release's own Python and calls ``ask(torch,
witnesses)``, which returns two sections in the form of ``survey.py``. Every release has both; a release without ``torch.export.load``
reports this in them.

``export_schema``: the dataclasses, unions and enums of torch/_export/serde/schema.py, as the release imports them::

    {"version": [8, 20], "treespec_version": 1, "records": {name: {field: type}}, "unions": {name: {member: type}},
     "enums": {name: {member: number}}}

A type is ``int``, ``list[Argument]``, ``dict[str, SymInt]``; a ``?`` suffix means that it can be None, `` = default`` that an archive may
omit it. How a release spells a type (``Optional[int]``, ``int | None``) makes no difference.

``export_witnesses``: for each archive that the harness altered, by name::

    {"archive": SHA-256, "loads": "loads" or "refused: ...", "says": [warnings and messages], "computes": ..., "keeps": bool or None}

``computes`` contains a text for each call. For an archive whose base the release loads, it is ``"as its base"`` if all texts equal those of
the base. ``keeps`` tells whether the release writes the alteration again when it saves the program, None if unknown.
"""

import hashlib
import json
import logging
import os
import re
import sys
import tempfile
import warnings
import zipfile

LONGEST_TEXT = 240
AS_BASE = "as its base"


def section(obtained, entries, why_incomplete=None):
    return {"obtained": obtained, "complete": why_incomplete is None, "why_incomplete": why_incomplete, "entries": entries}


def ask(torch, witnesses):
    """Return both sections. ``witnesses`` lists the altered archives, each base before its derived archives.

    ``{"name", "path", "base": name of the base or None, "marker": text that the altered program has and its base has not, "shapes": of each call}``
    """
    schema = schema_of(torch)
    if schema is None:
        lacks = "this release has no torch.export that loads."
        return {"export_schema": section(SCHEMA, {}, lacks), "export_witnesses": section(WITNESSES, {}, lacks)}
    return {
        "export_schema": section(SCHEMA, described(schema)),
        "export_witnesses": section(WITNESSES, answers(torch, witnesses)),
    }


def schema_of(torch):
    """Return the module with the schema; None before 2.1."""
    try:
        import torch.export

        if not hasattr(torch.export, "load"):
            return None
        from torch._export.serde import schema
    except ImportError:
        return None
    return schema


# ---------------------------------------------------------------------------------------------------------------------
# The schema

SCHEMA = "Read from the dataclasses and enums of torch._export.serde.schema; every spelling of a type is brought to one."


def described(schema):
    import enum

    dataclasses = sys.modules["dataclasses"]  # imported by the schema; the oldest Python that runs this file does not have it
    version = schema.SCHEMA_VERSION
    entries = {
        "version": list(version) if isinstance(version, (list, tuple)) else version,
        "treespec_version": getattr(schema, "TREESPEC_VERSION", None),
        "records": {},
        "unions": {},
        "enums": {},
    }
    for name, value in sorted(vars(schema).items()):
        if not isinstance(value, type) or value.__module__ != schema.__name__ or name.startswith("_"):
            continue
        if issubclass(value, enum.Enum):
            entries["enums"][name] = {item.name: item.value for item in value}
        elif dataclasses.is_dataclass(value):
            kind = "unions" if any(base.__name__ == "_Union" for base in value.__mro__[1:]) else "records"
            fields = [field for field in dataclasses.fields(value) if not field.name.startswith("_")]
            entries[kind][name] = {field.name: spelled(field.type) + default(dataclasses, field) for field in fields}
    return entries


def default(dataclasses, field):
    """Return the suffix after the type of an optional field."""
    if field.default is not dataclasses.MISSING:
        return " = %s" % (json.dumps(field.default),)
    if field.default_factory is not dataclasses.MISSING:
        return " = %s" % (json.dumps(field.default_factory()),)
    return ""


def spelled(kind):
    """Return a type in canonical spelling, regardless of the release's."""
    if isinstance(kind, str):
        return kind.strip("'\"")
    if hasattr(kind, "__forward_arg__"):
        return kind.__forward_arg__
    if hasattr(kind, "__metadata__"):  # typing.Annotated: numbers for an unused format
        return spelled(kind.__origin__)
    parts = getattr(kind, "__args__", None) or ()
    if type(None) in parts:
        return "|".join(spelled(part) for part in parts if part is not type(None)) + "?"
    name = getattr(getattr(kind, "__origin__", None), "__name__", None) or getattr(kind, "__name__", None) or str(kind)
    inner = [spelled(part) if isinstance(part, (str, type)) or hasattr(part, "__origin__") or hasattr(part, "__forward_arg__") else repr(part) for part in parts]
    return name.lower() + "[%s]" % ", ".join(inner) if parts else name


# ---------------------------------------------------------------------------------------------------------------------
# What the loader does

WITNESSES = (
    "Archives of releases, each with one thing altered in the JSON of its program, loaded with torch.export.load, called, and saved again; "
    "what was altered is asked only where the archive with nothing altered loads."
)


class Heard(logging.Handler):
    """Collects Python warnings, and messages of torch.export's loggers from WARNING on, while it is open."""

    def __init__(self, paths):
        super(Heard, self).__init__(logging.WARNING)
        self.paths, self.texts = paths, []

    def emit(self, record):
        cause = record.exc_info[1] if record.exc_info else None
        self.add(record.getMessage() if cause is None else "%s: %s" % (record.getMessage(), cause))

    def add(self, text):
        told = one_line(text, self.paths)
        if told and told not in self.texts:
            self.texts.append(told)

    def __enter__(self):
        self.caught = warnings.catch_warnings(record=True)
        self.warned = self.caught.__enter__()
        warnings.simplefilter("always")
        self.loggers = [logging.getLogger(name) for name in ("torch.export", "torch._export")]
        for logger in self.loggers:
            logger.addHandler(self)
        return self

    def __exit__(self, *exc_info):
        for logger in self.loggers:
            logger.removeHandler(self)
        self.caught.__exit__(*exc_info)
        for warning in self.warned:
            self.add("%s: %s" % (warning.category.__name__, warning.message))


def one_line(text, paths):
    """Return the first non-empty line without parts that differ between runs: paths, addresses and source line numbers."""
    text = next((line.strip() for line in str(text).split("\n") if line.strip()), "")
    for path in paths:
        text = text.replace(path, "PATH")
    text = re.sub(r"0x[0-9a-f]+", "0x...", text)
    text = re.sub(r'(\w+\.(?:cpp|cc|h|py)"?[:,] ?(?:line )?)\d+', r"\1...", text)
    return re.sub(r"\s+", " ", text)[:LONGEST_TEXT]


def error_line(error, paths):
    told = one_line(error, paths)
    return "%s: %s" % (type(error).__name__, told) if told else type(error).__name__


def answers(torch, witnesses):
    results = {}
    computed = {}
    site_packages = os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__)))
    for witness in witnesses:
        name, base = witness["name"], witness["base"]
        if base is not None and results[base]["loads"] != "loads":
            continue
        paths = [os.path.dirname(witness["path"]), site_packages, os.getcwd()]
        with open(witness["path"], "rb") as stream:
            entry = {"archive": hashlib.sha256(stream.read()).hexdigest()}
        with Heard(paths) as heard:
            try:
                program = torch.export.load(witness["path"])
                entry["loads"] = "loads"
            except Exception as error:
                program = None
                entry["loads"] = "refused: " + error_line(error, paths)
        entry["says"] = sorted(set(heard.texts))
        entry["computes"] = entry["keeps"] = None
        if program is not None:
            computed[name] = [computes(torch, program, shape, paths) for shape in witness["shapes"]]
            entry["computes"] = AS_BASE if base is not None and computed[name] == computed[base] else computed[name]
            if witness["marker"]:
                entry["keeps"] = keeps(torch, program, witness["marker"])
        results[name] = entry
    return results


def computes(torch, program, shape, paths):
    """Return the result of one call as text: small exact values, or the error."""
    count = 1
    for size in shape:
        count *= size
    value = (torch.arange(count, dtype=torch.float32) - 2).reshape(shape)
    module = program.module() if callable(getattr(program, "module", None)) else program
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = module(value)
    except Exception as error:
        return error_line(error, paths)
    return json.dumps(plain(torch, result))


def plain(torch, value):
    if isinstance(value, torch.Tensor):
        return [str(value.dtype).replace("torch.", ""), value.tolist()]
    if isinstance(value, (list, tuple)):
        return [plain(torch, item) for item in value]
    return value if isinstance(value, (bool, int, float, str)) or value is None else type(value).__name__


def keeps(torch, program, marker):
    """Whether the release writes the marker when it saves the program again; None if it cannot save it."""
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "again.pt2")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.export.save(program, path)
        with zipfile.ZipFile(path) as archive:
            return any(marker.encode("utf-8") in archive.read(name) for name in archive.namelist() if name.endswith(".json"))
    except Exception as error:
        sys.stderr.write("not saved again: %s\n" % error_line(error, [folder]))
        return None
    finally:
        if os.path.exists(path):
            os.remove(path)
        os.rmdir(folder)
