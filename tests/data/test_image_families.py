"""Image processors of models that see more than a square: equal to transformers' own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import data_zoo
from winml.modelkit.core.errors import DataError
from winml.modelkit.data import processor
from winml.modelkit.data.image_config import read_steps
from winml.modelkit.data.images import pixels


def made(folder: Path, edges: tuple[int, int], **config: Any) -> np.ndarray:
    """What is made of a grey image of this width and height."""
    from PIL import Image

    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return pixels(Image.new("RGB", edges, (51, 51, 51)), read_steps(path), channels=3)


def test_sam_fits_the_longest_edge_and_fills_up_with_zeros(tmp_path: Path) -> None:
    found = made(tmp_path, (8, 4), image_processor_type="SamImageProcessor", size={"longest_edge": 16},
                 pad_size={"height": 16, "width": 16}, do_normalize=False)  # fmt: skip
    assert found.shape == (3, 16, 16)
    assert found[:, :8] == pytest.approx(0.2)
    assert (found[:, 8:] == 0).all()


def test_dpt_keeps_proportions_near_its_size_in_whole_patches(tmp_path: Path) -> None:
    asked = {"image_processor_type": "DPTImageProcessor", "size": {"height": 98, "width": 98}, "ensure_multiple_of": 14}
    assert made(tmp_path, (61, 47), keep_aspect_ratio=True, **asked).shape == (3, 70, 98)
    assert made(tmp_path, (61, 47), **asked).shape == (3, 98, 98)


def test_edges_are_filled_up_or_cut_to_a_multiple(tmp_path: Path) -> None:
    assert made(tmp_path, (61, 47), image_processor_type="Mask2FormerImageProcessor").shape == (3, 800, 1056)
    assert made(tmp_path, (40, 90), image_processor_type="ViltImageProcessor").shape == (3, 608, 256)
    grown = made(tmp_path, (40, 90), image_processor_type="Swin2SRImageProcessor")
    assert grown.shape == (3, 96, 48)
    assert grown == pytest.approx(0.2)


def test_a_processor_that_is_saved_as_a_whole_has_its_part_read(tmp_path: Path) -> None:
    part = {"image_processor_type": "ViTImageProcessor", "size": {"height": 5, "width": 6}}
    whole = tmp_path / "processor_config.json"
    whole.write_text(json.dumps({"processor_class": "ViltProcessor", "image_processor": part}), encoding="utf-8")
    path = processor.find(tmp_path, "preprocessor_config.json")
    assert path == whole
    assert read_steps(path).resize == (5, 6)
    whole.write_text(json.dumps({"feature_extractor": {}}), encoding="utf-8")
    with pytest.raises(DataError, match="has no `image_processor`"):
        read_steps(whole)
    whole.write_text(json.dumps({"processor_class": "X"}), encoding="utf-8")
    assert processor.find(tmp_path, "preprocessor_config.json") is None


NAMES = (
    "DPT",
    "VideoMAE",
    "Sam",
    "MaskFormer",
    "Mask2Former",
    "Vilt",
    "LayoutLMv3",
    "RTDetr",
    "OwlViT",
    "Blip",
    "Swin2SR",
)


@pytest.mark.slow
@pytest.mark.hf
@pytest.mark.parametrize("size", [(61, 47), (40, 90)])
@pytest.mark.parametrize("name", NAMES)
def test_pixels_are_those_of_transformers(name: str, size: tuple[int, int], tmp_path: Path) -> None:
    import transformers
    from PIL import Image

    given = {"apply_ocr": False} if name == "LayoutLMv3" else {}
    theirs = getattr(transformers, f"{name}ImageProcessorPil")(**given)
    theirs.save_pretrained(tmp_path)
    noise = np.random.default_rng(0).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    image = Image.fromarray(noise)
    right = np.asarray(theirs([image] if name == "VideoMAE" else image, return_tensors="np")["pixel_values"])
    found = pixels(image, read_steps(tmp_path / "preprocessor_config.json"), channels=3)
    np.testing.assert_allclose(found, right.reshape(right.shape[-3:]), atol=1e-6)


def test_frames_of_a_folder_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    from winml.modelkit.core.config import DataSection
    from winml.modelkit.data.arrays import PlainInput
    from winml.modelkit.data.samples import SampleRequest
    from winml.modelkit.data.video import video_encoder

    data_zoo.image_processor(tmp_path)
    (tmp_path / "frames").mkdir()
    for name, shade in (("b", 255), ("a", 0), ("c", 51)):
        data_zoo.image(tmp_path / "frames" / f"{name}.png", (9, 9), shade)
    spec = PlainInput("pixel_values", "float32", ("batch", 5, 3, "height", "width"))
    encoder = video_encoder(SampleRequest(DataSection("x"), tmp_path, [spec], tmp_path, labels=False))
    found = encoder.video(tmp_path / "frames").inputs["pixel_values"]
    assert found.shape == (1, 5, 3, 8, 8)
    assert found[0, :, 0, 0, 0] == pytest.approx([0, 0, 1, 0.2, 0.2])
