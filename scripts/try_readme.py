"""Follows the README as a newcomer: every `sh` block, in order, from an empty folder, in a fresh environment.

    python scripts/try_readme.py [--wheel FILE] [--blocks N] [--keep FOLDER]

The package is a wheel built here, which `pip` finds beside its index; the other packages are those of constraints.txt.
Exit 1 when a block fails; what it said is shown.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from pages import ROOT, make_variables, read_page, run_block


def build_wheel(folder: Path) -> Path:
    """The wheel of this repository."""
    words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(words, check=True)
    return next(folder.glob("winml_modelkit-*.whl"))


def make_environment(folder: Path, wheel: Path) -> dict[str, str]:
    """The variables of a shell in a fresh virtual environment whose `pip` also finds the wheel."""
    import venv  # embeddable Pythons of Windows do not have it

    venv.create(folder / "venv", with_pip=True, symlinks=sys.platform != "win32")
    programs = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
    found = " ".join(filter(None, (os.environ.get("PIP_FIND_LINKS"), str(wheel.parent))))
    return {**make_variables(folder, programs), "PIP_FIND_LINKS": found, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def follow(folder: Path, wheel: Path | None, blocks: int | None = None) -> int:
    """Run the blocks of the README, or only the first ones; returns how many failed."""
    wheel = (wheel or build_wheel(folder)).resolve()
    env = make_environment(folder, wheel)
    empty = folder / "empty"
    empty.mkdir()
    failed = 0
    every = [block for block in read_page(ROOT / "README.md").blocks if block.language == "sh"]
    for number, block in enumerate(every[:blocks], 1):
        started = time.monotonic()
        # Environments of EPs have packages of their own versions.
        pinned = {"PIP_CONSTRAINT": str(ROOT / "constraints.txt")} if "pip install" in block.text else {}
        # Every command is shown before it runs, so that a failure says which one it was.
        traced = replace(block, text=f"set -x\n{block.text}")
        done = run_block(traced, empty, {**env, **pinned})
        answer = "ok" if done.returncode == 0 else f"exit {done.returncode}"
        print(
            f"block {number}: {answer} in {time.monotonic() - started:.0f} s: {block.text.splitlines()[0]}", flush=True
        )
        if done.returncode:
            failed += 1
            print(done.stdout, flush=True)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path, help="a wheel that was built already")
    parser.add_argument("--blocks", type=int, help="run only so many blocks")
    parser.add_argument("--keep", type=Path, help="work in this new folder and keep it")
    given = parser.parse_args()
    if given.keep is not None:
        given.keep.mkdir()
        return int(follow(given.keep.resolve(), given.wheel, given.blocks) > 0)
    with tempfile.TemporaryDirectory(prefix="winml-readme-") as folder:
        return int(follow(Path(folder), given.wheel, given.blocks) > 0)


if __name__ == "__main__":
    sys.exit(main())
