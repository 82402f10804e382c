"""Spectrograms: where a tone lies, and that they are transformers' own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from winml.modelkit.core.errors import DataError
from winml.modelkit.data.spectrogram import EXTRACTORS, kaldi_filters, slaney_filters

HERE = Path("preprocessor_config.json")


def tone(hertz: float, samples: int = 16_000) -> np.ndarray:
    return np.sin(2 * np.pi * hertz * np.arange(samples) / 16_000).astype(np.float32)


def mel(hertz: float) -> float:
    return 1127 * np.log(1 + hertz / 700)


@pytest.mark.parametrize("hertz", [300.0, 1000.0, 4000.0])
def test_a_tone_is_loudest_in_its_own_band(hertz: float) -> None:
    made = EXTRACTORS["ASTFeatureExtractor"]({"do_normalize": False, "max_length": 90}, HERE).features(tone(hertz))
    assert made.shape == (90, 128)
    centres = np.linspace(mel(20), mel(8000), 130)[1:-1]
    band = int(made[40].argmax())
    # The bands lie closer together than the frequencies of a window of 25 ms.
    assert abs(centres[band] - mel(hertz)) < mel(hertz + 60) - mel(hertz)
    logs = EXTRACTORS["WhisperFeatureExtractor"]({"chunk_length": 1}, HERE).features(tone(hertz))
    assert logs.shape == (80, 100)
    # Cut at 8 decades of power below the loudest, a quarter each.
    assert logs.max() - logs.min() == pytest.approx(2.0)


def test_filters_have_the_area_and_the_range_that_they_should() -> None:
    slaney = slaney_filters(201, 80, 16_000)
    assert slaney.shape == (201, 80)
    # Each has an area of 1 over hertz, where bins of 40 Hz are fine enough to see it.
    assert slaney[:, -20:].sum(axis=0) * 40 == pytest.approx(np.ones(20), abs=0.02)
    kaldi = kaldi_filters(257, 128, 16_000, 20.0)
    assert kaldi[0].max() == 0
    assert 0.5 < kaldi.max() <= 1


def test_a_short_recording_is_filled_up_and_a_long_one_cut() -> None:
    extractor = EXTRACTORS["ASTFeatureExtractor"]({"max_length": 20, "do_normalize": False}, HERE)
    assert (extractor.features(tone(500, 400))[1:] == 0).all()
    assert (extractor.features(tone(500))[-1] != 0).any()
    with pytest.raises(DataError, match="fewer than the 400 of one moment"):
        extractor.features(tone(500, 399))


@pytest.mark.parametrize("values", [{"n_fft": 0}, {"hop_length": "x"}, {"feature_size": 1.5}, {"sampling_rate": True}])
def test_settings_that_mean_nothing_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(DataError, match="of `preprocessor_config.json` must be"):
        EXTRACTORS["WhisperFeatureExtractor"](values, HERE)


@pytest.mark.slow
@pytest.mark.hf
@pytest.mark.filterwarnings("ignore:At least one mel filter")
@pytest.mark.parametrize("name", list(EXTRACTORS))
def test_features_are_those_of_transformers(name: str) -> None:
    import transformers

    wave = (np.random.default_rng(0).standard_normal(20_000) * 0.1).astype(np.float32)
    extractor = getattr(transformers, name)()
    right = extractor(wave, sampling_rate=16_000, return_tensors="np")[extractor.model_input_names[0]][0]
    made = EXTRACTORS[name](json.loads(extractor.to_json_string()), HERE).features(wave)
    np.testing.assert_allclose(made, right, atol=2e-6)
