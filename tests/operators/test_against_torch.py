"""A subset of `nox -s schemas`, and calls saved by a real release, compared with torch 2.13.0."""

from __future__ import annotations

import ast
import json
import subprocess
from collections import Counter
from typing import Any

import pytest

from tools.schemas import __main__ as command
from tools.schemas import pairs, real
from torch_compat.operators.compatibility import VARIABLE, CompatibilityResult, ProgramCall, serialized
from torch_compat.operators.schema import parse
from torch_compat.readers.environments import Environments

CODE = """
import importlib.util, io, json, sys, tempfile, zipfile
import torch

written = []
for number, expression in enumerate(json.loads(sys.argv[1])):
    with tempfile.NamedTemporaryFile("w", suffix=".py") as stream:
        stream.write("import torch\\nclass M(torch.nn.Module):\\n    def forward(self, x, y, z, n: int):\\n        return " + expression + "\\n")
        stream.flush()
        spec = importlib.util.spec_from_file_location("m%d" % number, stream.name)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        scripted = torch.jit.script(module.M())
    saved = io.BytesIO()
    torch.jit.save(scripted, saved)
    archive = zipfile.ZipFile(saved)
    (code,) = [name for name in archive.namelist() if "/code/" in name and name.endswith(".py")]
    (schema,) = {str(node.schema()) for node in scripted.graph.nodes() if node.kind().startswith("aten::")}
    written.append([schema, archive.read(code).decode()])
print(json.dumps(written))
"""

