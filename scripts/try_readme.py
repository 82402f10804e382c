"""Follows the README as a newcomer: every `sh` block, in order, from an empty folder, in a fresh environment.

    python scripts/try_readme.py [--wheel FILE] [--blocks N] [--keep FOLDER]

The package is a wheel built here, which `pip` finds beside its index; the other packages are those of constraints.txt.
Exit 1 when a block fails; what it said is shown.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)
TIMEOUT_S = 3600


def read_blocks(text: str) -> list[str]:
    """The `sh` blocks of a page in order."""
    return BLOCK.findall(text)


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
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WINML_", "VIRTUAL_ENV", "XDG_"))}
    return {
        **kept,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PIP_FIND_LINKS": found,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "WINML_CACHE": str(folder / "cache"),
        "WINML_KNOWLEDGE": str(folder / "knowledge"),
        "XDG_DATA_HOME": str(folder / "data"),
    }


def run_block(block: str, folder: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a block as one script that ends at the first command that fails."""
    return subprocess.run(
        ["sh", "-e", "-x", "-c", block],
        cwd=folder, env=env, text=True, encoding="utf-8", timeout=TIMEOUT_S,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def follow(folder: Path, wheel: Path | None, blocks: int | None = None) -> int:
    """Run the blocks of the README, or only the first ones; returns how many failed."""
    wheel = (wheel or build_wheel(folder)).resolve()
    env = make_environment(folder, wheel)
    empty = folder / "empty"
    empty.mkdir()
    failed = 0
    for number, block in enumerate(read_blocks((ROOT / "README.md").read_text(encoding="utf-8"))[:blocks], 1):
        started = time.monotonic()
        # Environments of EPs have packages of their own versions.
        pinned = {"PIP_CONSTRAINT": str(ROOT / "constraints.txt")} if "pip install" in block else {}
        done = run_block(block, empty, {**env, **pinned})
        answer = "ok" if done.returncode == 0 else f"exit {done.returncode}"
        print(f"block {number}: {answer} in {time.monotonic() - started:.0f} s: {block.splitlines()[0]}", flush=True)
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
