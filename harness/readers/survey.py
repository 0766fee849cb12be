"""What one torch release says about itself, recorded while its environment stands, so that nobody has to rebuild it.

Python 3.6 syntax, standard library and torch only: the worker runs this file under the release's own Python and calls
``survey(torch)``. The result is plain JSON, the same on every run, and holds no path of the machine:

    {section: {"obtained": how, one sentence, "complete": bool, "why_incomplete": str or None, "entries": ...}}

Every section is always there; what a release lacks is said in ``why_incomplete``. Each section is asked in a fork of its
own, and so is each single question that is known to crash some release: a crash costs that answer and is recorded.
An exception that is not expected ends the survey.
"""

import hashlib
import inspect
import json
import os
import pickletools
import re
import shutil
import signal
import struct
import sys
import tempfile
import traceback
import zipfile

FILE_FORMATS = range(16)
BYTECODES = range(1, 13)
EXPORT_MAJORS_AROUND = 2
LONGEST_ANSWER_S = 30
LONGEST_SECTION_S = 300

# ---------------------------------------------------------------------------------------------------------------------
# Asking in a fork


class Died(Exception):
    """The process that was asked died; the message names the signal or the exit status."""


class Raised(Exception):
    """What was asked raised. ``message`` is what it said in one line; the text is the whole traceback."""

    def __init__(self, message, trace):
        super(Raised, self).__init__(trace)
        self.message = message


def in_fork(function, *args, longest_s=LONGEST_ANSWER_S):
    """``function(*args)``, computed in a fork; its value has to be JSON. Raises Died or Raised."""
    answers, died = _ask_fork(lambda arguments: function(*arguments), [args], longest_s)
    if died:
        raise Died(died)
    return answers[0]


def map_in_forks(function, items):
    """``[(item, function(item), None) or (item, None, why it died)]``: one fork for all, a further one after each death."""
    results = []
    while len(results) < len(items):
        rest = items[len(results) :]
        answers, died = _ask_fork(function, rest, LONGEST_SECTION_S)
        results += [(item, answer, None) for item, answer in zip(rest, answers)]
        if died:
            results.append((items[len(results)], None, died))
    return results


def _ask_fork(function, items, longest_s):
    """The answers that one fork gave, in order, and why it died before it had given all; None if it gave all."""
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(readable)
        signal.alarm(longest_s)
        with os.fdopen(writable, "wb") as stream:
            for item in items:
                try:
                    answer = json.dumps({"value": function(item)})
                except BaseException as error:  # all of it is the parent's to raise
                    raised = "%s: %s" % (type(error).__name__, first_line(error))
                    answer = json.dumps({"raised": raised, "trace": traceback.format_exc()})
                stream.write(answer.encode("ascii") + b"\n")
                stream.flush()
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable, "rb") as stream:
        answers = [json.loads(line.decode("ascii")) for line in stream.read().split(b"\n")[:-1]]
    _, status = os.waitpid(pid, 0)
    for answer in answers:
        if "raised" in answer:
            raise Raised(answer["raised"], answer["trace"])
    if os.WIFSIGNALED(status):
        return [answer["value"] for answer in answers], signal.Signals(os.WTERMSIG(status)).name
    died = None if len(answers) == len(items) else "exit status %d" % os.WEXITSTATUS(status)
    return [answer["value"] for answer in answers], died


# ---------------------------------------------------------------------------------------------------------------------
# Small things that sections share


def section(obtained, entries, why_incomplete=None):
    return {"obtained": obtained, "complete": why_incomplete is None, "why_incomplete": why_incomplete, "entries": entries}


def first_line(error):
    return (str(error).strip().split("\n") or [""])[0].strip()


def why_not(error):
    """Of a Raised or Died, for use inside a sentence."""
    return error.message.rstrip(":.") if isinstance(error, Raised) else "the process died: %s" % error


def site_packages(torch):
    return os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__)))