# Each as a program writes it; its values as the call has them.
CALLS: list[tuple[str, ProgramCall]] = [
    ("torch.add(x, y)", ProgramCall((VARIABLE, VARIABLE))),
    ("torch.add(x, y, alpha=1)", ProgramCall((VARIABLE, VARIABLE), {"alpha": 1})),
    ("torch.add(x, y, alpha=1.0)", ProgramCall((VARIABLE, VARIABLE), {"alpha": 1.0})),
    ("torch.add(x, y, alpha=n)", ProgramCall((VARIABLE, VARIABLE), {"alpha": VARIABLE})),
    ("torch.add(x, y, alpha=1, out=z)", ProgramCall((VARIABLE, VARIABLE), {"alpha": 1, "out": VARIABLE})),
    ("torch.add(x, y, alpha=2, out=z)", ProgramCall((VARIABLE, VARIABLE), {"alpha": 2, "out": VARIABLE})),
    ("torch.conv2d(x, y)", ProgramCall((VARIABLE, VARIABLE))),
    ("torch.conv2d(x, y, None)", ProgramCall((VARIABLE, VARIABLE, None))),
    ("torch.conv2d(x, y, None, [1, 1])", ProgramCall((VARIABLE, VARIABLE, None, VARIABLE))),
    ("torch.conv2d(x, y, None, 1)", ProgramCall((VARIABLE, VARIABLE, None, 1))),
    ("torch.conv2d(x, y, groups=2)", ProgramCall((VARIABLE, VARIABLE), {"groups": 2})),
    (
        "torch.conv2d(x, y, None, [1, 1], [0, 0], [1, 1], 1)",
        ProgramCall((VARIABLE, VARIABLE, None, VARIABLE, VARIABLE, VARIABLE, 1)),
    ),
    ("torch.linspace(0, 1, 5, dtype=None)", ProgramCall((0, 1, 5), {"dtype": None})),
    ("torch.linspace(0, 1, 5, dtype=torch.float)", ProgramCall((0, 1, 5), {"dtype": 6})),
    ("torch.linspace(0, 1, 5, device=torch.device('cpu'))", ProgramCall((0, 1, 5), {"device": VARIABLE})),
    ("torch.clamp(x, None, 1)", ProgramCall((VARIABLE, None, 1))),
    ("torch.clamp(x, min=0, max=None)", ProgramCall((VARIABLE,), {"min": 0, "max": None})),
    ("torch.cumsum(x, 0, dtype=None, out=z)", ProgramCall((VARIABLE, 0), {"dtype": None, "out": VARIABLE})),
    ("torch.cumsum(x, 0, dtype=torch.float, out=z)", ProgramCall((VARIABLE, 0), {"dtype": 6, "out": VARIABLE})),
    ("torch.roll(x, [1])", ProgramCall((VARIABLE, VARIABLE))),
    ("torch.roll(x, [1], [])", ProgramCall((VARIABLE, VARIABLE, VARIABLE))),
    ("torch.max_pool2d(x, [2, 2], ceil_mode=True)", ProgramCall((VARIABLE, VARIABLE), {"ceil_mode": True})),
    ("torch.max_pool2d(x, [2, 2])", ProgramCall((VARIABLE, VARIABLE))),
    ("torch.argmax(x, None, False)", ProgramCall((VARIABLE, None, False))),
    ("torch.argmax(x, None, True)", ProgramCall((VARIABLE, None, True))),
    ("torch.sum(x, [0], False)", ProgramCall((VARIABLE, VARIABLE, False))),
    ("torch.sum(x, [0], keepdim=True)", ProgramCall((VARIABLE, VARIABLE), {"keepdim": True})),
    ("torch.addmm(x, y, z, beta=2, alpha=1)", ProgramCall((VARIABLE,) * 3, {"beta": 2, "alpha": 1})),
    ("torch.addmm(x, y, z, beta=1, alpha=2)", ProgramCall((VARIABLE,) * 3, {"beta": 1, "alpha": 2})),
    ("'a{}'.format(x)", ProgramCall(("a{}", VARIABLE))),
    ("torch.topk(x, 2, -1, True, False)", ProgramCall((VARIABLE, 2, -1, True, False))),
    ("torch.topk(x, 2, -1, True, True)", ProgramCall((VARIABLE, 2, -1, True, True))),
    ("torch.rot90(x, 1, [0, 1])", ProgramCall((VARIABLE, 1, VARIABLE))),
    ("torch.rot90(x, 1)", ProgramCall((VARIABLE, 1))),
    ("torch.nan_to_num(x, 0.0)", ProgramCall((VARIABLE, 0.0))),
    ("torch.triu(x, n)", ProgramCall((VARIABLE, VARIABLE))),
    ("torch.flatten(x, 0, -1)", ProgramCall((VARIABLE, 0, -1))),
    ("x.to(torch.float, True)", ProgramCall((VARIABLE, 6, True))),
    ("torch.einsum('ij->ji', [x])", ProgramCall(("ij->ji", VARIABLE))),
]


@pytest.mark.real_torch(real.RELEASE)
def test_every_schema_of_every_release_is_read_and_printed_as_torch_does() -> None:
    counts, unread = command.recorded()
    assert counts["schemas"] == counts["2.13.0 reads"] + counts["2.13.0 cannot read"] == len(pairs.recorded())
    assert command.listing(unread) == command.UNREAD.read_text(encoding="utf-8"), "python -m tools.schemas --list, and look at it"


@pytest.mark.real_torch(real.RELEASE)
def test_pairs_of_releases_that_follow_each_other_are_judged_as_torch_does() -> None:
    counts = command.follow()
    assert counts["judged"] > 20_000
    assert min(counts["backward True"], counts["backward False"], counts["forward True"], counts["forward False"]) > 5_000


@pytest.mark.real_torch(real.RELEASE)
def test_generated_pairs_are_judged_as_torch_does() -> None:
    counts = command.made(4_000, pairs.SEED + 1)
    assert counts["judged"] >= 4_000
    assert min(counts[f"{what} {number}"] for what in ("backward", "forward") for number in (True, False)) > 400
    assert counts["forward IndexError"] + counts["backward IndexError"]  # the corners in which the real check fails are reached


