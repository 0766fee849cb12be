"""Stage the documentation site, and check the site built by mkdocs: `nox -s docs` does both.

`python tools/documentation.py stage DIR` writes DIR/mkdocs.yml and DIR/pages: the pages of docs/, with the tables of the reference written from the
schemas, and every other Markdown file of the repository that a page links to. `python tools/documentation.py check SITE` fails if a page of the
built site loads a font, script, style or image from elsewhere.

The pages of docs/ link to files of the repository as they do in a checkout. mkdocs knows only what lies in its own directory, so the
links are rewritten here: a link to a file that is no page of the site becomes plain text.
"""

from __future__ import annotations

import argparse
import json
import os
import posixpath
import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCE = "docs"
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
FENCE = re.compile(r"^ *(```+|~~~+)")
MARKER = re.compile(r"^<!-- reference: (?P<name>[a-z-]+) -->$", re.MULTILINE)
LOADED = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src"}
NOT_LOADED = {"canonical", "next", "prev"}  # of <link rel>: only states a location


class SiteError(Exception):
    """A page that cannot be staged, or a site that loads something from elsewhere."""


# ---------------------------------------------------------------------------------------------------------------- pages


def pages(root: Path) -> dict[str, str]:
    """Every page of the site with its text, by its path in the staged directory.

    Raises:
        SiteError: if a page links to something that is not in the repository, or asks for a reference that there is none of.
    """
    texts: dict[str, str] = {}
    waiting = [path.relative_to(root).as_posix() for path in sorted((root / SOURCE).glob("**/*.md"))]
    while waiting:
        name = waiting.pop()
        if name in texts:
            continue
        texts[name] = (root / name).read_text(encoding="utf-8")
        linked = (_page(root, name, match["target"]) for match in _links(texts[name]))
        waiting += [page for page in linked if page is not None]
    return {
        staged(name): MARKER.sub(lambda match: reference(root, match["name"]), _rewritten(root, name, text, texts))
        for name, text in sorted(texts.items())
    }


def staged(name: str) -> str:
    """The path of a Markdown file of the repository in the staged directory."""
    return name.removeprefix(f"{SOURCE}/") if name.startswith(f"{SOURCE}/") else f"repository/{name}"


def _target(root: Path, name: str, target: str) -> str | None:
    """The path in the repository that a link in a file points to; None for an external link or one within the page."""
    path = target.partition("#")[0]
    if not path or ELSEWHERE.match(path):
        return None
    result = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
    if result.startswith("..") or not (root / result).exists():
        raise SiteError(f"{name}: links to {target}, and there is no {result} in the repository")
    return result


def _page(root: Path, name: str, target: str) -> str | None:
    """The Markdown file that a link points to; for a directory, its README; None if there is none."""
    result = _target(root, name, target)
    if result is not None and (root / result).is_dir():
        result = posixpath.join(result, "README.md")
    is_page = result is not None and result.endswith(".md") and (root / result).is_file()
    return result if is_page else None


def _rewritten(root: Path, name: str, text: str, texts: dict[str, str]) -> str:
    """The text of a page with links that are valid in the staged directory."""

    def link(match: re.Match[str]) -> str:
        target = match["target"]
        if _target(root, name, target) is None:
            return match[0]
        page = _page(root, name, target)
        if page not in texts:
            return match["text"]
        _, hash_, anchor = target.partition("#")
        path = posixpath.relpath(staged(page), posixpath.dirname(staged(name)) or ".")
        return f"{match['image']}[{match['text']}]({path}{hash_}{anchor})"

    return "".join(part if fenced else LINK.sub(link, part) for part, fenced in _parts(text))


def _links(text: str) -> Iterator[re.Match[str]]:
    """The links of a text outside of code blocks."""
    for part, fenced in _parts(text):
        if not fenced:
            yield from LINK.finditer(part)


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """The pieces of the text, each with whether it is a code block."""
    piece: list[str] = []
    fence: str | None = None
    for line in text.splitlines(keepends=True):
        match = FENCE.match(line)
        if match and fence is None:
            yield "".join(piece), False
            piece, fence = [line], match[1]
        elif match and fence is not None and match[1].startswith(fence) and line.strip() == match[1]:
            yield "".join([*piece, line]), True
            piece, fence = [], None
        else:
            piece.append(line)
    yield "".join(piece), fence is not None


# ------------------------------------------------------------------------------------------------------------ reference


def reference(root: Path, name: str) -> str:
    """The part of the reference that a page asks for with ``<!-- reference: NAME -->``."""
    if name not in REFERENCES:
        raise SiteError(f"there is no reference {name!r}, only {', '.join(REFERENCES)}")
    return REFERENCES[name](root)


def json_reference(root: Path) -> str:
    """A section for each published schema: its keys with types and descriptions."""
    sections = []
    for path in sorted((root / "harness/torch_compat/schemas").glob("*.schema.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        name = path.name.removesuffix(".schema.json")
        sections += [f"## {name}", _sentence(f"{schema['title']}. {schema.get('description', '')}"), *_tables(schema, name)]
    return "\n\n".join(sections)


def policy_reference(root: Path) -> str:
    """A section for each kind of table in the policy files, from the schema generated from the models and their docstrings."""
    schema = json.loads((root / "policies/policy.schema.json").read_text(encoding="utf-8"))
    definitions = schema["definitions"]
    rows, direct = [], {}
    for key, form in schema["properties"].items():
        model = form.get("items", form)["$ref"].rpartition("/")[2]
        header = f"[[{key}]]" if "items" in form else f"[{key}]"
        direct[model] = header
        rows.append(f"| [`{header}`](#{_anchor('policy', model)}) | {_cell(definitions[model].get('description', ''))} |")
    sections = ["| table | contents |\n|---|---|\n" + "\n".join(rows)]
    order = [*direct, *sorted(set(definitions) - set(direct))]
    for model in order:
        title = f"`{direct[model]}`" if model in direct else _short(model)
        sections += [
            f"## {title} {{ #{_anchor('policy', model)} }}",
            _sentence(definitions[model].get("description", "")),
            _table(definitions[model], "policy"),
        ]
    return "\n\n".join(sections)


REFERENCES: dict[str, Callable[[Path], str]] = {"json": json_reference, "policy": policy_reference}


def _tables(schema: dict[str, Any], name: str) -> Iterator[str]:
    """The table of a schema, and one for each of its definitions."""
    yield _table(schema, name)
    for model, form in {**schema.get("$defs", {}), **schema.get("definitions", {})}.items():
        yield f"### {_short(model)} {{ #{_anchor(name, model)} }}"
        yield _sentence(form.get("description", ""))
        yield _table(form, name)


def _table(schema: dict[str, Any], name: str) -> str:
    """The keys of an object, with those of nested objects by path; the type if it has no keys."""
    rows = [
        f"| `{path}` | {_type(form, name)} | {'yes' if required else ''} | {_cell(form.get('description', ''))} |"
        for path, form, required in _keys(schema, "")
    ]
    return "\n".join(["| key | type | required | |", "|---|---|---|---|", *rows]) if rows else f"Type: {_type(schema, name)}"


def _keys(schema: dict[str, Any], above: str) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Every key with its schema and whether it is required; for alternatives, the keys of each."""
    for alternative in _alternatives(schema):
        yield from _keys(alternative, above)
    for key, form in schema.get("properties", {}).items():
        yield f"{above}{key}", form, key in schema.get("required", ())
        yield from _keys(form, f"{above}{key}.")
    if isinstance(schema.get("items"), dict):
        yield from _keys(schema["items"], f"{above.removesuffix('.')}[].")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _keys(schema["additionalProperties"], f"{above}*.")


def _alternatives(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [form for key in ("anyOf", "oneOf", "allOf") for form in schema.get(key, ()) if isinstance(form, dict)]


def _type(schema: dict[str, Any], name: str) -> str:
    """The type of a value in words."""
    if "$ref" in schema:
        model = schema["$ref"].rpartition("/")[2]
        return f"[{_short(model)}](#{_anchor(name, model)})"
    if "const" in schema:
        return f"`{_code(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{_code(value)}`" for value in schema["enum"])
    if "type" not in schema and (alternatives := _alternatives(schema)):
        return " or ".join(dict.fromkeys(_type(form, name) for form in alternatives))
    kinds = schema.get("type", "any")
    words = []
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        if kind == "array" and isinstance(schema.get("items"), dict):
            words.append(f"array of {_type(schema['items'], name)}")
        elif kind == "string" and "format" in schema:
            words.append(f"string ({schema['format']})")
        else:
            words.append(kind)
    return " or ".join(words)


def _short(model: str) -> str:
    """The name of a model; if two models share a name, the schema prefixes it with the module."""
    *module, name = model.split("__")
    return f"{name} ({module[-1]})" if module else name


def _anchor(name: str, model: str) -> str:
    return f"{name}-{model}".lower()


def _code(value: object) -> str:
    return json.dumps(value, ensure_ascii=False).replace("|", "\\|")


def _cell(text: str) -> str:
    """A text for a table cell."""
    return _sentence(text).replace("|", "\\|")


def _sentence(text: str) -> str:
    """A description on one line, escaped so that nothing is parsed as HTML or as a link."""
    flat = " ".join(text.split()).replace("``", "`")
    return "".join(
        part if index % 2 else re.sub(r"([<\[*_])", r"\\\1", part) for index, part in enumerate(re.split(r"(`[^`]*`)", flat))
    )


# ------------------------------------------------------------------------------------------------------------- commands


def stage(root: Path, out: Path) -> int:
    """Write what mkdocs reads. Returns the number of pages."""
    result = pages(root)  # before anything is removed
    if out.exists():
        shutil.rmtree(out)
    for name, text in result.items():
        path = out / "pages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    shutil.copy(root / SOURCE / "mkdocs.yml", out / "mkdocs.yml")
    return len(result)


class _Loads(HTMLParser):
    """Collects the addresses that a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the address loaded by a tag."""
        given = dict(attrs)
        if tag in LOADED and given.get("rel") not in NOT_LOADED and (url := given.get(LOADED[tag])) is not None:
            self.urls.append(url)


def loads_from_elsewhere(site: Path) -> list[str]:
    """The resources that pages and styles of a built site load from other hosts: "PAGE: URL".

    Raises:
        SiteError: if there is no page, since nothing was checked then.
    """
    result, seen = [], 0
    for directory, _, names in os.walk(site):
        for name in sorted(names):
            path = Path(directory, name)
            if path.suffix == ".html":
                seen += 1
                parser = _Loads()
                parser.feed(path.read_text(encoding="utf-8"))
                urls = parser.urls
            elif path.suffix == ".css":
                urls = re.findall(r"(?:url\(|@import )[\"']?([^\"')]+)", path.read_text(encoding="utf-8"))
            else:
                continue
            result += [
                f"{path.relative_to(site)}: {url}"
                for url in urls
                if url.startswith("//") or re.match("https?:", url, re.IGNORECASE)
            ]
    if not seen:
        raise SiteError(f"{site}: contains no page, so nothing was checked")
    return sorted(result)


def main(arguments: list[str] | None = None) -> int:
    """Stage or check."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("stage", help="write the input of mkdocs").add_argument("directory", type=Path)
    commands.add_parser("check", help="check a built site").add_argument("directory", type=Path)
    asked = parser.parse_args(arguments)
    try:
        if asked.command == "stage":
            print(f"{asked.directory}: {stage(REPOSITORY, asked.directory)} pages")
            return 0
        result = loads_from_elsewhere(asked.directory)
    except SiteError as error:
        print(f"documentation: {error}", file=sys.stderr)
        return 1
    print("\n".join(result) or f"{asked.directory}: no page loads anything from elsewhere")
    return 1 if result else 0


if __name__ == "__main__":
    sys.exit(main())
