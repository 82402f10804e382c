"""Checks what is in a wheel and an sdist before anybody installs them.

    python scripts/check_dist.py dist/ [--tag v0.1.0]

The folder holds one wheel and, unless it is left out, one sdist. With a tag, changelog and citation have to be of that
version, too. Exit 1 names every fault.
"""

from __future__ import annotations

import argparse
import email
import email.message
import re
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "winml/modelkit"
MAX_WHEEL_MB = 4
"""Twice what it is: a model, a cache or a recording would be far above."""
MAX_SDIST_MB = 4
NEVER = re.compile(
    r"(^|/)(tests?|benchmarks|\.git|\.venv|build|__pycache__|\.mypy_cache|\.ruff_cache)/|\.(pyc|so|pyd|dll|exe|whl)$"
)
"""Names that have no place in what is published."""


def source_names() -> set[str]:
    """Every file of the package and every skill, as the wheel should name them; those that git ignores are left out."""
    package = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*") if path.is_file()}
    skills = {
        f"{PACKAGE}/skills/{path.relative_to(ROOT / 'skills').as_posix()}"
        for path in (ROOT / "skills").rglob("*")
        if path.is_file()
    }
    return {name for name in package | skills if not NEVER.search(name)}


def wheel_faults(wheel: Path, expected: set[str]) -> list[str]:
    """What is missing in a wheel, what it should not hold, and what is wrong with its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        about = next((name for name in names if name.endswith(".dist-info/METADATA")), None)
        metadata = email.message_from_bytes(archive.read(about)) if about else email.message.Message()
        entries = next((archive.read(n).decode() for n in names if n.endswith("entry_points.txt")), "")
    inside = {name for name in names if ".dist-info/" not in name}
    faults = [f"missing: {name}" for name in sorted(expected - inside)]
    faults += [f"not of the sources: {name}" for name in sorted(inside - expected)]
    faults += [f"has no place here: {name}" for name in sorted(names) if NEVER.search(name)]
    faults += [f"no {kind} in the wheel" for kind in missing_kinds(inside)]
    faults += metadata_faults(metadata)
    if "winml = winml.modelkit.cli.main:main" not in entries:
        faults.append("no program `winml`")
    return faults + size_faults(wheel, MAX_WHEEL_MB)


def missing_kinds(names: set[str]) -> list[str]:
    """What a wheel has to hold whatever the sources are."""
    wanted = {
        "py.typed": f"{PACKAGE}/py.typed",
        "schema": rf"{PACKAGE}/schemas/.*\.json",
        "skill": rf"{PACKAGE}/skills/.*/SKILL\.md",
        "sample model": rf"{PACKAGE}/sample/.*\.onnx",
    }
    return [kind for kind, form in wanted.items() if not any(re.fullmatch(form, name) for name in names)]


def metadata_faults(metadata: email.message.Message) -> list[str]:
    """What an index would show wrongly or refuse."""
    faults = [
        f"metadata: no {key}" for key in ("Summary", "License-Expression", "Requires-Python") if not metadata[key]
    ]
    if metadata["Name"] != "winml-modelkit":
        faults.append(f"metadata: name {metadata['Name']}")
    if "text/markdown" not in (metadata["Description-Content-Type"] or ""):
        faults.append("metadata: the README is not shown as Markdown")
    return faults


def sdist_faults(sdist: Path) -> list[str]:
    """What an sdist lacks to build the wheel again, and what it should not hold."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", f"src/{PACKAGE}/__init__.py")
    faults = [f"sdist: missing: {name}" for name in wanted if name not in names]
    faults += [f"sdist: has no place here: {name}" for name in sorted(names) if NEVER.search(name)]
    if not any(name.startswith("skills/") for name in names):
        faults.append("sdist: no skill")
    return faults + size_faults(sdist, MAX_SDIST_MB)


def size_faults(path: Path, limit_mb: int) -> list[str]:
    size = path.stat().st_size / 2**20
    return [f"{path.name} has {size:.1f} MB, more than {limit_mb}"] if size > limit_mb else []


def tag_faults(tag: str, wheel: str, changelog: str, citation: str) -> list[str]:
    """What is not of the version that a tag names."""
    version = tag.removeprefix("v")
    found = {
        "the wheel": wheel.split("-")[1] == version,
        "a dated section of CHANGELOG.md": re.search(rf"^## \[{re.escape(version)}\] - \d", changelog, re.MULTILINE),
        "CITATION.cff": re.search(rf"^version: {re.escape(version)}$", citation, re.MULTILINE),
    }
    return [f"{what} is not of version {version}" for what, good in found.items() if not good]


def check(folder: Path, tag: str | None = None) -> list[str]:
    """All faults of a folder of distributions."""
    wheels, sdists = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sdists) > 1:
        return [f"{folder} holds {len(wheels)} wheels and {len(sdists)} sdists, not one of each"]
    faults = [*wheel_faults(wheels[0], source_names()), *(fault for one in sdists for fault in sdist_faults(one))]
    if tag is not None:
        changelog, citation = ((ROOT / name).read_text(encoding="utf-8") for name in ("CHANGELOG.md", "CITATION.cff"))
        faults += tag_faults(tag, wheels[0].name, changelog, citation)
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tag", help="the tag of a release")
    given = parser.parse_args()
    folder = given.folder
    faults = check(folder, given.tag)
    for fault in faults:
        print(fault)
    if not faults:
        print(", ".join(f"{one.name} {one.stat().st_size / 2**20:.2f} MB" for one in sorted(folder.iterdir())))
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
