"""Text to audio: how far the spectrum of what a model says is from that of a recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data import processor
from winml.modelkit.data.samples import Sample
from winml.modelkit.data.spectrogram import power_spectrum
from winml.modelkit.evaluation.labels import CONFIG
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task

WINDOW, HOP = 1024, 256
_FLOOR = 1e-8
"""Power that counts as silence; decibels have no end below."""

Floats = npt.NDArray[np.float64]


def _decibels(wave: Floats) -> Floats:
    power = power_spectrum(wave, window=np.hanning(WINDOW + 1)[:-1], hop=HOP, size=WINDOW, centred=False)
    made: Floats = 10 * np.log10(np.maximum(power, _FLOOR))
    return made


def log_spectral_distance(made: Floats, right: Floats) -> float:
    """The mean over moments of the root mean square over frequencies, in decibels; over the shorter of the two."""
    length = max(WINDOW, min(len(made), len(right)))
    first, second = (_decibels(np.pad(wave[:length], (0, max(0, length - len(wave))))) for wave in (made, right))
    return float(np.sqrt(((first - second) ** 2).mean(axis=1)).mean())


@dataclass(frozen=True)
class SoundScorer:
    """Judges a wave moment by moment, as it is timed: nothing is stretched."""

    output: str
    rate_hz: int | None
    notes: tuple[str, ...]

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        label: Any = sample.label
        if not isinstance(label, dict) or not isinstance(label.get("samples"), np.ndarray):
            raise DataError(f"the label of {sample.where} must be a recording")
        if self.rate_hz is not None and self.rate_hz != label["rate_hz"]:
            raise DataError(
                f"the recording of {sample.where} has {label['rate_hz']} samples per second but the model makes "
                f"{self.rate_hz}",
                hint=f"resample it, for example with `ffmpeg -i IN -ar {self.rate_hz} OUT.wav`",
            )
        wave = np.asarray(runs[0][self.output], np.float64)
        if wave.size < 2 or wave.size != wave.shape[-1]:
            raise DataError(
                f"output `{self.output}` has shape {list(wave.shape)}, which is no wave",
                hint="a spectrogram needs the model's vocoder behind it; name the output with the wave: "
                "`--output-name NAME`",
            )
        right = label["samples"].astype(np.float64)
        if not np.isfinite(wave).all():
            return Scored({"distance": None, "duration": None}, None)
        made = wave.reshape(-1)
        values = {
            "distance": log_spectral_distance(made, right),
            "duration": abs(len(made) - len(right)) / len(right),
        }
        return Scored(values, {"samples": len(made)})


def _scorer(setting: Setting) -> SoundScorer:
    output, note = setting.pick("waveform", "audio", "audio_values")
    path = processor.find(setting.folder, CONFIG)
    rate = processor.read_object(path).get("sampling_rate") if path else None
    known = rate if type(rate) is int else None
    said = None if known else f"{CONFIG} names no `sampling_rate`, so recordings are taken as having the model's"
    return SoundScorer(output, known, tuple(n for n in (note, said) if n))


TASK = Task(
    name="text-to-audio",
    summary="a recording per text",
    metrics=(
        Metric("log_spectral_distance_db", "number", "distance", lower=True),
        Metric("duration_error", "number", "duration", lower=True),
    ),
    scorer=_scorer,
    form="spoken",
    agreement=False,
)
