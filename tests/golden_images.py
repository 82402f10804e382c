"""What transformers' numpy image processors make of two images, so that ours can be held against it.

`python tests/golden_images.py`, with transformers 4.57 and Pillow, writes the fixture again.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

FIXTURE = Path(__file__).parent / "data" / "golden_images.npz"
_PLAIN = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}

CASES: dict[str, dict[str, Any]] = {
    "vit": {"image_processor_type": "ViTImageProcessor", "size": {"height": 9, "width": 7}, **_PLAIN},
    "vit_one_number": {"feature_extractor_type": "ViTFeatureExtractor", "size": 8},
    "vit_raw": {"image_processor_type": "ViTImageProcessorFast", "size": 8, "do_rescale": False, "resample": 0},
    "vit_0_to_1": {"image_processor_type": "ViTImageProcessor", "size": 8, "do_normalize": False, "resample": 1},
    "deit": {"image_processor_type": "DeiTImageProcessor", "size": 12, "crop_size": 7, "image_mean": 0.4},
    "convnext": {"image_processor_type": "ConvNextImageProcessor", "size": 8, "crop_pct": 0.875, "resample": 3},
    "convnext_default": {"feature_extractor_type": "ConvNextFeatureExtractor", "size": {"shortest_edge": 9}, **_PLAIN},
    "clip": {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 11}, "crop_size": 8},
    "clip_small": {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 5}, "crop_size": 8},
    "clip_no_resize": {"image_processor_type": "CLIPImageProcessor", "do_resize": False, "crop_size": 9},
    "bit": {"image_processor_type": "BitImageProcessor", "size": 10, "crop_size": {"height": 6, "width": 9}, **_PLAIN},
    "mobilenet": {"image_processor_type": "MobileNetV2ImageProcessor", "size": 10, "crop_size": 7},
    "siglip": {
        "image_processor_type": "SiglipImageProcessor",
        "size": {"height": 6, "width": 6},
        "do_convert_rgb": True,
    },
}
SIZES = {"wide": (23, 41), "tall": (30, 17)}


def image(height: int, width: int) -> np.ndarray:
    """A picture with edges and slopes in every channel."""
    rows, columns = np.mgrid[:height, :width]
    red = (rows * 11 + columns * 3) % 256
    green = (rows * columns * 5) % 256
    blue = np.where((rows // 4 + columns // 5) % 2, 230, 20)
    return np.stack([red, green, blue], axis=-1).astype(np.uint8)


def png(height: int, width: int) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(image(height, width)).save(stream, "png")
    return stream.getvalue()


def _write() -> None:
    import transformers

    made = {}
    for name, config in CASES.items():
        kind = config.get("image_processor_type") or config["feature_extractor_type"]
        kind = kind.replace("FeatureExtractor", "ImageProcessor").removesuffix("Fast")
        processor = getattr(transformers, kind)(**{k: v for k, v in config.items() if not k.endswith("_type")})
        for size, shape in SIZES.items():
            made[f"{name}.{size}"] = processor(image(*shape), return_tensors="np")["pixel_values"][0]
    np.savez_compressed(FIXTURE, **made)


if __name__ == "__main__":
    _write()
