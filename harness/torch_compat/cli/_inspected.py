"""An inspected file as text: one screen, or one line of a table. All text from the file is shown without control characters."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any

from torch_compat.errors import UsageError
from torch_compat.escapes import escaped as _plain
from torch_compat.formats.kinds import kind_of
from torch_compat.formats.tree import contents, shown
from torch_compat.inspected import NATIVE
from torch_compat.loadability import packaged_rules
from torch_compat.loadability.changes import alike
from torch_compat.operators.export_schema import packaged_log
from torch_compat.pickles import brief
from torch_compat.releases.release import Release
from torch_compat.report.paragraphs import wrapped
from torch_compat.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch_compat.formats import Facts, Producer
    from torch_compat.inspection import Inspected
    from torch_compat.loadability import Needs
    from torch_compat.loadability.changes import ChangeOfMeaning
    from torch_compat.loadability.load_calls import LoaderAdvisory, RequiredModule

__all__ = ["headings", "line", "screen"]

LABEL = 14
WIDTH = 110  # columns after the label
MOST = 12  # maximum length of a list; the rest is only counted
ROOMY = 140  # minimum number of columns to show the path and its description on one line


def headings(width: int) -> str:
    """The headings above the lines."""
    return _columns("FORMAT", "READ BY TORCH", "STATE", "PATH", width)


def line(inspected: Inspected, width: int) -> str:
    """One line of a table; on a narrow terminal, the path with its description below.

    Parameters:
        width: columns of the terminal; 0 if there is none.
    """
    name = inspected.facts.name if inspected.facts else shown(inspected.other or "-")[:44]
    sound = "dangerous" if inspected.dangers else "sound" if inspected.facts else "other file"
    if inspected.omitted:
        sound += ", not all checked"
    state = (
        sound
        if inspected.error is None
        else "unreadable"
        if isinstance(inspected.error, UsageError)
        else shown(inspected.error.code)
    )
    return _columns(_plain(name), _plain(_spans(inspected.needs)), _plain(state), _plain(inspected.path), width)


def _columns(name: str, spans: str, state: str, path: str, width: int) -> str:
    if not 0 < width < ROOMY:
        return f"{name:<44}  {spans:<24}  {state:<24}  {path}"
    return "\n".join([path, *wrapped(f"    {name}; {spans}; {state}", width)])


def screen(inspected: Inspected, width: int, *, tree: bool, code: bool) -> str:
    """One screen, with the contents and the source if requested.

    Parameters:
        width: columns of the terminal, at which entries are wrapped; 0 if there is none.
    """
    lines = [_plain(inspected.path), *_labelled(_entries(inspected), width)]
    if inspected.facts is not None:
        if tree:
            lines += ["", "Contents", *(f"  {_plain(content)}" for content in contents(inspected.facts))]
        if code:
            lines += ["", *_code(inspected.facts)]
    return "\n".join(lines) + "\n"


def _labelled(entries: Iterator[tuple[str, Sequence[str]]], width: int) -> Iterator[str]:
    margin = LABEL + 2
    for label, texts in entries:
        lines = (_plain(text) for text in texts)  # even if the entry was already escaped
        fitting = (part for line in lines for part in (wrapped(line, width - margin) if width else [line]))
        for number, line in enumerate(fitting):
            yield f"  {label if number == 0 else '':<{LABEL}}{line}"


def _entries(inspected: Inspected) -> Iterator[tuple[str, Sequence[str]]]:
    facts = inspected.facts
    incomplete = facts is not None and facts.incomplete
    unread = inspected.error is not None and inspected.needs is None  # what was read before the error is not the whole
    if inspected.damage:  # first, since everything else may follow from it
        yield "damage", _damages(inspected)
    if inspected.error is not None and not (
        inspected.damage and inspected.needs is not None
    ):  # otherwise the damage already states it
        yield "error", [_error(inspected)]
    if facts is not None:
        yield "format", [f"{facts.name}{', as far as it could be read' if incomplete else ''}"]
        yield "contents", [] if incomplete or unread else [_kind(*kind_of(facts))]
    elif inspected.other is not None and inspected.error is None:
        yield "format", [f"{inspected.other}, not a PyTorch archive"]
    if inspected.size is not None:
        yield "size", [f"{inspected.size:,} bytes"]
        yield "sha256", [inspected.sha256 or "not calculated"]
    if facts is not None:
        yield "written by", [_producer(facts.producer)]
    if inspected.needs is not None:
        yield "read by torch", [_spans(inspected.needs)]
        yield (
            "because",
            [text for reason in inspected.needs.reasons for text in (_plain(reason.needs), f"  {_plain(reason.because)}")],
        )
        yield "how to load", list(_ways(inspected.needs))
        yield "needs", [_module(item) for item in inspected.needs.beside]
        yield "weights_only", [] if incomplete else list(_weights_only(inspected.needs))
        yield "advisories", [_advisory(advisory) for advisory in inspected.needs.advisories]
    if facts is not None and not unread:
        yield "metadata", list(_stated(facts))
        yield "operators", _listed(facts.operators)
        yield "changes", list(_changes(inspected))
        yield "globals", _listed(facts.globals)
        yield "storages", list(_storages(facts))
    yield "on the CPU", [_computed(bit) for bit in inspected.sixteen_bits]
    dangers = inspected.dangers
    if dangers:
        more = [f"and {len(dangers) - MOST} more"] if len(dangers) > MOST else []
        yield (
            "dangers",
            [_danger(*danger) for danger in dangers[:MOST]] + more,
        )
    if facts is not None and not unread and not inspected.damage:
        yield "damage", ["none"]
    yield (
        "contains",
        [f"{shown(item.path.removeprefix(inspected.path)[1:])}: {_inner(item)}" for item in inspected.contains[:MOST]]
        + [f"and {len(inspected.contains) - MOST} more"] * (len(inspected.contains) > MOST),
    )
    yield "fails", [f"--fail-on {fail}" for fail in inspected.fails]
    yield "not checked", [f"{what}: {because}" for what, because in inspected.omitted.items()]


def _damages(inspected: Inspected) -> list[str]:
    """The damage of a file."""
    more = [f"and {len(inspected.damage) - MOST} more"] if len(inspected.damage) > MOST else []
    return [_damage(damage.code, damage.record, damage.detail) for damage in inspected.damage[:MOST]] + more


def _error(inspected: Inspected) -> str:
    """The error of a file, with its code if the file was opened: without it, there is only a wrong path."""
    code = "" if isinstance(inspected.error, UsageError) or inspected.error is None else f"{inspected.error.code}: "
    return f"{code}{_plain(inspected.message)}"


def _inner(inspected: Inspected) -> str:
    """The text for an archive inside another file."""
    if inspected.error is not None:
        return _error(inspected)
    return f"{inspected.facts.name if inspected.facts else '-'}, read by torch {_spans(inspected.needs)}"


def _kind(kind: str, about: dict[str, Any]) -> str:
    """The kind of file in one line, for display."""
    message = kind.replace("-", " ")
    return (
        f"{message} ({', '.join(_detail(name, value) for name, value in about.items() if value)})"
        if any(about.values())
        else message
    )


def _detail(name: str, value: Any) -> str:
    if value is True:
        return name
    if isinstance(value, dict):
        text = ", ".join(f"{key}: {item}" for key, item in islice(value.items(), MOST))
    elif isinstance(value, list):
        text = " ".join(map(str, value[:MOST])) + (f" and {len(value) - MOST} more" if len(value) > MOST else "")
    else:
        text = f"{value:,}" if isinstance(value, int) else str(value)
    return f"{name}: {text}"


def _computed(item: dict[str, Any]) -> str:
    spans = ", ".join(
        span["from"] if span["from"] == span["to"] else f"{span['from']} to {span['to']}" for span in item["computed_by"]
    )
    return f"{item['operator']} with {item['dtype']}: {f'supported only by {spans}' if spans else 'not supported by any release'}"


def _danger(name: str, record: str, because: str) -> str:
    where = f"record {shown(record)} {'is' if name == NATIVE else 'names'} " if record else ""
    return f"{where}{shown(name)}, which {because}"


def _damage(code: str, record: str | None, detail: str) -> str:
    return f"{code}: {f'record {shown(record)}: ' if record else ''}{_plain(detail)}"


def _producer(producer: Producer | None) -> str:
    if producer is None:
        return "unknown"
    first, last = producer.first, producer.last
    if producer.torch is not None:
        message = f"torch {shown(producer.torch)}"
    elif first and last:
        message = f"torch {first}" if first == last else f"torch {first} to {last}"
    else:
        message = f"torch {first} or newer" if first else f"torch {last} or older"
    python = f", Python {shown(producer.python)}" if producer.python else ""
    return f"{message}{python} ({_plain(', '.join(producer.because))})"


def _stated(facts: Facts) -> Iterator[str]:
    """Statements that only some formats make about themselves."""
    extra = facts.extra
    if facts.export_schema is not None:
        yield _schema(facts.export_schema)
    if isinstance(extra.get("opset_version"), dict):
        sets = islice(extra["opset_version"].items(), MOST)
        yield "operator set " + shown(", ".join(f"{shown(name)} {brief(number, 20)}" for name, number in sets))
    if extra.get("archive_version"):
        yield f"archive version {shown(extra['archive_version'])}"
    if "operator_version" in extra:
        yield f"operator version {extra['operator_version']}"
    if "pickle_protocol" in extra:
        yield f"pickle protocol {extra['pickle_protocol']}"
    if extra.get("extern_modules"):
        yield "modules that the package does not contain: " + "".join(_listed(extra["extern_modules"]))
    system = extra.get("sys_info")
    if isinstance(system, dict) and isinstance(system.get("little_endian"), bool):
        yield f"written on a {'little' if system['little_endian'] else 'big'}-endian machine"


def _schema(stated: str) -> str:
    """A schema version of exported programs: the releases that write it, and those that read its major version."""
    major, rules = stated.partition(".")[0], packaged_rules()
    written = next((version.releases for version in packaged_log() if version.label == stated), ())
    writers = f"written by torch {', '.join(written)}" if written else "not written by any recorded release"
    takers, _ = rules.formats.get(("export-schema", int(major)), (0, ""))
    return (
        f"schema {stated}, {writers}; loaders compare only {major}, which is read by {_named(tuple(rules.known.spans(takers)))}"
    )


def _spans(needs: Needs | None) -> str:
    return "-" if needs is None else _named(needs.readable_by)


def _named(spans: Sequence[tuple[str, str]]) -> str:
    """Spans of releases in words."""
    newest = packaged_rules().releases[-1]
    parts = [
        f"{first} and newer" if last == newest else first if first == last else f"{first} to {last}" for first, last in spans
    ]
    return ", ".join(parts) or "none"


def _ways(needs: Needs) -> Iterator[str]:
    """The calls that load it, each with its releases on one line; several statements go below it. A call that runs code is marked."""
    for way in needs.how_to_load:
        runs = ", runs code chosen by the file" if way.runs_code else ""
        other = [need.package for need in way.needs if need.package and need not in needs.beside]
        beside = f", with {' and '.join(dict.fromkeys(other))}" if other else ""
        where, statements = f"{_named(way.releases)}{beside}{runs}", way.statements
        if len(statements) == 1:
            yield f"{where}: {statements[0]}"
        else:
            yield f"{where}:"
            yield from (f"  {statement}" for statement in statements)
    if not needs.how_to_load:
        yield "no release is known to load it"


def _changes(inspected: Inspected) -> Iterator[str]:
    """The releases with the same results, then one line per change since the file was written; other changes are only counted.

    A program that ran when it was saved did not use calls that were refused then, so changes that make releases accept more come last.
    """
    changes = inspected.changes_of_meaning
    if not changes or inspected.needs is None:
        return
    met = [change for change in changes if change.written != "after"]
    first = min((change.since for change in met), key=Release, default=None)
    since = f"; may fail as of {first}, because" if first else ""
    yield f"loads in {_spans(inspected.needs)}; gives the same results in {_named(alike(inspected.needs, changes))}{since}"
    by_id: dict[str, list[ChangeOfMeaning]] = {}
    for meaning in sorted(met, key=lambda change: change.kind == "accepted"):
        by_id.setdefault(meaning.id, []).append(meaning)
    for meaning, *others in islice(by_id.values(), MOST):
        names = ", ".join([meaning.operator, *(other.operator for other in others)])
        yield f"{meaning.since}: {names}: before: {meaning.before}; since then: {meaning.after} ({meaning.id})"
    if len(by_id) > MOST:
        yield f"and {len(by_id) - MOST} more (--format json)"
    older = len({change.id for change in changes}) - len(by_id)
    if older:
        plural, them = ("s", "them") if older > 1 else ("", "it")
        yield f"{older} older change{plural}: releases older than the change still compute {them} the old way; see --format json"


def _module(module: RequiredModule) -> str:
    """A module and where it comes from."""
    package = f" (package {module.package})" if module.package else ""
    return f"{shown(module.module)}{package}{f': {module.because}' if module.because else ''}"


def _advisory(advisory: LoaderAdvisory) -> str:
    return f"{advisory.id}: torch {_named(advisory.releases)}, {advisory.call}: {advisory.summary}; safe: {advisory.safe}"


def _weights_only(needs: Needs) -> Iterator[str]:
    """The answers of ``weights_only=True``, grouped by releases with the same answer."""
    if not needs.weights_only:
        yield "does not apply: torch.load does not load this format"
        return
    groups: list[tuple[list[str], str]] = []
    for release, refusal in needs.weights_only.items():
        message = "accepted" if refusal is None else f"refused: {_plain(refusal.detail)}"
        if groups and groups[-1][1] == message:
            groups[-1][0].append(release)
        else:
            groups.append(([release], message))
    for releases, message in groups[:MOST]:
        yield f"{releases[0]} to {releases[-1]}: {message}" if len(releases) > 1 else f"{releases[0]}: {message}"
    first = next((release for release, default in needs.weights_only_default.items() if default), None)
    if first is not None:
        yield f"(the default since {first})"


def _listed(names: Sequence[str]) -> list[str]:
    """A list wrapped to the width, and shortened with the count of omitted names."""
    if not names:
        return ["none"]
    lines, now = [], f"{len(names)}: "
    for number, name in enumerate(names[: MOST * 2]):
        text = shown(name) + (", " if number + 1 < len(names) else "")
        if len(now) + len(text) > WIDTH:
            lines.append(now.rstrip())
            now = ""
        now += text
    if len(names) > MOST * 2:
        now += f"and {len(names) - MOST * 2} more"
    return [*lines, now.rstrip()]


def _storages(facts: Facts) -> Iterator[str]:
    storages = facts.storages
    if not storages:
        yield "none"
        return
    dtypes = Counter(storage.dtype or "(dtype not stated)" for storage in storages)
    kinds = ", ".join(f"{count} {dtype}" for dtype, count in dtypes.most_common())
    yield f"{len(storages)}, {sum(storage.nbytes for storage in storages):,} bytes: {kinds}"
    order = "" if facts.byteorder is None else f"{facts.byteorder}-endian, "
    aligned = "" if facts.storage_alignment is None else f"aligned to {facts.storage_alignment}, "
    known = sum(storage.calculated_offset is not None for storage in storages)
    yield f"{order}{aligned}{known} of {count_of(len(storages), 'offset')} can be calculated without reading the file"
    whys = Counter(storage.why for storage in storages if storage.calculated_offset is None and storage.why)
    for why, count in whys.most_common(3):
        yield f"{count} cannot: {_plain(why)}"
    absent = sum(storage.absent for storage in storages)
    if absent:
        yield f"{absent} absent: space is reserved, but the data was never written"


def _code(facts: Facts) -> Iterator[str]:
    sources = facts.code()
    if not sources:
        yield "No TorchScript source"
    for record, text in sources.items():
        yield f"Source of {shown(record)}"
        for part in text.split("\n"):
            yield f"  {_plain(part)}"
