"""Recordings as a model takes them: waves read by the standard library, at the rate the model was made for.

Models take the wave itself, or a spectrogram of it as `data/spectrogram.py` makes it.
"""

from __future__ import annotations

import io
import struct
import wave
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.limits import check_sample
from winml.modelkit.data import processor
from winml.modelkit.data.arrays import as_input
from winml.modelkit.data.image_config import CONFIG
from winml.modelkit.data.samples import SampleRequest
from winml.modelkit.data.spectrogram import EXTRACTORS, Extractor
from winml.modelkit.graph.inputs import Arrays, Input
from winml.modelkit.store import digest

VALUES, FEATURES, MASK = "input_values", "input_features", "attention_mask"
RATE_HZ = 16_000
"""Where the config is silent, as in transformers."""
_WAVE = "Wav2Vec2FeatureExtractor"
_EXTRACTORS = (_WAVE, *EXTRACTORS)
_TINY = 1e-7


def _samples(frames: bytes, width: int) -> npt.NDArray[np.float32]:
    """Samples from -1 to 1; 8-bit ones are stored without a sign, 24-bit ones have no type of their own."""
    if width == 1:
        return ((np.frombuffer(frames, np.uint8).astype(np.float64) - 128) / 128).astype(np.float32)
    raw = np.frombuffer(frames, np.uint8).reshape(-1, width)
    wide = np.zeros((len(raw), 4), np.uint8)
    wide[:, 4 - width :] = raw
    return (wide.view("<i4")[:, 0].astype(np.float64) / 2**31).astype(np.float32)


def read_wave(content: bytes, where: str) -> tuple[int, npt.NDArray[np.float32]]:
    """Samples per second, and the samples of one channel; several are averaged."""
    if (found := _read_floats(content, where)) is not None:
        return found
    try:
        with wave.open(io.BytesIO(content)) as stream:
            given, channels, width = stream.getframerate(), stream.getnchannels(), stream.getsampwidth()
            frames = stream.readframes(stream.getnframes())
    except (wave.Error, EOFError, ValueError, OSError, ArithmeticError, RuntimeError, struct.error) as error:
        raise DataError(
            f"{where} is not a readable WAV file: {error}",
            hint="supported: .wav with whole numbers or floats; no FLAC or MP3",
        ) from error
    if not 1 <= width <= 4 or channels < 1 or not frames or len(frames) % (width * channels):
        raise DataError(f"{where} holds no complete samples")
    mixed: npt.NDArray[np.float32] = _samples(frames, width).reshape(-1, channels).mean(axis=1)
    return given, mixed


_FLOAT, _EXTENSIBLE = 3, 0xFFFE
"""How a recording of floats is marked, and one that is described further on."""


def _read_floats(content: bytes, where: str) -> tuple[int, npt.NDArray[np.float32]] | None:
    """A recording of floats, which the standard library does not read; None when it is none."""
    layout, place = None, 12
    while content[:4] == b"RIFF" and place + 8 <= len(content):
        name, size = struct.unpack_from("<4sI", content, place)
        body = content[place + 8 : place + 8 + size]
        if name == b"fmt " and len(body) >= 16:
            kind, channels, rate_hz, _, _, bits = struct.unpack_from("<HHIIHH", body)
            inner = struct.unpack_from("<H", body, 24)[0] if kind == _EXTENSIBLE and len(body) >= 26 else kind
            if inner != _FLOAT or bits not in (32, 64) or not channels:
                return None
            layout = channels, rate_hz, bits // 8
        if name == b"data" and layout is not None:
            channels, rate_hz, width = layout
            if not body or len(body) % (width * channels):
                raise DataError(f"{where} holds no complete samples")
            samples = np.frombuffer(body, f"<f{width}").reshape(-1, channels).mean(axis=1).astype(np.float32)
            if not np.isfinite(samples).all():
                raise DataError(f"{where} holds samples that are no numbers")
            return rate_hz, samples
        place += 8 + size + size % 2
    return None


def _wave(content: bytes, rate_hz: int, where: str) -> npt.NDArray[np.float32]:
    given, samples = read_wave(content, where)
    if given != rate_hz:
        raise DataError(
            f"{where} has {given} samples per second but the model expects {rate_hz}",
            hint=f"resample it, for example with `ffmpeg -i IN -ar {rate_hz} OUT.wav`",
        )
    return samples


