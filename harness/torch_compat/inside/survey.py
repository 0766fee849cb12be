"""Records what one torch release reports about itself, so that its environment need not be rebuilt later.

Python 3.6 syntax, standard library and torch only: the worker runs this file under the release's own Python and calls
``survey(torch)``. The result is plain JSON, the same on every run, and contains no paths of the machine:

    {section: {"obtained": how, one sentence, "complete": bool, "why_incomplete": str or None, "entries": ...}}

It is one file, and longer than others, because the release starts it by path and cannot import other files.

Every section is always present; ``why_incomplete`` states what a release lacks. Each section runs in its own fork, as does each single
question that is known to crash some release: a crash loses only that answer and is recorded. An unexpected exception ends the survey.
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
import subprocess
import sys
import tempfile
import traceback
import zipfile

FILE_FORMATS = range(16)
BYTECODES = range(1, 13)
EXPORT_MAJORS_AROUND = 2
LONGEST_ANSWER_S = 30
LONGEST_SECTION_S = 300
LONGEST_CALL_S = 10

# ---------------------------------------------------------------------------------------------------------------------
# Asking in a fork


class Died(Exception):
    """The forked process died; the message names the signal or the exit status."""


class Raised(Exception):
    """The forked function raised. ``message`` is the error in one line; the text is the whole traceback."""

    def __init__(self, message, trace):
        super(Raised, self).__init__(trace)
        self.message = message


def in_fork(function, *args, longest_s=LONGEST_ANSWER_S):
    """Compute ``function(*args)`` in a fork; the value must be JSON. Raises Died or Raised."""
    answers, died = _ask_fork(lambda arguments: function(*arguments), [args], longest_s)
    if died:
        raise Died(died)
    return answers[0]


def map_in_forks(function, items):
    """``[(item, function(item), None) or (item, None, why it died)]``: one fork for all items, and another after each crash."""
    results = []
    while len(results) < len(items):
        rest = items[len(results) :]
        answers, died = _ask_fork(function, rest, LONGEST_SECTION_S)
        results += [(item, answer, None) for item, answer in zip(rest, answers)]
        if died:
            results.append((items[len(results)], None, died))
    return results


def _ask_fork(function, items, longest_s):
    """Return the answers of one fork in order, and why it died before the last one; None if it did not."""
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(readable)
        signal.alarm(longest_s)
        with os.fdopen(writable, "wb") as stream:
            for item in items:
                try:
                    answer = json.dumps({"value": function(item)})
                except BaseException as error:  # the parent raises it
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
    """Describe a Raised or Died, for use inside a sentence."""
    return error.message.rstrip(":.") if isinstance(error, Raised) else "the process died: %s" % error


def site_packages(torch):
    return os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__)))


class Workplace:
    """Makes an empty folder the current directory, so that messages contain only plain file names."""

    def __enter__(self):
        self.back = os.getcwd()
        self.folder = tempfile.mkdtemp()
        os.chdir(self.folder)
        return self.folder

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
    """Return a module with one method, compiled from text without a file. One per process: in some releases, two conflict."""
    module = torch.jit.ScriptModule()
    module.define(PROGRAMS[name])
    return module


def save_zip(torch, path):
    """Save with torch.save as a zip archive; False if this release cannot."""
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
    compiled = getattr(module, "_c", None)  # 1.0 does not have it; in 1.4 it raises for a missing attribute, its class does not
    if hasattr(type(compiled), "_save_for_mobile"):
        compiled._save_for_mobile(path, {})
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
    """Return ``[member without its folder, number]`` of the record with the file format version."""
    for name, data in members(path):
        member = name.split("/", 1)[1]
        if member in ("version", ".data/version"):
            return [member, int(data)]
    return None


def read_only_texts(torch):
    """Yield the read-only data of the release's CPU libraries, which contains their string literals."""
    root = os.path.dirname(os.path.abspath(torch.__file__))
    for folder in (root, os.path.join(root, "lib")):
        for name in sorted(os.listdir(folder)):
            if re.match(r"(libtorch|libcaffe2|_C)(?!.*(cuda|gpu|_observers|_module_test)).*\.so", name):
                yield elf_section(os.path.join(folder, name), b".rodata")


def elf_section(path, wanted):
    """Return the bytes of a section of a 64-bit little-endian ELF file; empty if it has no such section."""
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
        results = {as_text(schema) for schema in torch._C._jit_get_all_schemas()}
        return section("torch._C._jit_get_all_schemas(). " + PRINTED, sorted(results), only_cpu(torch, "operators"))
    objects = [schema for name in candidate_names(torch) for schema in torch._C._jit_get_schemas_for_operator(name)]
    how = (
        "Every text of the form namespace::name in the read-only data of the release's libraries, and every name of its Python "
        "modules under aten:: and prim::, given to torch._C._jit_get_schemas_for_operator"
    )
    why = (
        "This release has no list of all schemas (torch._C._jit_get_all_schemas); an operator whose name is put together at "
        "run time would be missed."
    )
    if objects and type(objects[0]).__str__ is object.__str__:
        results, unspelled = spelled_in_library(torch, objects)
        how += "; these schemas cannot be printed here, so each is spelled as a text of the libraries that has its name and types"
        if unspelled:
            why += " No text was found for %d schemas of: %s." % (len(unspelled), ", ".join(sorted(set(unspelled))))
    else:
        results = {as_text(schema) for schema in objects}
    return section(how + ". " + PRINTED, sorted(results), why)


IMPORTING = r"""
import importlib.util, json, sys
from importlib.machinery import SourceFileLoader

import torch

wanted = json.loads(sys.argv[1])
texts = lambda: [str(schema) for schema in torch._C._jit_get_all_schemas()]
plain = texts()
known, seen, running, found = set(plain), [len(plain)], [], {}


def note():
    if len(torch._C._jit_get_all_schemas()) != seen[0]:  # a thousand modules: texts are made only where something came
        fresh = texts()
        for text in set(fresh) - known:
            found[text] = running[-1]
        known.update(fresh)
        seen[0] = len(fresh)


def executed(self, module, before=SourceFileLoader.exec_module):
    note()
    running.append(module.__name__)
    try:
        before(self, module)
    finally:
        note()
        running.pop()


SourceFileLoader.exec_module = executed
running.append("")
for name in wanted:
    try:
        __import__(name)
    except Exception:  # of what cannot be imported alone, the operators stay unexplained, and that is noticed
        pass
sys.stdout.write("\n" + json.dumps([plain, found]))
"""


def imported(torch):
    """``{operator: [module]}`` for operators in the section ``schemas`` that ``import torch`` alone does not register."""
    if not hasattr(torch._C, "_jit_get_all_schemas"):
        return section("Not obtained.", {}, "This release has no list of all schemas (torch._C._jit_get_all_schemas).")
    wanted = sorted(name for name in sys.modules if name.split(".")[0] == "torch")
    command = [sys.executable, "-c", IMPORTING, json.dumps(wanted)]
    decoder = subprocess.check_output(command, stderr=subprocess.DEVNULL)
    plain, result = json.loads(decoder.decode("utf-8").rpartition("\n")[2])
    here = {str(schema) for schema in torch._C._jit_get_all_schemas()}
    entries = {text.partition("(")[0]: [result[text]] for text in here - set(plain)}
    return section(
        "torch._C._jit_get_all_schemas() in a process that has imported torch alone, and again after each module that was "
        "imported where the schemas were asked for: the module that was executed when the operator appeared.",
        entries,
    )


PRINTED = "A single return without a name stands without the parentheses that some releases print around it."


def as_text(schema):
    """Return the schema as text; 1.2 to 1.12 print ``-> (Tensor)`` where others print ``-> Tensor``."""
    return re.sub(r"-> \((?!\.)([^(),\s]+(?:\([^()]*\))?[^(),\s]*)\)$", r"-> \1", str(schema))


def only_cpu(torch, what):
    """Return why a set is incomplete if this is the build without CUDA; None for other builds."""
    if torch.version.cuda is not None:
        return None
    return "This is the build without CUDA: %s that only other builds have are missing." % what


def spelled_in_library(torch, objects):
    """Return the strings in the libraries that spell one of the schema objects, and the names of the objects without such a string."""
    texts = {}
    for data in read_only_texts(torch):
        # A quotation mark after the arrow indicates an assertion message that quotes a schema, not a schema.
        for match in re.finditer(rb"\w+::\w+\([^\0]*\) *-> *[^\0\"]+(?=\0)", data):
            text = re.sub(r"\) *-> *", ") -> ", re.sub(r"\s+", " ", match.group().decode("ascii")).strip())
            texts.setdefault(typed(text), set()).add(text)
    result, unspelled = set(), []
    for schema in objects:
        types = tuple((argument.name, str(argument.type)) for argument in schema.arguments)
        spellings = texts.get((schema.name, types), ())
        result.update(spellings)
        if not spellings:
            unspelled.append(schema.name)
    return result, unspelled


