"""How much disk an installation takes: the wheel of this repository in a fresh environment, package by package.

    python benchmarks/install_size.py [--extra qnn] [--wheel FILE] [--limit 250]

Sizes are what the files take on disk, compiled modules and the environment's own pip included, in units of 1024 x 1024
bytes, as `du -m` counts. Exit 1 above the limit, which is the one of docs/decisions/0026-install-size.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from try_readme import build_wheel, make_environment  # noqa: E402 - a script beside this one

LIMIT_MB = 250
_PATHS = "import json, sysconfig; print(json.dumps(sysconfig.get_paths()['purelib']))"


def disk_bytes(path: Path) -> int:
    """What a file, or everything below a folder, takes on disk."""
    found = [path, *path.rglob("*")] if path.is_dir() and not path.is_symlink() else [path]
    return sum(_allocated(one) for one in found)


def _allocated(path: Path) -> int:
    stat = path.lstat()
    blocks: int | None = getattr(stat, "st_blocks", None)  # Windows does not say
    return stat.st_size if blocks is None else blocks * 512


def install(folder: Path, wheel: Path, extra: str | None = None) -> Path:
    """Install the wheel into a fresh environment below a folder; returns its `site-packages`."""
    env = make_environment(folder, wheel)
    python = Path(env["PATH"].split(os.pathsep)[0]) / "python"
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    words = ["-m", "pip", "install", "--quiet", "--constraint", str(ROOT / "constraints.txt"), wanted]
    subprocess.run([python, *words], env=env, check=True)
    asked = subprocess.run([python, "-c", _PATHS], env=env, check=True, capture_output=True, text=True)
    return Path(json.loads(asked.stdout))


def measure(packages: Path) -> dict[str, int]:
    """Bytes by entry of `site-packages`, the largest first."""
    sizes = {entry.name: disk_bytes(entry) for entry in packages.iterdir()}
    return dict(sorted(sizes.items(), key=lambda item: -item[1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extra", help="install the package with this extra")
    parser.add_argument("--wheel", type=Path, help="a wheel that was built already")
    parser.add_argument("--limit", type=int, default=LIMIT_MB, help="MB above which this ends with 1")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="winml-size-") as name:
        folder = Path(name)
        sizes = measure(install(folder, given.wheel or build_wheel(folder), given.extra))
    total = sum(sizes.values()) / 2**20
    for entry, size in list(sizes.items())[:12]:
        print(f"{size / 2**20:7.1f} MB  {entry}")
    print(f"{total:7.1f} MB  in all {len(sizes)} entries (limit {given.limit})")
    return int(total > given.limit)


if __name__ == "__main__":
    sys.exit(main())
