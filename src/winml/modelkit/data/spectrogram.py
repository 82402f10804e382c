"""Spectrograms of recordings as feature extractors of transformers make them, with numpy alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.limits import check_sample

Floats = npt.NDArray[np.float64]
_KALDI_FLOOR = 1.192092955078125e-07
_PREEMPHASIS = 0.97
_BREAK_HZ, _BREAK_MEL, _LOG_STEP = 1000.0, 15.0, 27.0 / np.log(6.4)
"""Slaney's scale: even up to the break, logarithmic above."""


class Extractor(Protocol):
    """Makes the features of a recording."""

    @property
    def rate_hz(self) -> int: ...

    @property
    def frames(self) -> int:
        """Moments that a recording is cut or filled up to."""
        ...

    def features(self, wave: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]: ...


def _slaney_mels(hertz: Floats) -> Floats:
    high = _BREAK_MEL + np.log(np.maximum(hertz, _BREAK_HZ) / _BREAK_HZ) * _LOG_STEP
    return np.where(hertz < _BREAK_HZ, 3.0 * hertz / 200.0, high)


def _slaney_hertz(mels: Floats) -> Floats:
    high = _BREAK_HZ * np.exp((np.maximum(mels, _BREAK_MEL) - _BREAK_MEL) / _LOG_STEP)
    return np.where(mels < _BREAK_MEL, 200.0 * mels / 3.0, high)


def _triangles(places: Floats, corners: Floats) -> Floats:
    """Of each place, how much of it belongs to each filter between every third corner."""
    slopes = corners[None, :] - places[:, None]
    widths = np.diff(corners)
    made: Floats = np.maximum(0.0, np.minimum(-slopes[:, :-2] / widths[:-1], slopes[:, 2:] / widths[1:]))
    return made


def slaney_filters(bins: int, mels: int, rate_hz: int) -> Floats:
    """Filters of equal area from 0 to half the rate."""
    ends = _slaney_mels(np.asarray([0.0, rate_hz / 2]))
    corners = _slaney_hertz(np.linspace(ends[0], ends[1], mels + 2))
    filters = _triangles(np.linspace(0, rate_hz / 2, bins), corners)
    made: Floats = filters * (2.0 / (corners[2:] - corners[:-2]))[None]
    return made


def kaldi_filters(bins: int, mels: int, rate_hz: int, low_hz: float) -> Floats:
    """Triangles in mels, as Kaldi has them."""
    width = rate_hz / (2 * (bins - 1))
    places = 1127.0 * np.log(1.0 + width * np.arange(bins) / 700.0)
    ends = 1127.0 * np.log(1.0 + np.asarray([low_hz, rate_hz / 2]) / 700.0)
    return _triangles(places, np.linspace(ends[0], ends[1], mels + 2))


def _frames(wave: Floats, length: int, hop: int) -> Floats:
    check_sample(wave.size // hop * length * 8, "the frames of a recording")
    return np.lib.stride_tricks.sliding_window_view(wave, length)[::hop]


def power_spectrum(wave: Floats, *, window: Floats, hop: int, size: int, centred: bool) -> Floats:
    """Moments x frequencies; `centred` starts half a window before the recording, which is turned over there."""
    if centred:
        wave = np.pad(wave, len(window) // 2, mode="reflect")
    made: Floats = np.abs(np.fft.rfft(_frames(wave, len(window), hop) * window, size)) ** 2
    return made


@dataclass(frozen=True)
class WhisperExtractor:
    """Whisper's: 30 seconds of logarithms of mels, cut at 8 below the loudest."""

    rate_hz: int
    mels: int
    size: int
    hop: int
    samples: int

    @property
    def frames(self) -> int:
        return self.samples // self.hop

    def features(self, wave: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        filled = np.pad(wave[: self.samples].astype(np.float64), (0, max(0, self.samples - len(wave))))
        window = np.hanning(self.size + 1)[:-1]
        power = power_spectrum(filled, window=window, hop=self.hop, size=self.size, centred=True)[:-1]
        mels = power @ slaney_filters(self.size // 2 + 1, self.mels, self.rate_hz)
        logs = np.log10(np.maximum(mels, 1e-10))
        logs = (np.maximum(logs, logs.max() - 8.0) + 4.0) / 4.0
        made: npt.NDArray[np.float32] = logs.T.astype(np.float32)
        return made


@dataclass(frozen=True)
class ASTExtractor:
    """AST's: Kaldi's filter bank, normalized as the model was trained."""

    rate_hz: int
    mels: int
    frames: int
    mean: float
    std: float
    normalize: bool

    def features(self, wave: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        length, hop, size = int(0.025 * self.rate_hz), int(0.010 * self.rate_hz), 512
        if len(wave) < length:
            raise DataError(f"a recording has {len(wave)} samples, fewer than the {length} of one moment")
        frames = _frames(wave.astype(np.float64), length, hop)
        frames = frames - frames.mean(axis=1, keepdims=True)
        emphasized = np.concatenate(
            [frames[:, :1] * (1 - _PREEMPHASIS), frames[:, 1:] - _PREEMPHASIS * frames[:, :-1]], axis=1
        )
        power = np.abs(np.fft.rfft(emphasized * np.hanning(length), size)) ** 2
        mels = np.maximum(power @ kaldi_filters(size // 2 + 1, self.mels, self.rate_hz, 20.0), _KALDI_FLOOR)
        logs = np.log(mels)[: self.frames]
        filled = np.pad(logs, ((0, self.frames - len(logs)), (0, 0)))
        return ((filled - self.mean) / (self.std * 2) if self.normalize else filled).astype(np.float32)


def _number(config: dict[str, Any], key: str, default: float, path: Path, *, least: float = 1e-9) -> float:
    value = config.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < 1e9:
        raise DataError(f"`{key}` of `{path}` must be a number from {least:g} but got {value!r:.80}")
    return float(value)


def _whole(config: dict[str, Any], key: str, default: int, path: Path) -> int:
    value = _number(config, key, default, path, least=1)
    if value != int(value) or value > 1 << 24:
        raise DataError(f"`{key}` of `{path}` must be a whole number but got {value!r}")
    return int(value)


def _whisper(config: dict[str, Any], path: Path) -> WhisperExtractor:
    rate_hz = _whole(config, "sampling_rate", 16_000, path)
    samples = _whole(config, "chunk_length", 30, path) * rate_hz
    size, hop = _whole(config, "n_fft", 400, path), _whole(config, "hop_length", 160, path)
    return WhisperExtractor(rate_hz, _whole(config, "feature_size", 80, path), size, hop, samples)


def _ast(config: dict[str, Any], path: Path) -> ASTExtractor:
    return ASTExtractor(
        _whole(config, "sampling_rate", 16_000, path),
        _whole(config, "num_mel_bins", 128, path),
        _whole(config, "max_length", 1024, path),
        _number(config, "mean", -4.2677393, path, least=-1e9),
        _number(config, "std", 4.5689974, path),
        config.get("do_normalize", True) is not False,
    )


EXTRACTORS: dict[str, Callable[[dict[str, Any], Path], Extractor]] = {
    "WhisperFeatureExtractor": _whisper,
    "ASTFeatureExtractor": _ast,
}
"""Feature extractors that make spectrograms, by the name in preprocessor_config.json."""