TYPES_AS_PRINTED = {"Scalar": "number", "ScalarType": "int", "Layout": "int", "MemoryFormat": "int"}


def typed(text):
    """``(name, ((argument, type as the release prints it)...))`` of a schema's text."""
    name, rest = text.split("(", 1)
    inner = rest[: rest.rindex(") ->")]
    arguments = []
    for part in re.sub(r"\([^()]*\)", "", inner).split(","):
        part = part.split("=")[0].strip()
        if part in ("", "*", "..."):
            continue
        kind, _, argument = part.rpartition(" ")
        base = re.match(r"\w+", kind)
        if base is None:
            continue
        printed = TYPES_AS_PRINTED.get(base.group(), base.group())
        for suffix in re.findall(r"\[\d*\]|\?", kind):
            printed = ("Optional[%s]" if suffix == "?" else "List[%s]") % printed
        arguments.append((argument, printed))
    return name, tuple(arguments)


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
    results = {as_text(schema) for schema in torch._C._jit_get_custom_class_schemas()}
    return section("torch._C._jit_get_custom_class_schemas(). " + PRINTED, sorted(results), only_cpu(torch, "classes"))


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
    """``{name: [source of each overload]}`` for those names whose TorchScript source is in a library."""
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
    why = only_cpu(torch, "kernels")
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
    """Return the keys with a kernel, by their names ("Math", "CompositeImplicitAutograd"...); None if not in the dispatcher."""
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
            raise ValueError("cannot parse this line of native_functions.yaml: " + line)
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
            {"allowed": [], "blocked_modules": [], "default": None, "opcodes": [], "answers": {}, "safe_globals": []},
            "torch.load of this release has no weights_only.",
        )
    import torch._weights_only_unpickler as unpickler

    blocked = getattr(unpickler, "_blocklisted_modules", None)
    functions = ("add_safe_globals", "clear_safe_globals", "get_safe_globals", "get_unsafe_globals_in_checkpoint", "safe_globals")
    entries = {
        "allowed": sorted(str(name) for name in unpickler._get_allowed_globals()),
        "answers": {},
        "blocked_modules": sorted(blocked or ()),
        "default": default_of_weights_only(torch),
        "opcodes": sorted(opcode.name for opcode in pickletools.opcodes if takes_opcode(unpickler, opcode.code.encode("latin-1"))),
        "safe_globals": [name for name in functions if hasattr(torch.serialization, name)],
    }
    for name, pickled in sorted(weights_only_questions(torch).items()):
        try:
            entries["answers"][name] = in_fork(ask_weights_only, torch, name, pickled)
        except Died as death:
            entries["answers"][name] = "crashed: %s" % death
    with Workplace():
        for name, save in (("load-tar", save_tar), ("load-torchscript", lambda torch, path: torch.jit.save(program(torch, "add"), path))):
            in_fork(save, torch, name + ".pt")
            answer = attempt_load(lambda path: torch.load(path, weights_only=True), name + ".pt")
            entries["answers"][name] = answer.replace("loads", "takes: the file")
    return section(
        "torch._weights_only_unpickler, run: the names of _get_allowed_globals() and _blocklisted_modules; an opcode is taken if a "
        "pickle that begins with it is not refused as an unsupported operand; the default by loading an object that is not allowed "
        "without naming weights_only; each answer by unpickling a few bytes; the functions of torch.serialization for safe globals.",
        entries,
        "This release exposes no list of blocked modules; nothing but its allowlist is taken there."
        if blocked is None
        else None,
    )


def takes_opcode(unpickler, code):
    import io

    try:
        unpickler.load(io.BytesIO(b"\x80\x02" + code + b"\0" * 8))
    except Exception as error:
        return not str(error).startswith("Unsupported operand %d" % code[0])
    return True


class Mine:
    """A class that the user allows; module-level, so that a pickle can name it."""

    class Inner:
        """A nested class."""


class MyList(list):
    """A list that the user allows."""


class MyDict(dict):
    """A dict that the user allows."""


ORDERED = b"ccollections\nOrderedDict\n"
MINE = "safe-"
"""Prefix of questions asked after the user allowed the globals that the question names."""


def weights_only_questions(torch):
    """Return ``{name: pickle without the first two and the last byte}``; the answer is the behavior of the release's own unpickler."""
    ordered = ORDERED + b")R"
    counter = b"ccollections\nCounter\n)R"
    parameter = b"ctorch.nn.parameter\nParameter\n"
    tensor = b"ctorch\nFloatTensor\n)R"
    storage = b"(X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x01tQ"
    mine, inner, my_list, my_dict = (
        b"c%s\n%s\n" % (Mine.__module__.encode("ascii"), name) for name in (b"Mine", b"Mine.Inner", b"MyList", b"MyDict")
    )
    questions = {
        "global-python2-name": b"c__builtin__\nset\n",
        "global-python2-module": b"ccopy_reg\nencode\n",
        "global-builtins-set": b"cbuiltins\nset\n",
        "global-blocked-module": b"cos\nsystem\n",
        "global-unknown": b"cfractions\nFraction\n",
        "global-nested-name": b"ctorch\nnn.Parameter\n",
        "reduce-ordered-dict": ordered,
        "reduce-of-a-type-not-allowed": b"ctorch\nfloat32\n)R",
        "newobj-ordered-dict": ORDERED + b")\x81",
        "newobj-parameter": parameter + b")\x81",
        "newobj-tensor": b"ctorch\nTensor\n)\x81",
        "newobj-size": b"ctorch\nSize\n)\x81",
        "newobj-function": b"ctorch._utils\n_rebuild_tensor_v2\n)\x81",
        "build-tensor": b"ctorch\nTensor\n)R(tb",
        "build-legacy-tensor": tensor + b"(tb",
        "build-parameter": parameter + b")\x81(tb",
        "build-ordered-dict": ordered + b"}b",
        "build-counter": counter + b"}b",
        "build-dict": b"}}b",
        "build-list": b"]}b",
        "append-list": b"]Na",
        "append-tuple": b")Na",
        "append-set": b"\x8fNa",
        "append-ordered-dict": ordered + b"Na",
        "appends-list": b"](Ne",
        "appends-tuple": b")(Ne",
        "setitem-dict": b"}K\x01Ns",
        "setitem-ordered-dict": ordered + b"K\x01Ns",
        "setitem-counter": counter + b"K\x01K\x02s",
        "setitem-list": b"]Na" + b"K\x00K\x07s",
        "setitem-tensor": tensor + b"K\x01Ns",
        "setitems-dict": b"}(K\x01Nu",
        "setitems-list": b"]Na" + b"(K\x00K\x07u",
        "persistent-storage": storage,
        "persistent-storage-bytes": b"(U\x07storage" + storage[13:],
        "persistent-module": b"(X\x06\0\0\0moduleNNNtQ",
        "persistent-empty-tuple": b")Q",
        "persistent-int": b"K\x01Q",
        "persistent-text": b"X\x01\0\0\x000Q",
        "persistent-none": b"NQ",
        "memo-missing": b"h\x05",
        "bytes-short": b"U\x01a",
        "bytes-short-not-ascii": b"U\x01\xff",
        "surrogate": b"X\x03\0\0\0\xed\xa0\x80",
        "long-negative": b"\x8a\x01\xff",
    }
    if hasattr(torch.serialization, "add_safe_globals"):
        questions.update(
            {
                MINE + "global": mine,
                MINE + "reduce": mine + b")R",
                MINE + "newobj": mine + b")\x81",
                MINE + "build": mine + b")\x81}X\x01\0\0\0aK\x01sb",
                MINE + "setitem": mine + b")\x81K\x01Ns",
                MINE + "setitem-dict": my_dict + b")\x81K\x01Ns",
                MINE + "append": mine + b")\x81Na",
                MINE + "append-list": my_list + b")\x81Na",
                MINE + "global-nested": inner,
                MINE + "global-nested-without-outer": inner.replace(b"Mine.Inner", b"Inner"),
                MINE + "global-blocked-module": b"cos\nsystem\n",
            }
        )
    questions["protocol-4-global-python2-module"] = b"\x80\x04" + questions["global-python2-module"]
    for protocol in range(6):
        questions["protocol-%d" % protocol] = b"\x80" + bytes([protocol]) + b"N"
    return questions


