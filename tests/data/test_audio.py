from __future__ import annotations

import io
import json
import struct
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import data_zoo
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.audio import read_wave, speech_encoder
from winml.modelkit.data.samples import SampleRequest
from winml.modelkit.graph.inputs import InputSpec


def wanted(folder: Path, length: Any = "samples", *more: str, **config: Any) -> SampleRequest:
    (folder / "preprocessor_config.json").write_text(json.dumps(config))
    inputs = [InputSpec("input_values", "tensor(float)", ("batch", length))]
    inputs += [InputSpec(name, "tensor(int64)", ("batch", length)) for name in more]
    return SampleRequest(DataSection("x.jsonl"), Path("x.jsonl"), inputs, folder, labels=False)


def recording(frames: bytes, *, width: int = 2, channels: int = 1, rate_hz: int = 16_000) -> bytes:
    made = io.BytesIO()
    with wave.open(made, "wb") as stream:
        stream.setnchannels(channels)
        stream.setsampwidth(width)
        stream.setframerate(rate_hz)
        stream.writeframes(frames)
    return made.getvalue()


@pytest.mark.parametrize(
    ("width", "frames"),
    [(1, b"\xc0\x40"), (2, b"\x00\x40\x00\xc0"), (3, b"\x00\x00\x40\x00\x00\xc0"), (4, b"\0\0\0\x40\0\0\0\xc0")],
)
def test_samples_of_any_width_are_the_same_numbers(width: int, frames: bytes, tmp_path: Path) -> None:
    encoder = speech_encoder(wanted(tmp_path, do_normalize=False))
    assert encoder.encode(recording(frames, width=width), "it")["input_values"].tolist() == [[0.5, -0.5]]


def test_channels_are_averaged(tmp_path: Path) -> None:
    encoder = speech_encoder(wanted(tmp_path, do_normalize=False))
    assert encoder.encode(recording(b"\x00\x40\x00\x00", channels=2), "it")["input_values"].tolist() == [[0.25]]


def test_a_wave_is_normalized_before_it_is_filled_up(tmp_path: Path) -> None:
    encoder = speech_encoder(wanted(tmp_path, 4, "attention_mask"))
    made = encoder.encode(recording(b"\x00\x40\x00\xc0"), "it")
    np.testing.assert_allclose(made["input_values"], [[1, -1, 0, 0]], atol=1e-6)
    assert made["attention_mask"].tolist() == [[1, 1, 0, 0]]


def test_what_the_model_cannot_take_is_refused(tmp_path: Path) -> None:
    encoder = speech_encoder(wanted(tmp_path, 1))
    with pytest.raises(DataError, match="`a.wav` has 8000 samples per second but the model expects 16000"):
        encoder.encode(recording(b"\0\0", rate_hz=8000), "`a.wav`")
    with pytest.raises(DataError, match="has 2 samples but the model takes 1"):
        encoder.encode(recording(b"\0\0\0\0"), "it")
    with pytest.raises(DataError, match="is not a readable WAV file"):
        encoder.encode(b"ID3", "it")
    with pytest.raises(DataError, match="holds no complete samples"):
        encoder.encode(recording(b""), "it")


def test_other_models_and_extractors_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is for `SpeechT5FeatureExtractor`, which is not supported"):
        speech_encoder(wanted(tmp_path, feature_extractor_type="SpeechT5FeatureExtractor"))
    with pytest.raises(
        DataError, match="with the input `input_values` or `input_features`; this one takes `input_values`, `x`"
    ):
        speech_encoder(wanted(tmp_path, "samples", "x"))
    given = wanted(tmp_path)
    (tmp_path / "preprocessor_config.json").unlink()
    with pytest.raises(DataError, match="which holds their sampling rate"):
        speech_encoder(given)


def test_a_zoo_recording_is_read_back(tmp_path: Path) -> None:
    path = data_zoo.wave(tmp_path / "a.wav", [0.5, 0.25], 8000)
    encoder = speech_encoder(wanted(tmp_path, do_normalize=False, sampling_rate=8000))
    np.testing.assert_allclose(encoder.encode(path.read_bytes(), "it")["input_values"], [[0.5, 0.25]], atol=1e-4)


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("extensible", [False, True])
def test_a_recording_of_floats_is_read(width: int, extensible: bool) -> None:
    content = float_wave(np.asarray([[0.5, -0.5], [0.25, 0.75]]), 16_000, width, extensible=extensible)
    rate_hz, samples = read_wave(content, "r")
    assert rate_hz == 16_000
    assert samples.tolist() == [0.0, 0.5]
    with pytest.raises(DataError, match="r holds no complete samples"):
        read_wave(content[:-3], "r")
    with pytest.raises(DataError, match="r holds samples that are no numbers"):
        read_wave(float_wave(np.asarray([[np.nan]]), 16_000, width, extensible=extensible), "r")


def float_wave(samples: np.ndarray, rate_hz: int, width: int, *, extensible: bool) -> bytes:
    """A recording of floats, frame by channel; with a chunk that no reader needs before the samples."""
    channels, kind = samples.shape[1], 0xFFFE if extensible else 3
    layout = struct.pack("<HHIIHH", kind, channels, rate_hz, rate_hz * width, width * channels, width * 8)
    if extensible:
        layout += struct.pack("<HHIH", 22, width * 8, 0, 3) + bytes(14)
    body = samples.astype(f"<f{width}").tobytes()
    parts = [(b"fmt ", layout), (b"LIST", b"odd"), (b"data", body)]
    chunks = b"".join(name + struct.pack("<I", len(part)) + part + bytes(len(part) % 2) for name, part in parts)
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks
