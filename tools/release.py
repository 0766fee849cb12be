"""Check that a version can be released, and tag it: `nox -s release -- VERSION` does both around the build.

`python tools/release.py check VERSION` prints everything that prevents a release: changes in the tree, another version in the code, a
changelog without a section for the version or with changes above it, fragments in changes/ that are not in the changelog, an existing tag.
`python tools/release.py tag VERSION` checks again, and creates the annotated tag `vVERSION`. Nothing is pushed.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
VERSION = re.compile(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}((a|b|rc)\d+)?")


def problems(root: Path, version: str) -> list[str]:
    """Everything that prevents a release of this version, one line each; empty if nothing does.

    Raises:
        subprocess.CalledProcessError: if git fails, as outside of a repository.
    """
    if not VERSION.fullmatch(version):
        return [f"{version!r} is not a version such as 0.2.0 or 0.2.0rc1"]
    results = [f"the tree is not clean: {line}" for line in _git(root, "status", "--porcelain").splitlines()]
    if _git(root, "tag", "--list", f"v{version}"):
        results.append(f"the tag v{version} already exists")
    for name, stated in _stated(root).items():
        if stated != version:
            results.append(f"{name} states version {stated}; expected {version}")
    return results + _changelog(root, version) + _fragments(root)


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout


def _stated(root: Path) -> dict[str, str | None]:
    """The version stated in each file."""
    pyproject = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    package = "harness/torch_compat/version.py"
    match = re.search(r'^__version__ = "([^"]+)"$', (root / package).read_text(encoding="utf-8"), re.MULTILINE)
    return {"pyproject.toml": pyproject["project"]["version"], package: match[1] if match else None}


def _changelog(root: Path, version: str) -> list[str]:
    """The errors in the changelog for this version."""
    parts = re.split(r"^## +(.+)$", (root / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    sections = dict(zip((title.split()[0].strip("[]") for title in parts[1::2]), parts[2::2], strict=True))
    entries = {title: [line for line in text.splitlines() if line.startswith("- ")] for title, text in sections.items()}
    results = []
    if version not in sections:
        results.append(f"CHANGELOG.md has no section '## {version}'; it has {', '.join(sections) or 'none'}")
    elif not entries[version]:
        results.append(f"CHANGELOG.md has no entry under '## {version}'")
    if entries.get("Unreleased"):
        results.append(
            f"CHANGELOG.md has {len(entries['Unreleased'])} entries under '## Unreleased': move them to '## {version}'"
        )
    return results


def _fragments(root: Path) -> list[str]:
    """Changes that are not in the changelog yet."""
    left = sorted(path.name for path in (root / "changes").glob("*") if path.name != "README.md")
    return [f"changes/{name} is not in CHANGELOG.md: nox -s release -- VERSION --changelog" for name in left]


def bad_fragments(root: Path) -> list[str]:
    """Names in changes/ that are not NAME.KIND.md with a kind of pyproject.toml, one line each."""
    table = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]
    kinds = [kind["directory"] for kind in table["type"]]
    names = (path.name for path in (root / table["directory"]).glob("*") if path.name not in table["ignore"])
    form = re.compile(rf"\+?[a-z0-9-]+\.({'|'.join(kinds)})(\.\d+)?\.md")
    return [
        f"changes/{name}: expected NAME.KIND.md, where KIND is {', '.join(kinds)}"
        for name in sorted(names)
        if not form.fullmatch(name)
    ]


def main(arguments: list[str] | None = None) -> int:
    """Check, and tag if requested."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=["check", "tag"])
    parser.add_argument("version", metavar="VERSION", help="version to release, such as 0.2.0")
    parser.add_argument("--root", type=Path, default=REPOSITORY, help="root of the repository; default: this repository")
    asked = parser.parse_args(arguments)
    try:
        result = problems(asked.root, asked.version)
        if asked.command == "tag" and not result:
            _git(asked.root, "tag", "--annotate", f"v{asked.version}", "--message", f"torch-compat {asked.version}")
            print(f"tagged v{asked.version}; push it with: git push origin v{asked.version}")
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    print("\n".join(result) or f"{asked.version} can be released")
    return 1 if result else 0


if __name__ == "__main__":
    sys.exit(main())