def ask_weights_only(torch, name, pickled):
    """Return the unpickled value in one line, as its type and text, or the error."""
    import io
    import os
    import warnings

    import torch._weights_only_unpickler as unpickler

    if name.startswith(MINE):
        torch.serialization.add_safe_globals([os.system] if name.endswith("blocked-module") else [Mine, Mine.Inner, MyList, MyDict])
    start = b"" if name.startswith("protocol-") else b"\x80\x02"
    machine = unpickler.Unpickler(io.BytesIO(start + pickled + b"."), encoding="utf-8")
    machine.persistent_load = lambda pid: "persistent"
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            value = machine.load()
        except Exception as error:
            message = re.sub(r"0x[0-9a-f]+", "0x", first_line(error))
            return "refused: %s: %s" % (type(error).__name__, message)
    kind = value if isinstance(value, type) else type(value)
    answer = "takes: %s.%s" % (kind.__module__.replace(Mine.__module__, "user"), kind.__name__)
    told = [item for item in warned if "protocol" in str(item.message)]
    return answer + (", warns" if told else "")


def save_tar(torch, path):
    """Save an empty dict in the archive format of torch 0.1."""
    import io
    import pickle
    import tarfile

    with tarfile.open(path, "w") as archive:
        for name, value in (("sys_info", {}), ("pickle", {}), ("tensors", 0), ("storages", 0)):
            data = pickle.dumps(value, protocol=2)
            data += pickle.dumps([], protocol=2) if name == "storages" else b""  # no views of storages
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


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
# Versions that the loaders accept, determined by trial


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
        return "refused: " + without_places_in_source(first_line(error))[:240]
    return "loads"


def without_places_in_source(text):
    """Return a C++ message without the line numbers, which change with every release."""
    return re.sub(r'(\w+\.(?:cpp|cc|h)"?):\d+', r"\1", text)


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
    """``(start, end, number)`` of the version number in a bytecode.pkl; start == end and None if it has none."""
    operations = list(pickletools.genops(data))
    at = 2 if operations[1][0].name == "MARK" else 1
    operation, number, start = operations[at]
    if operation.name in ("BININT", "BININT1", "BININT2"):
        return start, operations[at + 1][2], number
    return start, start, None


def with_bytecode(data, version):
    """Return the bytecode.pkl with another version number or without one; its tuple then has one element more or less."""
    start, end, number = bytecode_number(data)
    tuples = [at for operation, _, at in pickletools.genops(data) if operation.name in ("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3")]
    change = (version is not None) - (number is not None)
    outermost = data[tuples[-1]]
    if change and outermost != ord("t"):
        data = data[: tuples[-1]] + bytes([outermost + change]) + data[tuples[-1] + 1 :]
    return data[:start] + (b"" if version is None else b"K" + bytes([version])) + data[end:]


def export_schema(torch):
    """Return the schema version of torch.export: [major, minor], or a single number; None if there is no torch.export."""
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
    """Call torch.export.load; if it logs the cause and raises an error without one, the log becomes part of the error."""
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
            entries["torch_save_members"] = [re.sub(r"^(data|tensors)/\d+$", r"\1/*", name) for name in names]
        entries["torch_load_knows_storages_by_name_alone"] = in_fork(loads_storage_of_no_module, torch)
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


def loads_storage_of_no_module(torch):
    """Whether torch.load takes a storage class whose module does not exist."""
    import pickle

    with open("stream.pt", "wb") as stream:
        for head in (torch.serialization.MAGIC_NUMBER, torch.serialization.PROTOCOL_VERSION, {}):
            pickle.dump(head, stream, protocol=2)
        stream.write(b"\x80\x02cno.such.module\nFloatStorage\n.")
        pickle.dump([], stream, protocol=2)
    keywords = {"weights_only": False} if "weights_only" in inspect.signature(torch.load).parameters else {}
    try:
        torch.load("stream.pt", **keywords)
    except ImportError:
        return False
    return True


def file_format_of_program(torch, name):
    torch.jit.save(program(torch, name), name + ".pt")
    return version_record(name + ".pt")


# ---------------------------------------------------------------------------------------------------------------------
# What a pickle can name

LEFT_OUT = (
    "torch.testing",
    "torch.utils.benchmark",
    "torch.utils.bottleneck",
    "torch.utils.tensorboard",
    "torch.utils.hipify",
    "torch.utils.model_dump",
    "torch.utils.data.datapipes.gen_pyi",
    "torch.for_onnx",
    "torch.contrib",
    "torch.onnx",
    "torch._inductor",
    "torch._dynamo",
    "torch._functorch",
    "torch._decomp",
    "torch._refs",
    "torch._prims",
    "torch._lazy",
    "torch._numpy",
    "torch._strobelight",
    "torch._native",
    "torch._vendor",
    "torch.lib",
    "torch.bin",
    "torch.distributed.elastic",
    "torch.distributed.launch",
    "torch.distributed.run",
    "torch.distributed.pipelining",
    "torch.distributed._tools",
    "torch.fx.experimental",
    "torch.fx.passes",
    "torch.jit._decompositions",
    "torch.utils._sympy",
    "torch.utils.viz",
    "torch.ao.pruning._experimental",
)
"""Packages that are not searched: tests, compilers and command-line tools. A pickle could also name their contents."""


def global_names(torch):
    """``{module: [name...]}``: what a GLOBAL opcode can resolve; and the modules that could not be imported."""
    import importlib

    result, failed = {}, {}
    with Workplace() as folder:
        tempfile.tempdir = folder  # torch.distributed.nn writes modules into its own folder
        for name in module_names(torch):
            try:
                importlib.import_module(name)
            except BaseException as error:  # a module that exits the process is also listed
                failed[name] = "%s: %s" % (type(error).__name__, first_line(error))
        tempfile.tempdir = None
    for name, module in sorted(sys.modules.items()):
        if in_torch(name) and not left_out(name) and module is not None:
            names = [attribute for attribute, value in list(vars(module).items()) if is_named(value)]
            if names:
                result[name] = sorted(names)
    return section(
        "Every module below torch that the package carries or that importing them made, except what is listed as left out: "
        "imported; its attributes that are classes, functions, dtypes, layouts, memory formats or quantization schemes of torch.",
        {"names": result, "not_imported": failed, "left_out": sorted(LEFT_OUT)},
        "Packages that are left out, modules that could not be imported here (with the reason), names inside classes, and names "
        "that a module makes only when they are asked for.",
    )


def in_torch(name):
    return name == "torch" or name.startswith("torch.")


def left_out(name):
    return any(name == package or name.startswith(package + ".") for package in LEFT_OUT) or name.endswith(".__main__")


def module_names(torch):
    """Return the modules in the package's folder, from their files."""
    root = os.path.dirname(os.path.abspath(torch.__file__))
    names = set()
    for folder, folders, files in os.walk(root):
        relative = os.path.relpath(folder, os.path.dirname(root)).replace(os.sep, ".")
        if left_out(relative) or "__init__.py" not in files:
            folders[:] = []
            continue
        names.add(relative)
        names.update(relative + "." + name[:-3] for name in files if name.endswith(".py") and name != "__init__.py")
    return sorted(name for name in names if not left_out(name))


def is_named(value):
    """Whether an attribute of a module is an object of torch that a pickle can reference by that name."""
    import torch

    constants = tuple(getattr(torch, name) for name in ("dtype", "layout", "memory_format", "qscheme") if hasattr(torch, name))
    if isinstance(value, constants):
        return True
    home = getattr(value, "__module__", None)
    if isinstance(value, type) or type(value).__name__ == "function":
        return isinstance(home, str) and in_torch(home)
    if type(value).__name__ in ("builtin_function_or_method", "builtin_method", "instancemethod"):
        if isinstance(home, str):
            return in_torch(home)
        owner = getattr(value, "__self__", None)
        if owner is None:  # a static method of a C type, as torch.add is up to 1.11; those of the standard library have a module name
            return True
        return in_torch(getattr(owner if isinstance(owner, type) else type(owner), "__module__", ""))
    return False


def renamed_modules(torch):
    """Return the modules that torch.load looks up under another name."""
    import ast

    with open(os.path.join(os.path.dirname(torch.__file__), "serialization.py"), "rb") as stream:
        tree = ast.parse(stream.read())
    renamed = {}
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        if any(isinstance(target, ast.Name) and target.id == "load_module_mapping" for target in targets):
            renamed = ast.literal_eval(node.value)
    return section("The table load_module_mapping in the source of torch/serialization.py; empty where it has none.", renamed)


