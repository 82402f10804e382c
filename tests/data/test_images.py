"""Images become what transformers makes of them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from golden_images import CASES, FIXTURE, SIZES, image, png
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.image_config import read_steps
from winml.modelkit.data.images import decode_image, image_encoder, pixels
from winml.modelkit.data.samples import SampleRequest
from winml.modelkit.graph.inputs import InputSpec

COLOUR = InputSpec("pixel_values", "tensor(float)", ("batch", 3, 8, 8))
SIZE_8 = {"size": {"height": 8, "width": 8}}


def written(folder: Path, config: Any) -> Path:
    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def wanted(folder: Path | None, spec: InputSpec = COLOUR) -> SampleRequest:
    return SampleRequest(DataSection("images"), Path("images"), (spec,), folder, labels=False, form="joined")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", CASES)
def test_pixels_are_those_of_transformers(case: str, size: str, tmp_path: Path) -> None:
    steps = read_steps(written(tmp_path, CASES[case]))
    with np.load(FIXTURE) as golden:
        expected = golden[f"{case}.{size}"]
    made = pixels(decode_image(png(*SIZES[size]), "RGB", "it"), steps, channels=3)
    assert made.shape == expected.shape
    np.testing.assert_allclose(made, expected, rtol=0, atol=1e-6)


def test_large_convnext_images_are_squeezed_and_small_ones_cropped(tmp_path: Path) -> None:
    for edge, resize, crop in ((384, (384, 384), None), (224, 256, (224, 224))):
        steps = read_steps(written(tmp_path, {"image_processor_type": "ConvNextImageProcessor", "size": edge}))
        assert (steps.resize, steps.crop) == (resize, crop)


def test_a_config_without_a_type_needs_its_size_in_full(tmp_path: Path) -> None:
    assert read_steps(written(tmp_path, SIZE_8)).resize == (8, 8)
    with pytest.raises(DataError, match="neither an `image_processor_type` nor"):
        read_steps(written(tmp_path, {"size": 8}))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"image_processor_type": "EfficientNetImageProcessor"},
            "`EfficientNetImageProcessor`, which is not supported",
        ),
        ({**SIZE_8, "do_flip_channel_order": True}, "asks for `do_flip_channel_order`"),
        ({"size": {"height": 8}}, "hold `height` and `width`, or `shortest_edge`"),
        ({"size": {"height": 8, "width": "8"}}, "be a size in pixels"),
        ({"size": {"longest_edge": 8}}, "hold `height` and `width`, or `shortest_edge`"),
        ({**SIZE_8, "image_mean": ["a"]}, "be a list of numbers"),
        ({**SIZE_8, "rescale_factor": 0}, "be a number above 0"),
        ({**SIZE_8, "do_resize": "yes"}, "be true or false"),
        ([], "must hold a JSON object"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(config: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_steps(written(tmp_path, config))


def test_an_image_model_without_a_processor_says_what_to_write(tmp_path: Path) -> None:
    for folder in (tmp_path, None):
        with pytest.raises(DataError, match=r"no preprocessor_config\.json") as caught:
            image_encoder(wanted(folder))
        assert "--processor" in (caught.value.hint or "")


def test_a_processor_above_the_onnx_folder_is_found(tmp_path: Path) -> None:
    written(tmp_path, SIZE_8)
    (tmp_path / "onnx").mkdir()
    assert image_encoder(wanted(tmp_path / "onnx")).steps.resize == (8, 8)


def test_channels_may_be_last_grey_or_open(tmp_path: Path) -> None:
    written(tmp_path, SIZE_8)
    for shape, expected in [
        ((1, 8, 8, 3), (1, 8, 8, 3)),
        (("n", 1, 8, 8), (1, 1, 8, 8)),
        (("n", "c", "h", "w"), (1, 3, 8, 8)),
    ]:
        spec = InputSpec("x", "tensor(float)", shape)
        assert image_encoder(wanted(tmp_path, spec)).image(png(9, 11), "it").inputs["x"].shape == expected
    with pytest.raises(DataError, match="4 channels"):
        image_encoder(wanted(tmp_path, InputSpec("x", "tensor(float)", (1, 4, 8, 8))))


def test_half_precision_models_get_half_precision(tmp_path: Path) -> None:
    written(tmp_path, SIZE_8)
    spec = InputSpec("x", "tensor(float16)", (1, 3, 8, 8))
    assert image_encoder(wanted(tmp_path, spec)).image(png(8, 8), "it").inputs["x"].dtype == np.float16


def test_a_size_the_model_does_not_take_is_refused(tmp_path: Path) -> None:
    written(tmp_path, {"size": {"height": 7, "width": 8}})
    with pytest.raises(DataError, match=r"must have shape \[batch, 3, 8, 8\] but `a.png` has \[1, 3, 7, 8\]"):
        image_encoder(wanted(tmp_path)).image(png(8, 8), "`a.png`")


def test_means_must_be_as_many_as_channels(tmp_path: Path) -> None:
    written(tmp_path, {**SIZE_8, "image_mean": [0.1, 0.2, 0.3]})
    with pytest.raises(DataError, match="3 numbers but the model takes 1 channels"):
        image_encoder(wanted(tmp_path, InputSpec("x", "tensor(float)", (1, 1, 8, 8))))


def _bytes(picture: Image.Image, kind: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, kind, **options)
    return stream.getvalue()


def test_palettes_alpha_and_turned_images_are_read_as_seen(tmp_path: Path) -> None:
    steps = read_steps(written(tmp_path, {**SIZE_8, "do_resize": False, "do_rescale": False, "do_normalize": False}))
    plain = Image.fromarray(image(8, 12))
    alpha = plain.copy()
    alpha.putalpha(128)
    seen = np.asarray(plain).transpose(2, 0, 1)
    np.testing.assert_array_equal(pixels(decode_image(_bytes(alpha, "png"), "RGB", "it"), steps, channels=3), seen)
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = pixels(decode_image(_bytes(plain, "png", exif=exif), "RGB", "it"), steps, channels=3)
    assert turned.shape == (3, 12, 8)
    np.testing.assert_array_equal(turned, np.rot90(seen, -1, axes=(1, 2)))


@pytest.mark.parametrize("content", [b"", b"hello", png(8, 8)[:60]])
def test_what_is_no_image_is_named(content: bytes, tmp_path: Path) -> None:
    steps = read_steps(written(tmp_path, SIZE_8))
    with pytest.raises(DataError, match="`a.png` is not a readable image"):
        pixels(decode_image(content, "RGB", "`a.png`"), steps, channels=3)


@pytest.mark.parametrize(
    ("kind", "size", "given", "made"),
    [
        ("Detr", None, (50, 77), (1232, 800)),
        ("Detr", {"shortest_edge": 100, "longest_edge": 133}, (300, 20), (9, 133)),
        ("Detr", {"shortest_edge": 100, "longest_edge": 133}, (77, 50), (86, 133)),
        ("Detr", {"height": 90, "width": 60}, (300, 20), (90, 60)),
        ("Yolos", {"shortest_edge": 100, "longest_edge": 133}, (50, 77), (128, 80)),
        ("Segformer", None, (50, 77), (512, 512)),
    ],
)
def test_detectors_keep_proportions_up_to_a_longest_edge(
    kind: str, size: Any, given: tuple[int, int], made: tuple[int, int], tmp_path: Path
) -> None:
    # Sizes as transformers 5.22 makes them.
    config = {"image_processor_type": f"{kind}ImageProcessor", "size": size, "do_pad": kind != "Segformer"}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(config))
    spec = InputSpec("x", "tensor(float)", ("batch", 3, "height", "width"))
    sample = image_encoder(wanted(tmp_path, spec)).image(png(*given[::-1]), "it")
    assert sample.inputs["x"].shape[2:] == made
    assert sample.size == given[::-1]


def test_a_detector_of_one_size_squeezes_images_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "preprocessor_config.json").write_text('{"image_processor_type": "YolosImageProcessor"}')
    spec = InputSpec("pixel_values", "tensor(float)", (1, 3, 32, 48))
    mask = InputSpec("pixel_mask", "tensor(int64)", (1, 32, 48))
    encoder = image_encoder(SampleRequest(DataSection("images"), Path("images"), (spec, mask), tmp_path, labels=False))
    made = encoder.image(png(9, 11), "it").inputs
    assert made["pixel_values"].shape == (1, 3, 32, 48)
    assert made["pixel_mask"].all()
    assert encoder.note is not None
    assert "stretched to 32 x 48" in encoder.note


def test_an_image_that_would_vanish_is_refused(tmp_path: Path) -> None:
    config = {"image_processor_type": "YolosImageProcessor", "size": {"shortest_edge": 100, "longest_edge": 133}}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(config))
    spec = InputSpec("x", "tensor(float)", ("batch", 3, "height", "width"))
    with pytest.raises(DataError, match="300 x 20 is too narrow"):
        image_encoder(wanted(tmp_path, spec)).image(png(20, 300), "it")