class Workplace:
    """An empty folder as the current one, so that no file name in a message is more than a plain name."""

    def __enter__(self):
        self.back = os.getcwd()
        self.folder = tempfile.mkdtemp()
        os.chdir(self.folder)

    def __exit__(self, *exc_info):
        os.chdir(self.back)
        shutil.rmtree(self.folder)


PROGRAMS = {
    "add": "def forward(self, x):\n    return x + x\n",
    "div": "def forward(self, x):\n    return torch.div(x, x)\n",
    "div_": "def forward(self, x):\n    return x.div_(x)\n",
    "full": "def forward(self, x):\n    return torch.full([2], 1.5)\n",
    "gelu": "def forward(self, x):\n    return torch.nn.functional.gelu(x)\n",
    "linspace": "def forward(self, x):\n    return torch.linspace(0, 1, 5)\n",
    "logspace": "def forward(self, x):\n    return torch.logspace(0, 1, 5)\n",
}


def program(torch, name):
    """A module of one method, from source text: no file stands behind it. One per process: some releases clash on two."""
    module = torch.jit.ScriptModule()
    module.define(PROGRAMS[name])
    return module


def save_zip(torch, path):
    """torch.save as a zip archive; False where this release writes none."""
    keywords = {}
    if "_use_new_zipfile_serialization" in inspect.signature(torch.save).parameters:
        keywords["_use_new_zipfile_serialization"] = True
    torch.save({"weight": torch.ones(2)}, path, **keywords)
    return zipfile.is_zipfile(path)


def save_mobile(torch, path):
    module = program(torch, "add")
    if hasattr(module, "_save_for_lite_interpreter"):
        module._save_for_lite_interpreter(path)
        return True
    if hasattr(module._c, "_save_for_mobile"):
        module._c._save_for_mobile(path, {})
        return True
    return False