# ---------------------------------------------------------------------------------------------------------------------


# ---------------------------------------------------------------------------------------------------------------------
# 16-bit floats on the CPU

ONE = """
abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh ceil celu clone conj contiguous cos cosh
deg2rad detach digamma elu erf erfc erfinv exp exp2 expm1 fix flatten floor frac gelu hardshrink hardsigmoid hardswish hardtanh i0 isfinite isinf
isnan isneginf isposinf isreal leaky_relu lgamma log log10 log1p log2 log_sigmoid logical_not logit mish nan_to_num neg negative nonzero ones_like
positive rad2deg ravel reciprocal relu relu6 round rsqrt selu sgn sigmoid sign signbit silu sin sinc sinh softplus softshrink special_digamma
special_entr special_erf special_erfc special_erfinv special_exp2 special_expit special_expm1 special_gammaln special_i0 special_log1p special_logit
special_psi special_sinc sqrt square t tan tanh trace tril triu trunc zeros_like all any amax amin aminmax argmax argmin argsort count_nonzero diag
diagflat fliplr flipud histc max mean median min msort nanmean nanmedian nansum norm nuclear_norm prod sort std std_mean sum unique_consecutive
_unique _unique2 var var_mean bernoulli poisson alias pdist
""".split()
IN_PLACE = """
abs absolute acos acosh asin asinh atan atanh ceil celu cos cosh deg2rad digamma elu erf erfc erfinv exp exp2 expm1 fix floor frac hardsigmoid
hardswish hardtanh i0 leaky_relu lgamma log log10 log1p log2 logical_not logit mish nan_to_num neg negative rad2deg reciprocal relu relu6 round rsqrt
selu sgn sigmoid sign silu sin sinc sinh sqrt square tan tanh tril triu trunc zero uniform normal exponential random log_normal cauchy
""".split()
TWO = """
add sub mul div true_divide floor_divide remainder fmod pow atan2 arctan2 eq ne lt le gt ge max min maximum minimum fmax fmin logical_and logical_or
logical_xor hypot copysign nextafter logaddexp logaddexp2 heaviside xlogy special_xlogy special_xlog1py ldexp float_power subtract multiply divide
greater greater_equal less less_equal not_equal rsub isclose allclose equal dist type_as mse_loss l1_loss smooth_l1_loss huber_loss soft_margin_loss
binary_cross_entropy binary_cross_entropy_with_logits kl_div cosine_similarity pairwise_distance cdist hinge_embedding_loss kron
multilabel_soft_margin_loss cross_entropy_loss inner
""".split()
OTHERS = """
sum(m, [1])|mean(m, [1])|prod(m, 1)|var(m, [1])|std(m, [1])|max(m, 1)|min(m, 1)|median(m, 1)|nanmedian(m, 1)|mode(m, 1)|kthvalue(m, 1, 1)
topk(m, 2)|topk(m, 2, 1)|sort(m, 1)|argsort(m, 1)|argmax(m, 1)|argmin(m, 1)|amax(m, [1])|amin(m, [1])|all(m, 1)|any(m, 1)|norm(m, 2)|norm(m, 2, [1])
norm(m, 1, [1])|logsumexp(m, [1])|softmax(m, 1)|_softmax(m, 1, False)|log_softmax(m, 1)|_log_softmax(m, 1, False)|cumsum(m, 1)|cumprod(m, 1)
cummax(m, 1)|cummin(m, 1)|logcumsumexp(m, 1)|nansum(m, [1])|nanmean(m, [1])|quantile(m, 0.5)|nanquantile(m, 0.5)|softmin(m, 1)|count_nonzero(m, 1)
sum(a)|mean(a)|max(a)|relu(a)|exp(a)|sum(v)|max(v)|sort(v)|cumsum(v, 0)|norm(v)|softmax(v, 0)|log_softmax(v, 0)|diag(v)|triu(b)|tril(b)
linalg_vector_norm(m)|linalg_norm(m)|linalg_matrix_norm(m)|renorm(m, 2, 0, 1.0)|diff(m)|diagonal(m)|diag_embed(m)|trace(s)
add(m, 2)|sub(m, 2)|mul(m, 2)|div(m, 2)|add(m, 0.5)|sub(m, 0.5)|mul(m, 0.5)|div(m, 0.5)|pow(m, 2)|pow(m, 0.5)|pow(2, m)|pow(m, 3.5)|remainder(m, 2)|remainder(m, 0.5)|fmod(m, 2)|fmod(m, 0.5)
floor_divide(m, 2)|true_divide(m, 2)|rsub(m, 1)|eq(m, 1)|ne(m, 1)|lt(m, 1)|le(m, 1)|gt(m, 1)|ge(m, 1)|float_power(m, 2)|add(a, a)|mul(a, a)|add(m, a)|mul(m, a)
div(m, n, rounding_mode="floor")|div(m, n, rounding_mode="trunc")|div(m, 2, rounding_mode="floor")|round(m, decimals=1)|add(m, n, alpha=2)|clamp(m, 0, 1)|clamp(m, 0.1)|clamp(m, n, m)|clamp_min(m, 0.1)|clamp_max(m, 0.1)|clip(m, 0, 1)
add_(m, n)|sub_(m, n)|mul_(m, n)|div_(m, n)|pow_(m, 2)|remainder_(m, 2)|fmod_(m, 2)|eq_(m, n)|lt_(m, n)|floor_divide_(m, n)|atan2_(m, n)|copy_(m, n)|add_(m, 1)|mul_(m, 2)|div_(m, 2)|fill_(m, 1)|lerp_(m, n, 0.5)|clamp_(m, 0, 1)|clamp_min_(m, 0)|clamp_max_(m, 1)
threshold(m, 0.1, 0)|threshold_(m, 0.1, 0)|prelu(m, a)|prelu(m, v)|rrelu(m)|lerp(m, n, 0.5)|lerp(m, n, m)|addcmul(m, n, m)|addcdiv(m, n, m)|polygamma(1, m)|mvlgamma(m, 1)|special_multigammaln(m, 1)
glu(m, 0)|dropout(m, 0.5, True)|dropout(m, 0.5, False)|feature_dropout(b, 0.5, True)|alpha_dropout(m, 0.5, True)|native_dropout(m, 0.5, True)
mm(m, p)|matmul(m, p)|matmul(v, w)|matmul(m, v)|matmul(v, p)|matmul(b, d)|matmul(p3, d)|bmm(b, d)|mv(m, v)|dot(v, w)|vdot(v, w)|ger(v, w)|outer(v, w)|addmm(s, p, m)|addmv(v, s, w)|addr(s, v, w)|baddbmm(c, b, d)|addbmm(s, b, d)|chain_matmul([m, p])
linalg_multi_dot([m, p])|linear(m, s)|linear(m, s, v)|linear(b3, s, v)|bilinear(m, n, w3, u)|einsum("ij,jk->ik", [m, p])|frobenius_norm(m, [1])|norm(m, 2, [1], True)|inner(v, w)|cross(m, n, 1)|cross(m, n)|linalg_cross(m, n)
inverse(s)|det(s)|logdet(s)|slogdet(s)|cholesky(s)|linalg_cholesky(s)|linalg_inv(s)|linalg_det(s)|linalg_slogdet(s)|linalg_solve(s, p)|linalg_qr(m)|linalg_svd(m)|linalg_eigh(s)|linalg_eigvalsh(s)|linalg_pinv(m)|linalg_matrix_power(s, 2)|matrix_power(s, 2)|pinverse(m)|qr(m)|svd(m)|symeig(s, True)|solve(p, s)|triangular_solve(p, s)|svd(s)|linalg_matrix_power(s, -1)
conv1d(l, g)|conv1d(l, g, u)|conv2d(i, f)|conv2d(i, f, u)|conv3d(o, z)|conv3d(o, z, u)|conv_transpose1d(l, g)|conv_transpose2d(i, f)|conv_transpose3d(o, z)|conv_tbc(b, d4, w4)|conv2d(i, f1, u, [1, 1], [0, 0], [1, 1], 2)|conv2d(i, f, u, [1, 1], [0, 0], [2, 2])
max_pool1d(l, [2])|max_pool2d(i, [2, 2])|max_pool3d(o, [2, 2, 2])|max_pool1d_with_indices(l, [2])|max_pool2d_with_indices(i, [2, 2])|max_pool3d_with_indices(o, [2, 2, 2])|avg_pool1d(l, [2])|avg_pool2d(i, [2, 2])|avg_pool3d(o, [2, 2, 2])|adaptive_avg_pool1d(l, [2])|adaptive_avg_pool2d(i, [2, 2])|adaptive_avg_pool2d(i, [1, 1])|adaptive_avg_pool3d(o, [2, 2, 2])|adaptive_max_pool1d(l, [2])|adaptive_max_pool2d(i, [2, 2])|adaptive_max_pool3d(o, [2, 2, 2])|_adaptive_avg_pool2d(i, [2, 2])
batch_norm(i, u, u, u, u, False, 0.1, 1e-5, False)|batch_norm(i, u, u, u, u, True, 0.1, 1e-5, False)|batch_norm(i, None, None, u, u, False, 0.1, 1e-5, False)|batch_norm(m, v, v, v, v, False, 0.1, 1e-5, False)|batch_norm(l, u, u, u, u, False, 0.1, 1e-5, False)|batch_norm(i, None, None, None, None, True, 0.1, 1e-5, False)|instance_norm(i, u, u, None, None, True, 0.1, 1e-5, False)|native_batch_norm(i, u, u, u, u, False, 0.1, 1e-5)
layer_norm(m, [3])|layer_norm(m, [3], v)|layer_norm(m, [3], v, w)|layer_norm(b, [4])|native_layer_norm(m, [3], v, w, 1e-5)|group_norm(i, 2)|group_norm(i, 2, u, u)|rms_norm(m, [3])|rms_norm(m, [3], v)|local_response_norm(i, 2)
upsample_nearest1d(l, [4])|upsample_nearest2d(i, [8, 8])|upsample_nearest3d(o, [8, 8, 8])|upsample_linear1d(l, [4], False)|upsample_bilinear2d(i, [8, 8], False)|upsample_bicubic2d(i, [8, 8], False)|upsample_trilinear3d(o, [8, 8, 8], False)|upsample_nearest2d(i, None, [2.0, 2.0])|upsample_bilinear2d(i, None, False, [2.0, 2.0])|upsample_nearest1d(l, None, [2.0])|_upsample_bilinear2d_aa(i, [8, 8], False)|_upsample_bicubic2d_aa(i, [8, 8], False)|_upsample_nearest_exact1d(l, [4])|_upsample_nearest_exact2d(i, [8, 8])|_upsample_nearest_exact3d(o, [8, 8, 8])
reflection_pad1d(l, [1, 1])|reflection_pad2d(i, [1, 1, 1, 1])|reflection_pad3d(o, [1, 1, 1, 1, 1, 1])|replication_pad1d(l, [1, 1])|replication_pad2d(i, [1, 1, 1, 1])|replication_pad3d(o, [1, 1, 1, 1, 1, 1])|constant_pad_nd(m, [1, 1], 0)|pad(m, [1, 1])|pad(i, [1, 1, 1, 1], "reflect")|grid_sampler(i, y, 0, 0, False)|grid_sampler_2d(i, y, 0, 0, False)|affine_grid_generator(q, [2, 1, 2, 2], False)
pixel_shuffle(i4, 2)|pixel_unshuffle(i, 2)|channel_shuffle(i, 2)|im2col(i, [2, 2], [1, 1], [0, 0], [1, 1])|unfold(m, 1, 2, 1)|col2im(e8, [4, 4], [2, 2], [1, 1], [0, 0], [1, 1])
embedding(m, k)|embedding_bag(m, k, k)|index_select(m, 0, k)|gather(m, 1, t)|take(m, k)|masked_select(m, h)|masked_fill(m, h, 1)|masked_fill(m, h, a)|masked_scatter(m, h, n)|where(h, m, n)|index(m, [k])|index_put(m, [k], m)|index_put(m, [k], m, True)|index_put_(m, [k], n)|index_add(m, 0, k, n)|index_copy(m, 0, k, n)|index_fill(m, 0, k, 1)|scatter(m, 1, t, p2)|scatter(m, 1, t, 1)|scatter_add(m, 1, t, p2)|scatter_reduce(m, 1, t, p2, "sum")|scatter_reduce(m, 1, t, p2, "amax")|take_along_dim(m, t, 1)|put_(m, t, p2)|index_add_(m, 0, k, n)|index_fill_(m, 0, k, 1)|scatter_(m, 1, t, p2)|scatter_add_(m, 1, t, p2)|masked_fill_(m, h, 1)|masked_scatter_(m, h, n)|index_copy_(m, 0, k, n)
cat([m, n])|stack([m, n])|flip(m, [0])|roll(m, [1])|rot90(m)|repeat(m, [2, 1])|repeat_interleave(m, 2)|tile(m, [2])|narrow(m, 0, 0, 1)|reshape(m, [6])|transpose(m, 0, 1)|permute(m, [1, 0])|expand(a, [2])|squeeze(m)|unsqueeze(m, 0)|select(m, 0, 0)|slice(m, 0, 0, 1)|split(m, 1)|chunk(m, 2)|unbind(m)|hstack([m, n])|vstack([m, n])|dstack([m, n])|block_diag([m, n])|cartesian_prod([v, w])|combinations(v)|meshgrid([v, w])|fill_diagonal_(s, 1)
bucketize(m, v)|searchsorted(v, m)|unique_dim(m, 0)|multinomial(m, 2)|cov(m)|bincount(k, u)|corrcoef(m)|trapz(m)|logspace(0, 1, 3)|polar(m, n)|complex(m, n)|view_as_complex(p)|fft_fft(m)|fft_rfft(m)|frexp(m)|linspace(a, a, 3)
nll_loss(m, k)|nll_loss2d(i, t3)|nll_loss_nd(m, k)|cross_entropy_loss(m, k)|multi_margin_loss(m, k)|margin_ranking_loss(v, w, v)|triplet_margin_loss(m, n, m)|cosine_embedding_loss(m, n, u)|poisson_nll_loss(m, n, True, False, 1e-8, 1)
scaled_dot_product_attention(b, b, b)|_scaled_dot_product_attention_math(b, b, b)|gru_cell(m, p2, w62, w6, r6, r6)|lstm_cell(m, [p2, p2], w83, w82, r8, r8)|rnn_tanh_cell(m, p2, w23, s2, u, u)|rnn_relu_cell(m, p2, w23, s2, u, u)|histc(m, 3)
full_like(m, 1)|to(m, 6)|_cast_Float(m, False)|item(a)|tolist(m)|is_nonzero(a)|_local_scalar_dense(a)|Float(a)|normal_(m, 0, 1)|geometric_(m, 0.5)|bernoulli_(m, 0.5)|uniform_(m)|rand_like(m)|randn_like(m)
"""  # of programs, as written in archives
SHAPES = {
    "a": (), "v": (3,), "w": (3,), "u": (2,), "m": (2, 3), "n": (2, 3), "s": (3, 3), "p": (3, 2), "p2": (2, 2), "s2": (2, 2), "b": (2, 3, 4), "d": (2, 4, 3), "b3": (2, 2, 3),
    "c": (2, 3, 3), "p3": (3, 4), "w3": (2, 3, 3), "l": (1, 2, 6), "g": (2, 2, 3), "i": (1, 2, 4, 4), "i4": (1, 4, 2, 2), "f": (2, 2, 2, 2), "f1": (2, 1, 2, 2), "o": (1, 2, 4, 4, 4), "z": (2, 2, 2, 2, 2),
    "y": (1, 2, 2, 2), "y2": (1, 2, 2), "y3": (1, 2, 3), "v1": (1,), "q": (2, 2, 3), "e8": (1, 8, 9), "d4": (2, 4, 3), "w4": (3,), "w62": (6, 3), "w6": (6, 2), "r6": (6,), "w83": (8, 3), "w82": (8, 2), "r8": (8,), "w23": (2, 3),
}  # fmt: skip
WHOLE = {"k": [0, 1], "t": [[0, 1], [1, 0]], "t3": [[[0] * 4] * 4], "t4": [[0, 1, -1], [0, 1, -1]], "t5": [[[[0, 2], [8, 10]]] * 2]}
PIVOTS = {"r": [1, 2, 3]}
HALVES = ("float16", "bfloat16")