@dataclass(frozen=True)
class SpeechEncoder:
    """Recordings to the wave input of a model."""

    values: Input
    mask: Input | None
    rate_hz: int
    normalize: bool
    files: dict[str, str]

    def encode(self, content: bytes, where: str) -> Arrays:
        """The wave with mean 0 and variance 1 where the model wants that, filled up where its length is fixed."""
        made = _wave(content, self.rate_hz, where)
        if self.normalize:
            made = (made - made.mean()) / np.sqrt(made.var() + _TINY)
        length = self.values.shape[1]
        missing = length - len(made) if isinstance(length, int) else 0
        check_sample(missing * 8, f"{where}, filled up to {length} samples")
        if missing < 0:
            raise DataError(
                f"{where} has {len(made)} samples but the model takes {length}",
                hint="remove it, split it, or build the model for longer recordings",
            )
        arrays = {VALUES: as_input(np.pad(made, (0, missing)), self.values, where)}
        if self.mask is not None:
            used = np.pad(np.ones(len(made), np.int64), (0, missing))
            arrays[MASK] = as_input(used, self.mask, where)
        return arrays


@dataclass(frozen=True)
class SpectrogramEncoder:
    """Recordings to the spectrogram input of a model."""

    values: Input
    mask: Input | None
    extractor: Extractor
    files: dict[str, str]

    def encode(self, content: bytes, where: str) -> Arrays:
        made = self.extractor.features(_wave(content, self.extractor.rate_hz, where))
        arrays = {self.values.name: as_input(made, self.values, where)}
        if self.mask is not None:
            arrays[MASK] = as_input(np.ones(self.extractor.frames, np.int64), self.mask, where)
        return arrays


def takes_speech(inputs: Sequence[Input]) -> bool:
    """Whether a model takes a wave or its spectrogram, and nothing else but which part of it is filled up."""
    names = {i.name for i in inputs}
    return ({VALUES} <= names <= {VALUES, MASK}) or ({FEATURES} <= names <= {FEATURES, MASK})


def _settings(config: dict[str, Any], path: Path) -> tuple[int, bool]:
    kind = config.get("feature_extractor_type", _WAVE)
    if kind not in _EXTRACTORS:
        raise DataError(
            f"`{path}` is for `{kind}`, which is not supported", hint=f"supported: {', '.join(_EXTRACTORS)}"
        )
    rate_hz, normalize = config.get("sampling_rate", RATE_HZ), config.get("do_normalize", True)
    if type(rate_hz) is not int or rate_hz < 1 or not isinstance(normalize, bool):
        raise DataError(f"`{path}` must have a whole `sampling_rate` and `do_normalize` true or false")
    return rate_hz, normalize


def speech_encoder(wanted: SampleRequest) -> SpeechEncoder | SpectrogramEncoder:
    """The encoder for a model, by the feature extractor beside it."""
    inputs: dict[str, Any] = {i.name: i for i in wanted.inputs}
    if not takes_speech(wanted.inputs):
        words = ", ".join(f"`{name}`" for name in inputs)
        raise DataError(f"recordings need a model with the input `{VALUES}` or `{FEATURES}`; this one takes {words}")
    path = processor.find(wanted.folder, CONFIG)
    if path is None:
        raise DataError(
            f"recordings need the model's {CONFIG}, which holds their sampling rate and normalization",
            hint="put it beside the model or name its folder with `--processor DIR`",
        )
    config = processor.read_part(path, processor.SOUND)
    files, mask = {CONFIG: digest.of_file(path)}, inputs.get(MASK)
    kind = config.get("feature_extractor_type")
    if kind in EXTRACTORS:
        return SpectrogramEncoder(inputs.get(FEATURES) or inputs[VALUES], mask, EXTRACTORS[kind](config, path), files)
    if VALUES not in inputs:
        raise DataError(f"`{path}` names no extractor for `{FEATURES}`", hint=f"supported: {', '.join(EXTRACTORS)}")
    rate_hz, normalize = _settings(config, path)
    return SpeechEncoder(inputs[VALUES], mask, rate_hz, normalize, files)