def members(path):
    with zipfile.ZipFile(path) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def write_members(path, entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in entries:
            archive.writestr(zipfile.ZipInfo(name), data)


def version_record(path):
    """``[member without its folder, number]`` of the record that states the file format version."""
    for name, data in members(path):
        member = name.split("/", 1)[1]
        if member in ("version", ".data/version"):
            return [member, int(data)]
    return None


def read_only_texts(torch):
    """The read-only data of the release's own CPU libraries: where the texts stand that it was compiled with."""
    root = os.path.dirname(os.path.abspath(torch.__file__))
    for folder in (root, os.path.join(root, "lib")):
        for name in sorted(os.listdir(folder)):
            if re.match(r"(libtorch|libcaffe2|_C)(?!.*(cuda|gpu|_observers|_module_test)).*\.so", name):
                yield elf_section(os.path.join(folder, name), b".rodata")


def elf_section(path, wanted):
    """The bytes of a section of a 64-bit little-endian ELF file; empty if it has none of that name."""
    with open(path, "rb") as stream:
        header = stream.read(64)
        if header[:6] != b"\x7fELF\x02\x01":
            return b""
        (table_at,) = struct.unpack_from("<Q", header, 40)
        entry_size, count, names_index = struct.unpack_from("<HHH", header, 58)
        stream.seek(table_at)
        table = stream.read(entry_size * count)
        entries = [struct.unpack_from("<IIQQQQ", table, i * entry_size) for i in range(count)]
        stream.seek(entries[names_index][4])
        names = stream.read(entries[names_index][5])
        for name_at, _, _, _, offset, size in entries:
            if names[name_at : names.index(b"\0", name_at)] == wanted:
                stream.seek(offset)
                return stream.read(size)
    return b""


# ---------------------------------------------------------------------------------------------------------------------
# Operators


def schemas(torch):
    if hasattr(torch._C, "_jit_get_all_schemas"):
        found = {str(schema) for schema in torch._C._jit_get_all_schemas()}
        return section("torch._C._jit_get_all_schemas().", sorted(found))
    found = {str(schema) for name in candidate_names(torch) for schema in torch._C._jit_get_schemas_for_operator(name)}
    return section(
        "Every text of the form namespace::name in the read-only data of the release's libraries, and every name of its Python "
        "modules under aten:: and prim::, given to torch._C._jit_get_schemas_for_operator.",
        sorted(found),
        "This release has no list of all schemas (torch._C._jit_get_all_schemas); an operator whose name is put together at "
        "run time would be missed.",
    )


def candidate_names(torch):
    names = set()
    for text in read_only_texts(torch):
        for match in re.finditer(rb"::[A-Za-z_]\w*", text):
            at = match.start()
            namespace = re.search(rb"[A-Za-z_]\w*\Z", text[max(0, at - 40) : at])
            if namespace:
                names.add((namespace.group() + match.group()).decode("ascii"))
    places = (torch, torch.Tensor, torch.nn.functional, torch._C._VariableFunctions, getattr(torch._C, "_nn", None))
    for place in places:
        names.update(namespace + "::" + name for name in dir(place) for namespace in ("aten", "prim"))
    return sorted(names)


def custom_classes(torch):
    if not hasattr(torch._C, "_jit_get_custom_class_schemas"):
        return section(
            "Not obtained.", [], "This release has no list of custom class methods (torch._C._jit_get_custom_class_schemas)."
        )
    found = {str(schema) for schema in torch._C._jit_get_custom_class_schemas()}
    return section("torch._C._jit_get_custom_class_schemas().", sorted(found))


NO_VERSION_MAP = (
    "This release has no operator version map for Python (torch._C._get_operator_version_map); until 1.10 old operators are "
    "chosen by a table of versioned symbols inside the library, which is not exposed."
)


def operator_versions(torch):
    if not hasattr(torch._C, "_get_operator_version_map"):
        return section("Not obtained.", {}, NO_VERSION_MAP)
    entries = {
        operator: [[entry.bumped_at_version, entry.upgrader_name, entry.old_schema] for entry in bumps]
        for operator, bumps in torch._C._get_operator_version_map().items()
    }
    return section("torch._C._get_operator_version_map(): [bumped_at_version, upgrader, old schema] of each entry.", entries)


def upgraders(torch):
    if not hasattr(torch._C, "_get_operator_version_map"):
        return upgraders_in_library(torch)
    ranges = {}
    if hasattr(torch._C, "_get_upgrader_ranges"):
        for operator in torch._C._get_operator_version_map():
            spans = torch._C._get_upgrader_ranges(operator)
            ranges[operator] = sorted([span.min_version, span.max_version] for span in spans)
    names = {entry.upgrader_name for bumps in torch._C._get_operator_version_map().values() for entry in bumps}
    if hasattr(torch._C, "_get_upgraders_entry_map"):
        how = "torch._C._get_upgraders_entry_map(), the TorchScript sources that the release compiles"
        bodies = {name: [text.strip()] for name, text in torch._C._get_upgraders_entry_map().items()}
    else:
        how = "The TorchScript sources of the operator version map's names, in the read-only data of the release's libraries"
        bodies = sources_in_library(torch, names)
    missing = sorted(names - set(bodies))
    return section(
        how + "; ranges of file format versions from torch._C._get_upgrader_ranges.",
        {"bodies": bodies, "ranges": ranges},
        "No source was found of: %s." % ", ".join(missing) if missing else None if ranges else "This release gave no ranges.",
    )


def sources_in_library(torch, names):
    """``{name: [source of each overload]}`` of those of the names whose TorchScript source stands in a library."""
    bodies = {}
    for text in read_only_texts(torch):
        for match in re.finditer(rb"\ndef (\w+)\([^\0]*?(?=\0|\ndef )", text):
            name = match.group(1).decode("ascii")
            if name in names:
                bodies.setdefault(name, set()).add(match.group().decode("utf-8").strip())
    return {name: sorted(sources) for name, sources in bodies.items()}


def upgraders_in_library(torch):
    """For releases without an operator version map: their symbols ``upgraders::name``."""
    names = {
        match.group(1).decode("ascii") for text in read_only_texts(torch) for match in re.finditer(rb"\bupgraders::(\w+)\0", text)
    }
    bodies = sources_in_library(torch, names)
    return section(
        "The texts upgraders::name and the TorchScript sources of those names, one per overload, in the read-only data of the "
        "release's libraries.",
        {"bodies": {name: bodies.get(name, []) for name in names}, "ranges": {}},
        "The table of versioned symbols is not exposed to Python: which operators and versions lead to a body is only what its "
        "name says (start and end, inclusive)." + ("" if names else " The libraries of this release name no upgrader."),
    )


# ---------------------------------------------------------------------------------------------------------------------
# Kernels


def kernels(torch):
    if not hasattr(torch._C, "_dispatch_dump"):
        return section("Not obtained.", {}, "This release does not show its dispatcher to Python (torch._C._dispatch_dump).")
    if hasattr(torch._C, "_dispatch_get_all_op_names"):
        names = sorted(set(torch._C._dispatch_get_all_op_names()))
    else:
        schemas = torch._C._jit_get_all_schemas()
        names = sorted({s.name + ("." + s.overload_name if s.overload_name else "") for s in schemas})
    entries, died = {}, {}
    for name, keys, why in map_in_forks(dispatch_keys, names):
        if why:
            died[why] = died.get(why, 0) + 1
            entries[name] = "crashed: " + why
        elif keys is not None:
            entries[name] = keys
    why = None
    if died:
        counts = ", ".join("%s for %d" % item for item in sorted(died.items()))
        why = "torch._C._dispatch_dump of a single operator kills the process: %s of %d operators." % (counts, len(entries))
    return section(
        "The keys for which torch._C._dispatch_dump(operator) lists a kernel that this build registers; fallthroughs are left "
        "out, and so are operators that the dispatcher does not know.",
        entries,
        why,
    )


def dispatch_keys(name):
    """Keys with a kernel, by their own names ("Math", "CompositeImplicitAutograd"...); None: not in the dispatcher."""
    import torch

    text = torch._C._dispatch_dump(name)
    if not text:
        return None
    lines = re.findall(r"^(\w+)(?:\[alias\])?(?: \(inactive\))?: registered at (.*)$", text, re.MULTILINE)
    return sorted({key for key, rest in lines if key != "debug" and "[ fallthrough" not in rest})


NATIVE_FUNCTIONS = "torchgen/packaged/ATen/native/native_functions.yaml"


def native_functions(torch):
    path = os.path.join(site_packages(torch), *NATIVE_FUNCTIONS.split("/"))
    if not os.path.exists(path):
        return section("Not obtained.", {}, "The package of this release does not carry %s." % NATIVE_FUNCTIONS)
    with open(path, "rb") as stream:
        data = stream.read()
    return section(
        "Read line by line from the file that the package carries; a function without dispatch and structured_delegate is "
        "CompositeImplicitAutograd.",
        {"path": NATIVE_FUNCTIONS, "sha256": hashlib.sha256(data).hexdigest(), "functions": scan_functions(data.decode("utf-8"))},
    )


def scan_functions(text):
    """``{operator: {"dispatch": [key...], "tags": [...], "structured_delegate": operator, "autogen": [...]}}``."""
    functions, function, field = {}, None, None
    for line in text.split("\n"):
        line = re.sub(r"(^|\s)#.*", "", line).rstrip()
        start = re.match(r"- func: *([\w:.]+)\(", line)
        named = re.match(r"  (\w+): *(.*)$", line)
        nested = re.match(r"    ([\w, ]+):", line)
        item = re.match(r"  (?:  )?- (\w+)$", line)
        if start:
            function, field = functions.setdefault(qualified(start.group(1)), {}), None
        elif line.startswith("- "):
            raise ValueError("a line of native_functions.yaml that is not understood: " + line)
        elif named:
            field, value = named.groups()
            names = [name for name in re.split(r"[\[\], ]+", value) if name]
            if field == "tags" and names:
                function["tags"] = sorted(names)
            elif field == "autogen":
                function["autogen"] = sorted(qualified(name) for name in names)
            elif field == "structured_delegate":
                function["structured_delegate"] = qualified(value)
        elif nested and field in ("dispatch", "ufunc_inner_loop"):
            keys = set(function.get(field, ())) | {key.strip() for key in nested.group(1).split(",")}
            function[field] = sorted(keys)
        elif item and field == "tags":
            function["tags"] = sorted(set(function.get("tags", ())) | {item.group(1)})
    for function in functions.values():
        if "dispatch" not in function and "structured_delegate" not in function:
            function["dispatch"] = ["CompositeImplicitAutograd"]
    return functions


def qualified(name):
    return name if "::" in name else "aten::" + name


# ---------------------------------------------------------------------------------------------------------------------
# Safe loading


def weights_only(torch):
    if "weights_only" not in inspect.signature(torch.load).parameters:
        return section(
            "Read from the parameters of torch.load.",
            {"allowed": [], "blocked_modules": [], "default": None},
            "torch.load of this release has no weights_only.",
        )
    import torch._weights_only_unpickler as unpickler

    blocked = getattr(unpickler, "_blocklisted_modules", None)
    entries = {
        "allowed": sorted(str(name) for name in unpickler._get_allowed_globals()),
        "blocked_modules": sorted(blocked or ()),
        "default": default_of_weights_only(torch),
    }
    return section(
        "torch._weights_only_unpickler: the names of _get_allowed_globals() and _blocklisted_modules; the default by loading an "
        "object that is not allowed without naming weights_only.",
        entries,
        "This release exposes no list of blocked modules." if blocked is None else None,
    )


def default_of_weights_only(torch):
    import fractions

    with Workplace():
        torch.save(fractions.Fraction(1, 3), "fraction.pt")
        torch.load("fraction.pt", weights_only=False)
        try:
            torch.load("fraction.pt", weights_only=True)
        except Exception as error:
            refusal = type(error)
        else:
            raise RuntimeError("weights_only=True took fractions.Fraction")
        try:
            torch.load("fraction.pt")
        except refusal:
            return True
        return False


# ---------------------------------------------------------------------------------------------------------------------
# Versions that the loaders take, found by trying


def accepts(torch):
    """``{"torch-save" and "torchscript": {member: {version: answer}}, "mobile": ..., "export": {"major.minor": answer}}``."""
    gaps = []
    entries = {}
    with Workplace():
        for name, attempt in (
            ("torch-save", accepts_torch_save),
            ("torchscript", accepts_torchscript),
            ("mobile", accepts_mobile),
            ("export", accepts_export),
        ):
            try:
                entries[name], gap = in_fork(attempt, torch, longest_s=LONGEST_SECTION_S)
            except (Raised, Died) as error:
                entries[name], gap = {}, why_not(error)
            if gap:
                gaps.append("%s: %s." % (name, gap))
    return section(
        "A tiny archive of this release, its version record rewritten (the file format in member version and in member "
        ".data/version, the first number of bytecode.pkl, schema_version of the exported program) and loaded, each in a process "
        "of its own; only the number differs from what this release writes.",
        entries,
        " ".join(gaps) or None,
    )


def attempt_load(load, path):
    try:
        return in_fork(loads_or_refuses, load, path)
    except Died as death:
        return "crashed: %s" % death


def loads_or_refuses(load, path):
    try:
        load(path)
    except Exception as error:
        return "refused: " + first_line(error)
    return "loads"


def accepts_file_formats(load, path):
    original = members(path)
    folder = original[0][0].split("/", 1)[0]
    rest = [(name, data) for name, data in original if name not in (folder + "/version", folder + "/.data/version")]
    answers = {}
    for member in ("version", ".data/version"):
        answers[member] = {}
        for version in FILE_FORMATS:
            write_members("versioned.pt", rest + [("%s/%s" % (folder, member), b"%d\n" % version)])
            answers[member][str(version)] = attempt_load(load, "versioned.pt")
    return answers


def accepts_torch_save(torch):
    if not save_zip(torch, "saved.pt"):
        return {}, "torch.save of this release writes no zip archive"
    return accepts_file_formats(torch.load, "saved.pt"), None


def accepts_torchscript(torch):
    torch.jit.save(program(torch, "add"), "scripted.pt")
    return accepts_file_formats(torch.jit.load, "scripted.pt"), None


def accepts_mobile(torch):
    """``{"none": answer without a number, "1": ...}``."""
    if not save_mobile(torch, "mobile.ptl"):
        return {}, "this release writes no bytecode"
    if not hasattr(torch._C, "_load_for_lite_interpreter"):
        return {}, "this release has no lite interpreter that Python can reach (torch._C._load_for_lite_interpreter)"
    original = members("mobile.ptl")
    answers = {}
    for version in [None] + list(BYTECODES):
        patched = [(name, with_bytecode(data, version) if name.endswith("/bytecode.pkl") else data) for name, data in original]
        write_members("patched.ptl", patched)
        answer = attempt_load(lambda path: torch._C._load_for_lite_interpreter(path, None), "patched.ptl")
        answers["none" if version is None else str(version)] = answer
    return answers, None


def bytecode_number(data):
    """``(start, end, number)`` of the version number in a bytecode.pkl; start == end and None where it has none."""
    operations = list(pickletools.genops(data))
    at = 2 if operations[1][0].name == "MARK" else 1
    operation, number, start = operations[at]
    if operation.name in ("BININT", "BININT1", "BININT2"):
        return start, operations[at + 1][2], number
    return start, start, None


def with_bytecode(data, version):
    """The same bytecode.pkl with another version number, or without: its tuple then has one element more or less."""
    start, end, number = bytecode_number(data)
    tuples = [at for operation, _, at in pickletools.genops(data) if operation.name in ("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3")]
    change = (version is not None) - (number is not None)
    outermost = data[tuples[-1]]
    if change and outermost != ord("t"):
        data = data[: tuples[-1]] + bytes([outermost + change]) + data[tuples[-1] + 1 :]
    return data[:start] + (b"" if version is None else b"K" + bytes([version])) + data[end:]


def export_schema(torch):
    """The schema version that torch.export states: [major, minor], or a single number; None where there is no export."""
    if not hasattr(torch, "export"):
        return None
    try:
        from torch._export.serde import schema
    except ImportError:
        return None
    version = getattr(schema, "SCHEMA_VERSION", None)
    return list(version) if isinstance(version, (list, tuple)) else version


def accepts_export(torch):
    own = export_schema(torch)
    if own is None:
        return {}, "this release has no torch.export that saves"

    class Add(torch.nn.Module):
        def forward(self, x):
            return x + x

    torch.export.save(torch.export.export(Add(), (torch.ones(2),)), "exported.pt2")
    original = members("exported.pt2")
    holders = [name for name, data in original if name.endswith(".json") and b'"schema_version"' in data]
    if len(holders) != 1:
        return {}, "found schema_version in %d members of an exported program" % len(holders)
    answers = {}
    for version in export_versions(own):
        patched = [(name, with_schema(data, version) if name == holders[0] else data) for name, data in original]
        write_members("patched.pt2", patched)
        name = ".".join(str(number) for number in version) if isinstance(version, list) else str(version)
        answers[name] = attempt_load(load_exported, "patched.pt2")
    return answers, None


def load_exported(path):
    """torch.export.load; what it only logs before it raises an error without a cause is part of the error."""
    import logging

    import torch

    causes = []
    handler = logging.Handler()
    handler.emit = lambda record: causes.append(first_line(record.exc_info[1])) if record.exc_info else None
    logging.getLogger("torch.export").addHandler(handler)
    try:
        torch.export.load(path)
    except Exception as error:
        raise RuntimeError(" Logged: ".join([first_line(error)] + causes))


def export_versions(own):
    major = own[0] if isinstance(own, list) else own
    majors = sorted({0} | set(range(max(0, major - EXPORT_MAJORS_AROUND), major + EXPORT_MAJORS_AROUND + 1)))
    if not isinstance(own, list):
        return majors
    around = {0, 1, max(0, own[1] - 1), own[1], own[1] + 1, own[1] + 100}
    return [[0, 0]] + [[other, own[1]] for other in majors if other != major] + [[major, minor] for minor in sorted(around)]


def with_schema(data, version):
    tree = json.loads(data.decode("utf-8"))
    tree["schema_version"] = {"major": version[0], "minor": version[1]} if isinstance(version, list) else version
    return json.dumps(tree).encode("utf-8")


# ---------------------------------------------------------------------------------------------------------------------
# Constants


def constants(torch):
    gaps = []
    entries = {"bytecode": None, "byteorder": sys.byteorder, "export_schema": export_schema(torch), "file_formats": {}}
    for name in ("_get_max_operator_version", "_get_version_calculator_flag", "_is_upgraders_enabled"):
        entries[name.lstrip("_").replace("get_", "")] = getattr(torch._C, name)() if hasattr(torch._C, name) else None
    for name in ("MAGIC_NUMBER", "PROTOCOL_VERSION", "DEFAULT_PROTOCOL"):
        entries["torch_save_" + name.lower()] = getattr(torch.serialization, name)
    with Workplace():
        entries["torch_save_members"] = entries["file_formats"]["torch.save"] = None
        if save_zip(torch, "saved.pt"):
            entries["file_formats"]["torch.save"] = version_record("saved.pt")
            names = [name.split("/", 1)[1] for name, _ in members("saved.pt")]
            entries["torch_save_members"] = [re.sub(r"^data/\d+$", "data/*", name) for name in names]
        torch.save(1, "default.pt")
        entries["torch_save_default_container"] = "zip" if zipfile.is_zipfile("default.pt") else "stream"
        for name in sorted(PROGRAMS):
            try:
                entries["file_formats"][name] = in_fork(file_format_of_program, torch, name)
            except (Raised, Died) as error:
                entries["file_formats"][name] = None
                gaps.append("%s cannot be scripted and saved: %s." % (name, why_not(error)))
        if in_fork(save_mobile, torch, "mobile.ptl"):
            (bytecode,) = [data for name, data in members("mobile.ptl") if name.endswith("/bytecode.pkl")]
            entries["bytecode"] = bytecode_number(bytecode)[2]
            entries["file_formats"]["mobile"] = version_record("mobile.ptl")
    return section(
        "Read from torch._C, torch.serialization and torch._export.serde.schema; [member, number] of the version record in "
        "archives that this release wrote now; null where the release has no such thing.",
        entries,
        " ".join(gaps) or None,
    )


def file_format_of_program(torch, name):
    torch.jit.save(program(torch, name), name + ".pt")
    return version_record(name + ".pt")


# ---------------------------------------------------------------------------------------------------------------------

SECTIONS = (
    schemas,
    custom_classes,
    operator_versions,
    upgraders,
    kernels,
    native_functions,
    weights_only,
    accepts,
    constants,
)


def survey(torch):
    """All sections of this release, as plain JSON."""
    result = {}
    for ask in SECTIONS:
        try:
            result[ask.__name__] = in_fork(ask, torch, longest_s=LONGEST_SECTION_S)
        except Died as death:
            result[ask.__name__] = section("Not obtained.", {}, "The process that was asked died: %s." % death)
    return without_places(result, [site_packages(torch), os.getcwd()])


def without_places(result, places):
    """The result, its folders stripped from every text; raises if one is still there."""
    text = json.dumps(result)
    for place in places:
        text = text.replace(json.dumps(place + os.sep)[1:-1], "")
    found = [place for place in places if len(place) > 1 and json.dumps(place)[1:-1] in text]
    if found:
        raise RuntimeError("the survey names a folder of this machine: " + ", ".join(found))
    return json.loads(text)
