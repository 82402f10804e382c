"""Asks the package index on which systems and Pythons the package and each extra install, and writes docs/install.md.

    python scripts/resolve_wheels.py            # rewrites the table
    python scripts/resolve_wheels.py --check    # exit 1 when the table says something else

uv resolves for another system than this one, with its markers, from wheels alone; pip does not evaluate its markers.
It is installed below build/ where it is missing. A few minutes: 20 combinations of system and Python.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "install.md"
BEGIN, END = "<!-- table of scripts/resolve_wheels.py -->", "<!-- end of the table -->"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SYSTEMS = {
    "Linux x86_64": "x86_64-manylinux_2_35",
    "Linux aarch64": "aarch64-manylinux_2_35",
    "Windows x64": "x86_64-pc-windows-msvc",
    "Windows Arm": "aarch64-pc-windows-msvc",
    "macOS Arm": "aarch64-apple-darwin",
}
"""What the table calls a system, and what uv does; glibc 2.35, because onnxruntime-qnn needs it."""
MACOS = "14.0"
"""The oldest macOS that the wheels of onnxruntime are for."""
NO_SOLUTION = "No solution found"

Answers = dict[tuple[str, str, str], bool]
"""(extra, system, Python) -> whether it installs; the extra `""` is the package alone."""


def extras() -> tuple[str, ...]:
    """The package alone, and its extras for users."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return ("", *(name for name in project["optional-dependencies"] if name not in ("dev", "docs", "notebooks")))


def find_uv() -> str:
    """The program uv; installed below build/ where there is none."""
    own = ROOT / "build" / "uv" / "bin" / "uv"
    found = shutil.which("uv") or shutil.which(str(own))
    if found is None:
        words = ["--quiet", "--constraint", str(ROOT / "constraints.txt"), "--target", str(own.parents[1]), "uv"]
        subprocess.run([sys.executable, "-m", "pip", "install", *words], check=True)
        found = shutil.which(str(own))
    assert found is not None, f"uv was installed and is not at {own}"
    return found


@cache
def _environment() -> dict[str, str]:
    """uv's settings from those of pip, which it does not read."""
    asked = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    values = dict(line.split("=", 1) for line in asked.splitlines() if "=" in line)
    named = {name.rpartition(".")[2]: value.strip("'\"") for name, value in values.items()}
    env = {**os.environ, "MACOSX_DEPLOYMENT_TARGET": MACOS}
    for theirs, ours in (("cert", "SSL_CERT_FILE"), ("index-url", "UV_DEFAULT_INDEX")):
        if theirs in named:
            env.setdefault(ours, named[theirs])
    return env


def why_not(uv: str, wanted: Iterable[str], system: str, python: str) -> str | None:
    """Why these extras together do not install from wheels on a system; None when they do."""
    words = ["pip", "compile", "--quiet", "--only-binary", ":all:", "--no-header", "--python-version", python]
    names = [word for extra in wanted if extra for word in ("--extra", extra)]
    done = subprocess.run(
        [uv, *words, "--python-platform", SYSTEMS[system], *names, str(ROOT / "pyproject.toml")],
        env=_environment(), cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode == 0:
        return None
    if NO_SOLUTION not in done.stderr:  # no network, no index: not an answer
        raise RuntimeError(done.stderr.strip())
    return done.stderr.strip()


def ask(system: str, python: str, uv: str) -> Answers:
    """Which extras install on one system and Python.

    What installs together also does alone, so one answer is enough for most.
    """
    names = extras()
    heavy = [name for name in names if name in ("hf", "openvino")]  # those that some systems have no wheels for
    groups = [[name for name in names if name not in heavy], *([name] for name in heavy)]
    found: Answers = {}
    for group in groups:
        if why_not(uv, group, system, python) is None:
            found.update({(name, system, python): True for name in group})
        else:
            found.update({(name, system, python): why_not(uv, [name], system, python) is None for name in group})
    return found


def ask_all(systems: Sequence[str] = tuple(SYSTEMS), pythons: Sequence[str] = PYTHONS) -> Answers:
    """All answers, some at a time: nearly all of the time is the network's."""
    uv = find_uv()
    pairs = [(system, python) for system in systems for python in pythons]
    found: Answers = {}
    with ThreadPoolExecutor(4) as pool:
        for answers in pool.map(lambda pair: ask(pair[0], pair[1], uv), pairs):
            found.update(answers)
    return found


def describe(answers: Mapping[str, bool]) -> str:
    """`3.11 to 3.13`, `3.12`, or `no`."""
    good = [python for python in PYTHONS if answers[python]]
    if not good:
        return "no"
    places = [PYTHONS.index(python) for python in good]
    if len(good) > 1 and places == list(range(places[0], places[-1] + 1)):
        return f"{good[0]} to {good[-1]}"
    return ", ".join(good)


def table(answers: Answers) -> str:
    """The answers as Markdown: a row per extra, a column per system."""
    lines = [f"| extra | {' | '.join(SYSTEMS)} |", "|---" * (len(SYSTEMS) + 1) + "|"]
    for name in extras():
        cells = [describe({p: answers[name, system, p] for p in PYTHONS}) for system in SYSTEMS]
        lines.append(f"| {f'`{name}`' if name else 'none'} | {' | '.join(cells)} |")
    return "\n".join(lines)


def read_table(page: str) -> str:
    """The table that a page has."""
    return page.split(BEGIN, 1)[1].split(END, 1)[0].strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the table is another")
    given = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    made, stored = table(ask_all()), read_table(page)
    print(made)
    if given.check:
        return int(made != stored)
    before, rest = page.split(BEGIN, 1)
    PAGE.write_text(f"{before}{BEGIN}\n{made}\n{END}{rest.split(END, 1)[1]}", encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