def halves_asked():
    """Return the calls as TorchScript expressions, in a fixed order."""
    asked = [part.strip() for line in OTHERS.strip().split("\n") for part in line.split("|")]
    asked += ["%s(m)" % name for name in ONE] + ["%s_(m)" % name for name in IN_PLACE] + ["%s(m, n)" % name for name in TWO]
    return sorted(set(asked))


def halves_given(torch, dtype, empty):
    """Return all tensors that a question may name: floats of one dtype; the first size is 0 if ``empty``."""
    given = {}
    for name, shape in SHAPES.items():
        count = 1
        for size in shape:
            count *= size
        values = torch.tensor([0.25 + (step % 5) * 0.125 for step in range(count)]).reshape(shape)
        if shape == (3, 3):
            values = values + 2 * torch.eye(3)
        values = values.to(getattr(torch, dtype))
        given[name] = values.narrow(0, 0, 0) if empty and shape else values
    for name, values in WHOLE.items():
        given[name] = torch.tensor(values)
    for name, values in PIVOTS.items():
        given[name] = torch.tensor(values).int()
    mask = torch.tensor([[1, 0, 1], [0, 1, 0]])
    given["h"] = (mask > 0) if not empty else (mask > 0).narrow(0, 0, 0)
    return given


def halves_spelled(question):
    """Return the ways to spell a call in TorchScript; which ones a release supports depends on the operator."""
    heads = ("torch.", "torch.ops.aten.", "torch._C._nn.", "torch._C._linalg.", "torch._C._special.", "torch._C._fft.")
    spelled = [head + question for head in heads]
    method = re.match(r"(\w+)\((\w+)(?:, )?(.*)", question)
    return spelled + (["%s.%s(%s" % (method.group(2), method.group(1), method.group(3))] if method else [])


