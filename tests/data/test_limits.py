"""Files that claim or hold more than anybody wants in memory."""

from __future__ import annotations

import io
import struct
import tracemalloc
import wave
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from winml.modelkit.core import limits
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import DataError
from winml.modelkit.data import images, tables
from winml.modelkit.data.audio import SpeechEncoder
from winml.modelkit.data.dataset import open_dataset
from winml.modelkit.data.image_config import Steps
from winml.modelkit.evaluation import kept_outputs
from winml.modelkit.graph.inputs import InputSpec, from_npz

X = InputSpec("x", "tensor(float)", ("batch", None))
MIB = 2**20


def member(shape: tuple[int, ...], values: int, dtype: str = "<f4") -> bytes:
    """An array whose header says one shape and that holds so many bytes of zeros."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": dtype, "fortran_order": False, "shape": shape})
    return head.getvalue() + bytes(values)


def archive(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as stream:
        for name, content in members.items():
            stream.writestr(f"{name}.npy", content)
    return path


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of 1 MiB, so that bombs need not be real ones."""
    monkeypatch.setenv(limits.VARIABLE, str(MIB))


def peak(call: Any) -> int:
    """The most memory that a call had at once, which ends in a DataError."""
    tracemalloc.start()
    with pytest.raises(DataError):
        call()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


@pytest.mark.usefixtures("small")
def test_inputs_larger_than_a_sample_are_refused_before_they_are_read(tmp_path: Path) -> None:
    bomb = archive(tmp_path / "d.npz", x=member((8, MIB), 32 * MIB))
    assert bomb.stat().st_size < 64 * 1024
    with pytest.raises(DataError, match=r"would take 32\.0 MiB, more than 1\.0 MiB") as caught:
        from_npz(bomb, [X])
    assert "--max-sample" in (caught.value.hint or "")
    assert peak(lambda: from_npz(bomb, [X])) < MIB
    assert peak(lambda: open_dataset(DataSection(str(bomb)), [X], model_folder=None, labels=False)) < MIB


@pytest.mark.usefixtures("small")
def test_arrays_that_are_not_used_are_not_read(tmp_path: Path) -> None:
    path = archive(tmp_path / "d.npz", x=member((2, 3), 24), other=member((32 * MIB,), 32 * MIB, "|u1"))
    tracemalloc.start()
    assert from_npz(path, [X])["x"].shape == (2, 3)
    data = open_dataset(DataSection(str(path)), [X], model_folder=None, labels=False)
    assert [sample.inputs["x"].shape for sample in data] == [(1, 3), (1, 3)]
    assert tracemalloc.get_traced_memory()[1] < MIB
    tracemalloc.stop()


@pytest.mark.parametrize(
    "content",
    [
        member((2**40, 2**40), 24),
        member((2, 4), 24),
        member((-1, 3), 24),
        member((2, 3), 24).replace(b"'fortran_order'", b"'fortran_ord\xff\xfe'"),
        b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 60_000,
        b"\x93NUMPY\x01\x00\x10\x27" + b"(" * 9_000 + b" " * 1_000,
        b"\x93NUMPY\x03\x00",
        b"",
        member((2, 3), 24, "|O"),
    ],
)
def test_headers_that_lie_or_are_none_are_wrong_data(tmp_path: Path, content: bytes) -> None:
    path = archive(tmp_path / "d.npz", x=content)
    for call in (
        lambda: from_npz(path, [X]),
        lambda: open_dataset(DataSection(str(path)), [X], model_folder=None, labels=False),
        lambda: kept_outputs.read(path),
    ):
        with pytest.raises(DataError):
            call()


def test_damaged_deflate_is_wrong_data(tmp_path: Path) -> None:
    path = archive(tmp_path / "d.npz", x=member((2000, 3), 24_000))
    raw = bytearray(path.read_bytes())
    for at in range(60, len(raw) - 100, 3):
        path.write_bytes(bytes(raw[:at]) + bytes([raw[at] ^ 0x5A]) + bytes(raw[at + 1 :]))
        for call in (lambda: from_npz(path, [X]), lambda: kept_outputs.read(path)):
            try:
                call()
            except DataError as error:
                assert error.message


def test_rows_without_content_are_not_counted_for_ever(tmp_path: Path) -> None:
    path = archive(tmp_path / "d.npz", x=member((10**15, 0), 0))
    with pytest.raises(DataError, match="samples, more than"):
        open_dataset(DataSection(str(path), limit=3), [X], model_folder=None, labels=False)


def png(width: int, height: int) -> bytes:
    """A picture of so many white pixels, which deflate makes small."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    packed = zlib.compress(b"\0" * 1024, 9)
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def test_pixels_are_counted_before_they_are_decoded() -> None:
    assert peak(lambda: images.decode_image(png(60_000, 60_000), "RGB", "a picture")) < 4 * MIB
    with pytest.raises(DataError, match=r"60000 x 60000 pixels would take 13\.4 GiB"):
        images.decode_image(png(60_000, 60_000), "RGB", "a picture")


@pytest.mark.parametrize(
    "content", [b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", b"", b"GIF89a", png(3, 3)[:40]]
)
def test_only_formats_that_are_known_are_decoded(content: bytes) -> None:
    with pytest.raises(DataError, match="not a readable image"):
        images.decode_image(content, "RGB", "a picture")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("steps", [{"resize": (4000, 4000)}, {"resize": 4000}, {"crop": (4000, 4000)}])
def test_a_processor_cannot_make_an_image_larger_than_a_sample(steps: dict[str, Any]) -> None:
    from PIL import Image

    with pytest.raises(DataError, match=r"4000 x 4000 pixels would take"):
        images.pixels(Image.new("RGB", (8, 8)), Steps(**{**_steps(), **steps}), channels=3)


def _steps() -> dict[str, Any]:
    return {"resample": 2, "resize": None, "crop": None, "scale": None, "mean": None, "std": None}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("name", "first"), [("d.csv", b"a,b"), ("d.jsonl", b'{"a": 1}'), ("d.txt", b"a,b")])
def test_a_line_is_read_no_further_than_a_line_is_long(tmp_path: Path, name: str, first: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(first + b"\n" + b"x" * (4 * MIB))
    with pytest.raises(DataError, match=r"line 2 of .* is longer than"):
        list(tables._rows(path))


@pytest.mark.usefixtures("small")
def test_a_file_that_is_one_sample_is_read_no_further_than_a_sample(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(bytes(2 * MIB))
    with pytest.raises(DataError, match=r"is larger than 1\.0 MiB"):
        limits.read_sample(tmp_path / "a.png", "`a.png`")


def test_a_recording_is_not_filled_up_to_what_a_model_of_others_asks_for() -> None:
    raw = io.BytesIO()
    with wave.open(raw, "wb") as stream:
        stream.setnchannels(1)
        stream.setsampwidth(2)
        stream.setframerate(16_000)
        stream.writeframes(bytes(32))
    encoder = SpeechEncoder(InputSpec("input_values", "tensor(float)", (1, 2**33)), None, 16_000, True, {})
    with pytest.raises(DataError, match=r"filled up to 8589934592 samples would take 64\.0 GiB"):
        encoder.encode(raw.getvalue(), "a recording")


def test_the_limit_can_be_set_and_reaches_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    import click

    from winml.modelkit.cli.options import max_sample_option

    monkeypatch.setenv(limits.VARIABLE, "7")
    click.command()(max_sample_option(lambda: None)).main(["--max-sample", "2G"], standalone_mode=False)
    assert limits.sample_bytes() == 2 * 2**30