@pytest.mark.real_torch(real.RELEASE)
def test_texts_with_typing_errors_are_refused_as_torch_does() -> None:
    counts = command.typos(4_000, pairs.SEED + 1)
    assert counts["refused"] > 2_000
    assert counts["accepted, because they are schemas"] > 400


@pytest.mark.real_torch(real.RELEASE)
def test_saved_code_states_the_arguments_that_we_say_it_states() -> None:
    environment = Environments().get(real.RELEASE)
    assert environment is not None
    asked = json.dumps([expression for expression, _ in CALLS])
    message = subprocess.run(
        [environment.python, "-W", "ignore", "-c", CODE, asked],
        check=True,
        capture_output=True,
        text=True,
        env=environment.environ(),
    ).stdout
    kinds: Counter[str] = Counter()
    for (expression, call), (schema, code) in zip(CALLS, json.loads(message), strict=True):
        operator = parse(schema)
        mine = serialized(operator, call)
        positional, keywords = stated(code, operator.name.partition("::")[2])
        assert (len(mine.positional), mine.keywords) == (positional, keywords), (expression, schema, code)
        kinds.update(
            {
                "dropped": bool(mine.dropped),
                "named": bool(mine.keywords),
                "out": any(argument.is_out for argument in operator.arguments),
            }
        )
    assert min(kinds.values()) > 3


def stated(code: str, name: str) -> tuple[int, tuple[str, ...]]:
    """How many arguments stand by position in the one call of an operator, and the names of the others."""
    (call,) = [
        node
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name
    ]
    return len(call.args), tuple(str(keyword.arg) for keyword in call.keywords)


def test_the_comparison_sees_what_differs() -> None:
    new, old = parse("a::b(int x, int y=1) -> int"), parse("a::b(int x) -> int")
    assert real.pair_disagreement(new, old, [True, True, ""]) is None
    messages: list[list[Any]] = [
        [False, True, ""],
        [True, False, "'x' is not forward compatible with the older version of the schema"],
    ]
    assert all(real.pair_disagreement(new, old, item) for item in messages)
    assert real.pair_disagreement(old, new, ["IndexError", True, ""]) is None
    assert "cause" in str(
        real.forward_cause(
            CompatibilityResult(compatible=False, reason="x", cause="vararg"), False, "same number of out arguments"
        )
    )
    wrong = CompatibilityResult(compatible=False, reason="x", cause="type", argument="x")
    assert "our cause names 'x'" in str(
        real.forward_cause(wrong, False, "'y' is not forward compatible with the older version of the schema")
    )
    assert real.text_disagreement("a::b(int x) -> ()", "error", real.read("a::b(int x) -> ()"))
    assert real.text_disagreement("a::b(int x", ["a::b(int x) -> ()", [], []], real.read("a::b(int x"))
    assert real.text_disagreement("a::b() -> ()", ["a::c() -> ()", [], []], real.read("a::b() -> ()"))
    assert real.text_disagreement(
        "a::b(int x) -> ()", ["a::b(int x) -> ()", [["x", True, False, False, None]], []], real.read("a::b(int x) -> ()")
    )


def test_the_session_ends_with_1_where_the_two_disagree(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(real, "ask", lambda texts, pairs: {"texts": ["refused"] * len(texts), "pairs": []})
    monkeypatch.setattr(Environments, "get", lambda self, version: object())
    assert command.main(["--pairs", "1", "--typos", "1"]) == 1
    assert "only 2.13.0 refuses" in capsys.readouterr().err
    monkeypatch.setattr(Environments, "get", lambda self, version: None)
    assert command.main([]) == 4


def test_the_list_of_what_torch_cannot_read_names_recorded_operators() -> None:
    listed = [line.split("\t") for line in command.UNREAD.read_text(encoding="utf-8").splitlines()[1:]]
    names = Counter(command.operator(text) for _, text in pairs.recorded())
    assert all(int(count) <= names[name] for name, count, _ in listed)
    assert sum(int(count) for _, count, _ in listed) == 731