def halves_answer(torch, call, dtype, empty):
    """Return the outcome of a call: "computes", or the class and first line of the error; None if there are no such tensors."""
    try:
        given = halves_given(torch, dtype, empty)
    except (AttributeError, RuntimeError, TypeError):
        return None  # a release without this dtype
    names = sorted(given)
    code = "def f(%s):\n    return %s\n" % (", ".join(names), call)
    try:
        torch.jit.CompilationUnit(code).f(*[given[name] for name in names])
    except Exception as error:
        return "%s: %s" % (type(error).__name__, halves_said(error))
    return "computes"


def halves_said(error):
    """Return the line of an error about the call; the surrounding lines are source locations in the program."""
    lines = [line.strip() for line in str(error).split("\n") if line.strip()]
    message = next((line for line in lines if line.startswith("RuntimeError: ")), lines[0] if lines else "")
    message = re.sub(r" \((?:[^()]|\(\))* at [^()]*:\d+\)$", "", message)
    return message[len("RuntimeError: ") :] if message.startswith("RuntimeError: ") else message


def halves(torch):
    """Determine which operators support 16-bit floats on the CPU by calling each; only calls that work with float32 are tried."""

    def ask(asked):
        question, empty = asked
        for call in halves_spelled(question):
            if halves_answer(torch, call, "float32", empty) == "computes":
                return {dtype: halves_answer(torch, call, dtype, empty) for dtype in HALVES}
        return {}

    entries = {}
    asked = [(question, empty) for question in halves_asked() for empty in (False, True)]
    for (question, empty), told, died in map_in_forks(ask, asked):
        if died:
            told = dict.fromkeys(HALVES, "died: " + died)
        for dtype, answer in told.items():
            if answer is not None:
                entries.setdefault(question, {})[dtype + ("-empty" if empty else "")] = answer
    return section(
        "Each call was compiled as TorchScript and run with tensors of float16 and of bfloat16, and again with empty ones, where float32 computes.",
        entries,
    )


# ---------------------------------------------------------------------------------------------------------------------
# Other dtypes on the CPU

