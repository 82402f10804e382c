"""Which lines of each room the tests run, also in the processes that they start.

    python scripts/measure_coverage.py                          # all that `make test` runs, with two workers
    python scripts/measure_coverage.py tests/core tests/graph   # or what these arguments of pytest name
    python scripts/measure_coverage.py --root OTHER ...         # of another checkout, with this one's environment
    python scripts/measure_coverage.py --report                 # the table once more

coverage.py is installed into build/coverage, beside the environment and not into it. Workers and programs count too,
unless a test gives them an environment of its own or they are killed; so a number is what was seen to run, at least.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
PACKAGE = "src/winml/modelkit"
PIN = "coverage==7.17.3"

# Workers are killed when their caller is done with them, so what they have run is saved before every answer.
# Another module of this name, further back on the path, runs as it would without us.
STARTER = """\
import importlib.machinery, importlib.util, json, os, sys
import coverage
started = coverage.process_startup()
if started is not None and any(word.endswith("worker/program.py") for word in sys.orig_argv):
    dumps = json.dumps
    def dump_and_save(value, *args, **settings):
        if isinstance(value, dict) and "id" in value:
            started.save()
        return dumps(value, *args, **settings)
    json.dumps = dump_and_save
here = os.path.dirname(__file__)
spec = importlib.machinery.PathFinder.find_spec("sitecustomize", [path for path in sys.path if path != here])
if spec is not None and spec.loader is not None:
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=HERE, help="the checkout whose tests are run")
    parser.add_argument("--report", action="store_true", help="run nothing, show what the last run saw")
    given, tests = parser.parse_known_args()
    folder = given.root.resolve() / "build" / "coverage"
    code = 0 if given.report else run_tests(given.root.resolve(), folder, tests)
    for line in report(folder):
        print(line)
    return code


def run_tests(root: Path, folder: Path, tests: list[str]) -> int:
    """Run pytest with every process of it recorded; its exit code."""
    tool = folder / "tool"
    if not (tool / "coverage").is_dir():
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--target", tool, PIN], check=True)
    (folder / "starter").mkdir(exist_ok=True)
    (folder / "starter" / "sitecustomize.py").write_text(STARTER, encoding="utf-8")
    for old in folder.glob("data.*"):
        old.unlink()
    # Processes of ours end by os._exit, which keeps nothing unless coverage is told to.
    settings = f"[run]\nsource = {root / PACKAGE}\ndata_file = {folder / 'data'}\nparallel = true\npatch = _exit\n"
    (folder / "settings").write_text(f"{settings}disable_warnings = no-data-collected, module-not-measured\n")
    paths = (folder / "starter", tool, root / "src")
    env = {
        **os.environ,
        "COVERAGE_PROCESS_START": str(folder / "settings"),
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
    }
    words = tests or ["--numprocesses", "2", "--dist", "loadgroup"]
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", *words], cwd=root, env=env, check=False)
    coverage = [sys.executable, "-m", "coverage"]
    quiet = {**env, "COVERAGE_PROCESS_START": ""}
    rc = ("--rcfile", str(folder / "settings"))
    subprocess.run([*coverage, "combine", "--quiet", *rc], cwd=folder, env=quiet, check=True)
    out = ("-o", str(folder / "coverage.json"))
    subprocess.run([*coverage, "json", "--quiet", *rc, *out], cwd=folder, env=quiet, check=True)
    return done.returncode


def report(folder: Path) -> list[str]:
    """A line for every room: its lines that can run, and the share that ran."""
    files = json.loads((folder / "coverage.json").read_text(encoding="utf-8"))["files"]
    lines: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for name, found in files.items():
        room, _, file = Path(name).as_posix().partition("modelkit/")[2].partition("/")
        for key in (room if file else "(package)", "all"):
            lines[key] += found["summary"]["num_statements"]
            seen[key] += found["summary"]["covered_lines"]
    rows = sorted(lines, key=lambda room: (room == "all", room))
    return [f"{room:<14} {lines[room]:>7} {100 * seen[room] / max(lines[room], 1):6.1f} %" for room in rows]


if __name__ == "__main__":
    sys.exit(main())