ASKED_BESIDES = """
igamma(m, n)|igammac(m, n)|special_gammainc(m, n)|special_gammaincc(m, n)|special_erfcx(m)|special_ndtri(m)|special_i0e(m)|special_i1(m)|special_i1e(m)
special_ndtr(m)|special_log_ndtr(m)|special_zeta(m, n)|log_sigmoid_forward(m)|_weight_norm(m, m)|norm_except_dim(m, 2, 0)|_safe_softmax(m, 1)
_prelu_kernel(m, n)|linalg_svdvals(m)|tensordot(m, p, [1], [0])|special_logsumexp(m, [1])|special_softmax(m, 1)|special_log_softmax(m, 1)
linalg_lstsq(m, s2)|linalg_lu_factor(s)|linalg_ldl_factor(s)|linalg_tensorinv(s, 1)|linalg_matrix_exp(s)|lu_solve(p, s, r)|gcd(m, n)|lcm(m, n)
bitwise_and(m, n)|bitwise_or(m, n)|bitwise_xor(m, n)|bitwise_not(m)|bitwise_and_(m, n)|bitwise_or_(m, n)|bitwise_xor_(m, n)|bitwise_not_(m)
__and__(m, n)|__or__(m, n)|__xor__(m, n)|__lshift__(m, n)|__rshift__(m, n)|__lshift__(m, 1)|__rshift__(m, 1)|bitwise_left_shift(m, n)
bitwise_right_shift(m, n)|logical_and_(m, n)|logical_or_(m, n)|logical_xor_(m, n)|_index_put_impl_(m, [k], n)|_s_where(h, m, n)|addcmul_(m, n, m)
addcdiv_(m, n, m)|addmm_(s, p, m)|addr_(s, v, w)|baddbmm_(c, b, d)|addbmm_(s, b, d)|addmv_(v, s, w)|nll_loss_forward(m, k, None, 1, -100)
unique_dim_consecutive(m, 0)|_adaptive_avg_pool3d(o, [2, 2, 2])|fft_ifft(m)|fft_fft2(m)|fft_fftn(m)|rsub(m, n)|digamma_(m)|lerp_(m, n, m)|polygamma_(m, 1)
_cat([m, n], 0)|_stack([m, n], 0)|concat([m, n])|concatenate([m, n])|column_stack([m, n])|row_stack([m, n])|cholesky_inverse(s)|cholesky_solve(p, s)|conj_physical(m)
fft_hfft(m)|fft_hfft2(m)|fft_hfftn(m)|fft_ifft2(m)|fft_ifftn(m)|fft_ihfft(m)|fft_ihfft2(m)|fft_ihfftn(m)|fft_irfft(m)|fft_irfft2(m)|fft_irfftn(m)|fft_rfft2(m)|fft_rfftn(m)
fractional_max_pool2d(i, [2, 2], [2, 2], y2)|fractional_max_pool3d(o, [2, 2, 2], [2, 2, 2], y3)|geqrf(m)|histogram(m, 3)|histogram(m, v)|index_reduce(m, 0, k, n, "prod")
isin(m, v)|isin(1, v)|isin(m, 1)|linalg_cholesky_ex(s)|linalg_cond(s)|linalg_eig(s)|linalg_eigvals(s)|linalg_householder_product(s, v)|linalg_inv_ex(s)|linalg_lu(s)
linalg_lu_factor_ex(s)|linalg_matmul(m, p)|linalg_matrix_rank(s)|linalg_matrix_rank(s, 0.1)|linalg_solve_ex(s, p)|linalg_solve_triangular(s, p, upper=True)|linalg_tensorsolve(s, v)|linalg_vecdot(m, n)
linalg_lu_solve(s, r, p)|lstsq(p, s)|lu_unpack(s, r)|multilabel_margin_loss(m, t4)|multilabel_margin_loss_forward(m, t4, 1)|nll_loss2d_forward(i, t3, None, 1, -100)|nonzero_static(m, size=2)
orgqr(s, v)|ormqr(s, v, s)|slow_conv3d(o, z, [2, 2, 2])|slow_conv_transpose2d(i, f, [2, 2])|slow_conv_transpose3d(o, z, [2, 2, 2])|thnn_conv2d(i, f, [2, 2])|special_airy_ai(m)
special_bessel_j0(m)|special_bessel_j1(m)|special_bessel_y0(m)|special_bessel_y1(m)|special_chebyshev_polynomial_t(m, n)|special_chebyshev_polynomial_u(m, n)|special_chebyshev_polynomial_v(m, n)
special_chebyshev_polynomial_w(m, n)|special_hermite_polynomial_h(m, n)|special_hermite_polynomial_he(m, n)|special_laguerre_polynomial_l(m, n)|special_legendre_polynomial_p(m, n)
special_modified_bessel_i0(m)|special_modified_bessel_i1(m)|special_modified_bessel_k0(m)|special_modified_bessel_k1(m)|special_polygamma(1, m)|special_round(m)|special_scaled_modified_bessel_k0(m)
special_scaled_modified_bessel_k1(m)|special_shifted_chebyshev_polynomial_t(m, n)|special_shifted_chebyshev_polynomial_u(m, n)|special_shifted_chebyshev_polynomial_v(m, n)
special_shifted_chebyshev_polynomial_w(m, n)|special_spherical_bessel_j0(m)|nll_loss_forward(m, k, v, 1, -100)|bucketize(0.5, v)|searchsorted(v, 0.5)|quantile(m, v1)|nanquantile(m, v1)
linalg_norm(m, 2.0)|linalg_norm(s, "fro")|linalg_norm(s, "nuc")|linalg_matrix_norm(s, "nuc")|nuclear_norm(s)|nuclear_norm(s, [0, 1])|frobenius_norm(m, [0, 1])|tensordot(m, p, [1], [0])
var(m)|std(m)|var(m, [1], True)|std(m, [1], True)|var_mean(m)|std_mean(m)|var_mean(m, [1])|std_mean(m, [1])|linalg_pinv(s, 0.1)|linalg_tensorinv(s, 1)|scatter(m, 1, t, p2, reduce="add")|scatter(m, 1, t, 2, reduce="add")
max_unpool2d(y, t5, [4, 4])|addcmul(m, n, m, value=2)|addcdiv(m, n, m, value=2)|smooth_l1_loss(m, n, 0)|mse_loss(m, n, 0)|soft_margin_loss(m, n, 0)|huber_loss(m, n, 0)|binary_cross_entropy(m, n, None, 0)
nll_loss(m, k, None, 0)|nll_loss2d(i, t3, None, 0)|multi_margin_loss(m, k, 1, 1.0, None, 0)|multilabel_margin_loss(m, t4, 0)|float_power(2, m)|fmod(m, a)|xlogy(m, 2)|xlogy(2, m)|special_xlog1py(m, 2)|special_xlog1py(2, m)|special_zeta(m, 2)
special_zeta(2, m)|pow(a, a)|remainder(2, m)|div(m, n, rounding_mode="floor")|addmm(s, p, m, beta=2, alpha=2)|take_along_dim(m, t)|hardtanh(m, -1, 1)|elu(m, 1)|celu(m, 1)|leaky_relu(m, 0.1)|logit(m, 0.1)|softplus(m, 1, 20)
bitwise_and(m, 1)|bitwise_or(m, 1)|bitwise_xor(m, 1)|bitwise_and(1, m)|bitwise_or(1, m)|bitwise_xor(1, m)|bitwise_left_shift(m, 1)|bitwise_right_shift(m, 1)|bitwise_left_shift(1, m)|bitwise_right_shift(1, m)
nan_to_num(m, 1.0)|hardshrink(m, 0.5)|softshrink(m, 0.5)|amax(m)|amin(m)|argmax(m)|argmin(m)|all(m)|any(m)|all(m, 1)|any(m, 1)|cumsum(m, 0)|diff(m, 1)|copysign(m, 1)|heaviside(m, n)|renorm(m, 2, 0, 1.0)
float_power_(m, n)|float_power_(m, 2)|cumsum_(m, 1)|cumprod_(m, 1)|copysign_(m, n)|copysign_(m, 1)|hypot_(m, n)|nextafter_(m, n)|ldexp_(m, n)|clip_(m, n, m)|clamp_(m, n, m)|eq_(m, 1)|ne_(m, 1)|lt_(m, 1)
scatter_reduce_(m, 1, t, p2, "amax")|scatter_reduce_(m, 1, t, p2, "mean")|scatter_reduce(m, 1, t, p2, "mean")|scatter_(m, 1, t, p2, reduce="add")|scatter_(m, 1, t, 1, reduce="add")|index_reduce(m, 0, k, n, "mean")
index_reduce(m, 0, k, n, "amax")|index_reduce_(m, 0, k, n, "prod")|index_reduce_(m, 0, k, n, "mean")|index_reduce_(m, 0, k, n, "amax")|masked_fill_(m, h, a)|set_(m, n)|is_set_to(m, n)|is_signed(m)|nonzero_numpy(m)|mish_(m)
dequantize(m)|embedding_renorm(m, k, 1.0, 2.0)|embedding_renorm_(m, k, 1.0, 2.0)|_conj(s)|gelu_(m)|hardtanh(m, 0, 1)|hardtanh_(m, 0, 1)|log1p_(m)|logaddexp2(m, a)|nansum(a)|roll(m, [1], [0])|native_dropout(m, 0.5, False)
sort(m, stable=True, dim=1)|argsort(m, stable=True, dim=1)|msort(m)|unfold_copy(m, 1, 2, 1)|_unsafe_view(m, [6])|lift_fresh_copy(m)|pad(l, [1, 1], "replicate")|pad(i, [1, 1, 1, 1], "replicate")|scatter_reduce(m, 1, t, p2, "amin")|scatter_reduce(m, 1, t, p2, "prod")|scatter_reduce_(m, 1, t, p2, "amin")|scatter_reduce_(m, 1, t, p2, "prod")|scatter_reduce_(m, 1, t, p2, "sum")|linalg_matrix_norm(s, "fro")|_pad_enum(l, [1, 1], 2)|_pad_enum(i, [1, 1, 1, 1], 2)
"""  # only for `dtypes` and `outs`, which also ask about 16-bit floats
FACTORIES = """
arange(5)|arange(0, 5)|arange(0.0, 5.0)|eye(3)|eye(2, 3)|linspace(0, 1, 3)|logspace(0, 1, 3)|range(0, 3)|zeros([2])|ones([2])|full([2], 1)|full([2], 1.5)|full([2], True)|empty([2])|bartlett_window(4)|blackman_window(4)
hamming_window(4)|hann_window(4)|kaiser_window(4)|bartlett_window(4, True)|blackman_window(4, True)|hamming_window(4, True)|hann_window(4, True)|kaiser_window(4, True)|hamming_window(4, True, 0.5)|hamming_window(4, True, 0.5, 0.5)
kaiser_window(4, True, 12.0)|tril_indices(2, 2)|triu_indices(2, 2)|rand([2])|randn([2])|randint(5, [2])|randint(0, 5, [2])|randperm(3)|normal(0.0, 1.0, [2])|fft_fftfreq(4)|fft_rfftfreq(4)|scalar_tensor(1)
"""  # without tensors: the dtype is an argument
HALF = {"bfloat16": "BFloat16", "float16": "Half"}
TAKEN = ("bool", "complex128", "complex64", "int16", "int32", "int64", "int8", "uint8")
CALLED = {
    "bool": "Bool", "complex128": "ComplexDouble", "complex64": "ComplexFloat", "int16": "Short", "int32": "Int", "int64": "Long", "int8": "Char",
    "uint8": "Byte",
}  # fmt: skip
EVERY = ("float32", "float64", "float16", "bfloat16") + TAKEN
TYPE = "{}"  # replaces the dtype's name in a message, so that equal answers for several dtypes can be merged


def dtypes_given(torch, dtype, empty=False):
    """Return all tensors that a question may name: ones of a dtype; the first size is 0 if ``empty``. None if there are no such tensors."""
    given = {}
    try:
        for name, shape in SHAPES.items():
            values = torch.ones(shape)
            if shape == (3, 3):
                values = values + 2 * torch.eye(3)
            given[name] = values.to(getattr(torch, dtype))
            given[name] = given[name].narrow(0, 0, 0) if empty and shape else given[name]
        if not (given["m"] == given["n"]).all():  # 1.5 has complex dtypes that it cannot compute with
            return None
    except (AttributeError, RuntimeError, TypeError):
        return None
    for name, values in WHOLE.items():
        given[name] = torch.tensor(values)
    for name, values in PIVOTS.items():
        given[name] = torch.tensor(values).int()
    mask = torch.tensor([[1, 0, 1], [0, 1, 0]]) > 0
    given["h"] = mask.narrow(0, 0, 0) if empty else mask
    return given


COMPILED = {}


def compiled(torch, code):
    """Return the compiled function of a source, cached because compiling takes longer than most calls."""
    if code not in COMPILED:
        COMPILED[code] = torch.jit.CompilationUnit(code).f
    return COMPILED[code]


def dtypes_answer(torch, call, dtype, given):
    """Return the outcome of a call with given tensors: "computes", or the error without the dtype's name."""
    names = sorted(set(re.findall(r"\w+", call)) & set(given))
    code = "def f(%s):\n    return %s\n" % (", ".join(names), call)
    try:
        compiled(torch, code)(*[given[name].clone() for name in names])
    except Exception as error:
        message = "%s: %s" % (type(error).__name__, halves_said(error))
        called = HALF.get(dtype) or CALLED.get(dtype)
        return re.sub(r"\b%s\b" % called, TYPE, message) if called else message
    return "computes"


def dtypes(torch):
    """Determine the dtypes that operators support on the CPU, with the calls of ``halves`` and more: each answer with its dtypes."""
    spelled = {}
    given = {(dtype, empty): dtypes_given(torch, dtype, empty) for dtype in EVERY for empty in (False, True)}

    def answer_to(call, dtype, empty):
        if call not in made_without_tensors:
            return dtypes_answer(torch, call, dtype, given[dtype, empty])
        return dtypes_answer(torch, "%s, dtype=torch.%s)" % (call[:-1], dtype), dtype, {})

    def ask(asked):
        question, dtype, empty = asked
        if given[dtype, empty] is None:
            return None
        signal.alarm(LONGEST_CALL_S)  # some calls never return
        control = "int32" if re.match("gcd|lcm|.*bitwise|.*shift|__|.*_indices", question) else "float32"
        if (question, empty) not in spelled:
            calls = halves_spelled(question)
            made_without_tensors.update(calls if question in factories else ())
            spelled[question, empty] = next((item for item in calls if answer_to(item, control, empty) == "computes"), None)
        call = spelled[question, empty]
        return None if call is None else answer_to(call, dtype, empty)

    made_without_tensors, factories = set(), questions(FACTORIES)
    besides = sorted(set(questions(ASKED_BESIDES)) - set(halves_asked()))
    asked = [(question, dtype, empty) for question in halves_asked() for dtype in TAKEN for empty in (False, True)]
    asked += [(question, dtype, empty) for question in besides for dtype in EVERY for empty in (False, True)]
    asked += [(question, dtype, False) for question in factories for dtype in EVERY]
    entries = {}
    for (question, dtype, empty), answer, died in map_in_forks(ask, asked):
        answer = "died: " + died if died else answer
        if answer is not None:
            entries.setdefault(question, {}).setdefault(answer.replace(" > ", " gt "), []).append(dtype + ("-empty" if empty else ""))
    return section(
        "Each call was compiled as TorchScript and run with tensors of ones of each dtype, and again with empty ones, or with the dtype named where it has "
        "no tensors, where float32 computes; what is of integers alone, where int32 does.",
        {question: {message: " ".join(kinds) for message, kinds in answers.items()} for question, answers in entries.items()},
    )


def questions(text):
    """Return the calls in a text, sorted."""
    return sorted({part.strip() for line in text.strip().split("\n") for part in line.split("|")})


# ---------------------------------------------------------------------------------------------------------------------
# Dtypes of out=

NO_DATA = "no data"


def outs_names(torch, question):
    """Return the names of the output tensors of an operator's out= forms, each set once, in schema order."""
    results = []
    for schema in torch._C._jit_get_schemas_for_operator("aten::" + question.partition("(")[0]):
        words = str(schema).partition(" ->")[0].partition(" *, ")[2]
        names = re.findall(r"(?:^|, )Tensor(?:\(\w!?\))? (\w+)(?=[,)])", words)
        if names and names not in results:
            results.append(names)
    return results


def outs_function(torch, spelled, names, given):
    """Return the call as a function of the question's tensors and of its output tensors."""
    code = "def f(%s):\n    %s\n    return 0\n"
    put = "".join(", %s=o%d" % (name, place) for place, name in enumerate(names))
    outs = ["o%d" % place for place in range(len(names))]
    call = "value = %s%s)" % (spelled[:-1], put)
    return compiled(torch, code % (", ".join(given + outs), call))


def outs_empty(torch, dtype):
    return torch.empty([0], dtype=getattr(torch, dtype))


def outs(torch):
    """Determine the out= dtypes that operators accept for each input dtype, with the calls of `dtypes` and more."""
    if not hasattr(torch._C, "_jit_get_schemas_for_operator"):
        return section("Not obtained.", {}, "This release does not say what operators write into.")
    given = {dtype: dtypes_given(torch, dtype) for dtype in EVERY}
    values = {}

    def results(spelled, names, dtype):
        """Return the result dtypes of the call without out=; None if it fails."""
        try:
            value = compiled(torch, "def f(%s):\n    return %s\n" % (", ".join(names), spelled))(*[given[dtype][name].clone() for name in names])
        except Exception:
            return None
        value = list(value) if isinstance(value, tuple) else [value]
        return [str(item.dtype)[len("torch.") :] for item in value if isinstance(item, torch.Tensor)]

    def taken(question, outs_of, dtype):
        """Return ``{place: dtypes}`` that the call accepts as outputs; None if no such call compiles or a dtype does not exist."""
        tensors = given["float32" if dtype == NO_DATA else dtype]
        if tensors is None:
            return None
        names = sorted(set(re.findall(r"\w+", question)) & set(tensors))
        if bool(names) == (dtype == NO_DATA):
            return None
        control = "int32" if re.match("gcd|lcm|.*bitwise|.*shift|__", question) else "float32"
        key = (question, tuple(outs_of))
        if key not in values:
            values[key] = None
            for spelled in halves_spelled(question):
                natural = results(spelled, names, control)
                if natural is None or len(natural) != len(outs_of):
                    continue
                try:
                    function = outs_function(torch, spelled, outs_of, names)
                    function(*([given[control][name].clone() for name in names] + [outs_empty(torch, result) for result in natural]))
                except Exception:
                    continue
                values[key] = spelled, function, natural
                break
        if values[key] is None:
            return None
        spelled, function, natural = values[key]

        def writes(kinds):
            try:
                function(*([tensors[name].clone() for name in names] + [outs_empty(torch, kind) for kind in kinds]))
            except Exception:
                return False
            return True

        if dtype != NO_DATA:
            plain = results(spelled, names, dtype)
            natural = plain or [dtype if result == control else result for result in natural]
            if plain and len(plain) > 1 and not writes(plain):
                return None  # with several outputs, it is unknown which one is refused
        matches = {}
        for place in range(len(outs_of)):
            taking = [
                other for other in EVERY if given[other] is not None and writes([other if at == place else result for at, result in enumerate(natural)])
            ]
            everything = len(taking) == sum(1 for item in given.values() if item)
            matches[outs_of[place]] = "any" if everything else " ".join(sorted(taking)) or "none"
        return matches

    def ask(asked):
        signal.alarm(LONGEST_CALL_S)
        return taken(*asked)

    every = sorted(set(halves_asked()) | set(questions(ASKED_BESIDES)) | set(questions(FACTORIES)))
    asked = [(question, names, dtype) for question in every for names in outs_names(torch, question) for dtype in EVERY + (NO_DATA,)]
    entries = {}
    for (question, names, dtype), answer, died in map_in_forks(ask, asked):
        for name, taking in ({} if died or answer is None else answer).items():
            entries.setdefault(question, {}).setdefault(name, {}).setdefault(taking, []).append(dtype)
    return section(
        "Each call was compiled as TorchScript with out= and run with tensors of ones of each dtype, and with empty tensors of each dtype to write into, "
        "one of them at a time; where it writes into tensors of the dtypes that it gives without.",
        {
            question: {name: {taking: " ".join(sorted(kinds)) for taking, kinds in answers.items()} for name, answers in told.items()}
            for question, told in entries.items()
        },
    )


SECTIONS = (
    schemas,
    imported,
    custom_classes,
    operator_versions,
    upgraders,
    kernels,
    native_functions,
    weights_only,
    global_names,
    renamed_modules,
    accepts,
    constants,
    halves,
    dtypes,
    outs,
)


def survey(torch):
    """Return all sections of this release, as plain JSON."""
    result = {}
    for ask in SECTIONS:
        try:
            result[ask.__name__] = in_fork(ask, torch, longest_s=LONGEST_SECTION_S)
        except Died as death:
            result[ask.__name__] = section("Not obtained.", {}, "The process that was asked died: %s." % death)
    return without_places(result, [site_packages(torch), os.getcwd()])


def without_places(result, places):
    """Return the result with its folders stripped from every text; raises if one remains."""
    text = json.dumps(result)
    for place in places:
        text = text.replace(json.dumps(place + os.sep)[1:-1], "")
    results = [place for place in places if len(place) > 1 and json.dumps(place)[1:-1] in text]
    if results:
        raise RuntimeError("the survey output contains a local path: " + ", ".join(results))
    return json.loads(text)
