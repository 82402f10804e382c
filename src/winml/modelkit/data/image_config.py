"""The steps that a preprocessor_config.json, as Hugging Face writes it, requires."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.data import processor

CONFIG = processor.PREPROCESSOR
HINT = (
    f"put the model's {CONFIG} beside it or name its folder with `--processor DIR`; a minimal one is "
    '{"size": {"height": 224, "width": 224}, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}'
)
_KINDS = ("ImageProcessorFast", "ImageProcessorPil", "ImageProcessor", "FeatureExtractor")
_BILINEAR, _BICUBIC, _LAST_FILTER = 2, 3, 5
_HALF = (0.5, 0.5, 0.5)
_IMAGENET_MEAN, _IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_CLIP_MEAN, _CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
_WARP_FROM = 384
"""ConvNext squeezes images of this size and above instead of cropping them."""

_KNOWN = frozenset(
    {"do_resize", "do_center_crop", "do_rescale", "do_normalize", "do_convert_rgb"}
    | {"size", "crop_size", "crop_pct", "resample", "rescale_factor", "image_mean", "image_std"}
)
_SWITCHES = ("do_", "rescale_offset")
"""Keys that begin like this request a step."""
_ALONE = frozenset({"do_pad", "do_convert_annotations"})
"""Steps that do nothing to a single image without its annotations."""
_REDUCE = ("do_reduce_labels", "reduce_labels")


@dataclass(frozen=True)
class ProcessorFamily:
    """The defaults of a family of processors."""

    size: Any
    square: bool
    """Whether a size that is one number means both edges rather than the shortest."""
    crop_size: Any = None
    crop_pct: float | None = None
    resample: int = _BILINEAR
    mean: tuple[float, ...] = _HALF
    std: tuple[float, ...] = _HALF
    longest: int | None = None
    """The longest edge of images that keep their proportions."""
    multiple: int = 1
    """Edges of such images are cut to a multiple of this."""
    further: frozenset[str] = frozenset()
    """Further steps it supports."""
    round_up: bool = False
    """Edges are filled up to the multiple instead of cut."""
    divisor_key: str | None = None
    """The key that has the multiple."""
    fit: int | None = None
    """The longest edge, where the image is filled up to a square of it."""
    pad_multiple: int = 1
    """The image is filled up to a multiple of this by its own edge."""
    normalize: bool = True
    resize: bool = True
    longest_share: float | None = None
    """How much longer the longest edge may be than the shortest, where the config has no longest."""


FAMILIES: dict[str, ProcessorFamily] = {
    "ViT": ProcessorFamily(224, True),
    "DeiT": ProcessorFamily(256, True, crop_size=224, resample=_BICUBIC),
    "Siglip": ProcessorFamily(224, True, resample=_BICUBIC),
    "ConvNext": ProcessorFamily(384, False, crop_pct=224 / 256),
    "CLIP": ProcessorFamily(224, False, crop_size=224, resample=_BICUBIC, mean=_CLIP_MEAN, std=_CLIP_STD),
    "Bit": ProcessorFamily(224, False, crop_size=224, resample=_BICUBIC, mean=_CLIP_MEAN, std=_CLIP_STD),
    "MobileNetV1": ProcessorFamily(256, False, crop_size=224),
    "MobileNetV2": ProcessorFamily(256, False, crop_size=224),
    "Segformer": ProcessorFamily(512, True, mean=_IMAGENET_MEAN, std=_IMAGENET_STD, further=frozenset(_REDUCE)),
    "Detr": ProcessorFamily(800, False, mean=_IMAGENET_MEAN, std=_IMAGENET_STD, longest=1333, further=_ALONE),
    "Yolos": ProcessorFamily(
        800, False, mean=_IMAGENET_MEAN, std=_IMAGENET_STD, longest=1333, multiple=16, further=_ALONE
    ),
    "RTDetr": ProcessorFamily(
        [640, 640], True, mean=_IMAGENET_MEAN, std=_IMAGENET_STD, further=_ALONE, normalize=False
    ),
    **{
        name: ProcessorFamily(
            800, False, mean=_IMAGENET_MEAN, std=_IMAGENET_STD, longest=1333, multiple=32, round_up=True,
            divisor_key="size_divisor", further=_ALONE | frozenset(_REDUCE),
        )
        for name in ("MaskFormer", "Mask2Former")
    },
    "OwlViT": ProcessorFamily([768, 768], True, resample=_BICUBIC, mean=_CLIP_MEAN, std=_CLIP_STD),
    "Blip": ProcessorFamily([384, 384], True, resample=_BICUBIC, mean=_CLIP_MEAN, std=_CLIP_STD),
    "Vilt": ProcessorFamily(
        384, False, resample=_BICUBIC, longest=639, longest_share=1333 / 800, multiple=32, divisor_key="size_divisor",
        further=_ALONE,
    ),
    "LayoutLMv3": ProcessorFamily([224, 224], True),
    "VideoMAE": ProcessorFamily(224, False, crop_size=224, mean=_IMAGENET_MEAN, std=_IMAGENET_STD),
    "DPT": ProcessorFamily([384, 384], True, resample=_BICUBIC, divisor_key="ensure_multiple_of"),
    "Sam": ProcessorFamily(
        1024, False, mean=_IMAGENET_MEAN, std=_IMAGENET_STD, fit=1024, further=frozenset({"do_pad"})
    ),
    "VitPose": ProcessorFamily(
        [256, 192], True, mean=_IMAGENET_MEAN, std=_IMAGENET_STD, further=frozenset({"do_affine_transform"})
    ),
    "Swin2SR": ProcessorFamily(
        [1, 1], True, normalize=False, resize=False, pad_multiple=8, divisor_key="size_divisor",
        further=frozenset({"do_pad"}),
    ),
}  # fmt: skip
"""Processors whose steps are the ones below, by the first part of their name."""


@dataclass(frozen=True)
class Steps:
    """What happens to an image, in this order."""

    resize: int | tuple[int, int] | None
    """Size of the shortest edge, or height and width."""
    resample: int
    crop: tuple[int, int] | None
    scale: float | None
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None
    longest: int | None = None
    """With a shortest edge: what the longest may be, at the cost of the shortest."""
    multiple: int = 1
    reduce_labels: bool = False
    """Whether class 0 of a mask is none and the others count from there."""
    round_up: bool = False
    keep_ratio: bool = False
    """With height and width: whether the image keeps its proportions and comes only near them."""
    fit: int | None = None
    """The longest edge after resizing."""
    pad_to: tuple[int, int] | None = None
    """Height and width that an image is filled up to with zeros, after all other steps."""
    pad_multiple: int = 1
    """What edges are filled up to a multiple of, with the image turned over at its edge."""


class _Config:
    """A preprocessor_config.json whose values are checked as they are read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._values = processor.read_part(path, processor.IMAGES)

    def refuse_unknown_steps(self, family: ProcessorFamily) -> None:
        for key, value in self._values.items():
            if key.startswith(_SWITCHES) and value and key not in _KNOWN | family.further:
                raise DataError(
                    f"`{self._path}` asks for `{key}`, which is not supported", hint=f"supported: {_steps()}"
                )
        if family.longest is not None and self._values.get("pad_size") is not None:
            raise DataError(f"`{self._path}` asks for `pad_size`, which is not supported")

    def wrong(self, key: str, must: str) -> DataError:
        return DataError(f"`{key}` of `{self._path}` must {must} but got {self._values[key]!r}")

    def family(self) -> ProcessorFamily:
        """The family its type belongs to; a config without a type is one of the plain kind."""
        named = self._values.get("image_processor_type") or self._values.get("feature_extractor_type")
        if named is None:
            if not isinstance(self._values.get("size"), dict):
                raise DataError(f"`{self._path}` has neither an `image_processor_type` nor a full `size`", hint=HINT)
            return FAMILIES["ViT"]
        stem = str(named)
        for kind in _KINDS:
            stem = stem.removesuffix(kind)
        if stem not in FAMILIES:
            raise DataError(
                f"`{self._path}` is for `{named}`, which is not supported", hint=did_you_mean(stem, FAMILIES)
            )
        return FAMILIES[stem]

    def flag(self, key: str, default: bool) -> bool:
        value = self._values.get(key, default)
        if not isinstance(value, bool | None):
            raise self.wrong(key, "be true or false")
        return default if value is None else value

    def number(self, key: str, default: float) -> float:
        value = self._values.get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
            raise self.wrong(key, "be a number above 0")
        return value

    def whole(self, key: str | None, default: int) -> int:
        """A whole number from 1; 0 means 1."""
        value = None if key is None else self._values.get(key)
        if value is None:
            return default
        if type(value) is not int or not 0 <= value < 1 << 12:
            raise self.wrong(str(key), "be a whole number")
        return max(1, value)

    def edge(self, key: str, name: str, default: int) -> int:
        """One edge of a size that is an object."""
        value = self._values.get(key)
        found = value.get(name, default) if isinstance(value, dict) else default
        if type(found) is not int or not 0 < found < 1 << 15:
            raise self.wrong(key, "be a size in pixels")
        return found

    def resample(self, default: int) -> int:
        """Pillow's number of a filter."""
        value = self._values.get("resample")
        if value is not None and (type(value) is not int or not 0 <= value <= _LAST_FILTER):
            raise self.wrong("resample", f"be a whole number from 0 to {_LAST_FILTER}")
        return default if value is None else value

    def numbers(self, key: str, default: tuple[float, ...]) -> tuple[float, ...]:
        value = self._values.get(key)
        if value is None:
            return default
        found = value if isinstance(value, list) else [value] * len(default)
        if not found or not all(isinstance(v, int | float) and math.isfinite(v) for v in found):
            raise self.wrong(key, "be a list of numbers")
        return tuple(float(v) for v in found)

    def longest(self, family: ProcessorFamily) -> int | None:
        """The longest edge an image may have; only for families that keep its proportions."""
        if family.longest is None:
            return None
        size = self._values.get("size")
        value = size.get("longest_edge") if isinstance(size, dict) else self._values.get("max_size")
        if value is None and family.longest_share is not None:
            return int(family.longest_share * self.edge("size", "shortest_edge", int(family.size)))
        if value is None:
            return None if isinstance(size, dict) else family.longest
        if type(value) is not int or value < 1:
            raise self.wrong("size" if isinstance(size, dict) else "max_size", "hold a size in pixels")
        return value

    def size(self, key: str, default: Any, *, square: bool, longest: bool = False) -> int | tuple[int, int]:
        """Height and width, or the size of the shortest edge."""
        value = self._values.get(key)
        value = default if value is None else value
        edges = [value, value] if isinstance(value, int) else value
        if isinstance(value, dict):
            known = {name: edge for name, edge in value.items() if not (longest and name == "longest_edge")}
            edges = [known[name] for name in ("height", "width", "shortest_edge") if name in known]
            square = "height" in known
            if len(known) != len(edges) or len(edges) != (2 if square else 1):
                raise self.wrong(key, "hold `height` and `width`, or `shortest_edge`")
        if not isinstance(edges, list) or not edges or not all(type(e) is int and 0 < e < 1 << 15 for e in edges):
            raise self.wrong(key, "be a size in pixels")
        if len(edges) == 2 and (square or not isinstance(value, int)):
            return edges[0], edges[1]
        return int(edges[0])


def _steps() -> str:
    return ", ".join(sorted(k for k in _KNOWN if k.startswith("do_")))


def read_steps(path: Path) -> Steps:
    """The steps that a preprocessor_config.json requires."""
    config = _Config(path)
    family = config.family()
    config.refuse_unknown_steps(family)
    resize: int | tuple[int, int] | None = None
    crop: tuple[int, int] | None = None
    if family.fit is not None:
        return _fit_steps(config, family, family.fit)
    if config.flag("do_resize", family.resize):
        resize = config.size("size", family.size, square=family.square, longest=family.longest is not None)
    if family.crop_pct is not None:
        if isinstance(resize, int):
            # What ConvNext does: a larger image of which a share is kept; large ones are squeezed instead.
            edge, share = resize, config.number("crop_pct", family.crop_pct)
            resize, crop = ((edge, edge), None) if edge >= _WARP_FROM else (int(edge / share), (edge, edge))
    elif config.flag("do_center_crop", family.crop_size is not None):
        asked = config.size("crop_size", family.crop_size or family.size, square=True)
        crop = (asked, asked) if isinstance(asked, int) else asked
    normalize = config.flag("do_normalize", family.normalize)
    pads = family.pad_multiple > 1 and config.flag("do_pad", True)
    multiple = config.whole(family.divisor_key, family.pad_multiple if pads else family.multiple)
    keep_ratio = isinstance(resize, tuple) and config.flag("keep_aspect_ratio", False)
    return Steps(
        resize=resize,
        resample=config.resample(family.resample),
        crop=crop,
        scale=config.number("rescale_factor", 1 / 255) if config.flag("do_rescale", True) else None,
        mean=config.numbers("image_mean", family.mean) if normalize else None,
        std=config.numbers("image_std", family.std) if normalize else None,
        longest=config.longest(family) if isinstance(resize, int) else None,
        multiple=multiple if isinstance(resize, int) or keep_ratio else 1,
        round_up=family.round_up,
        keep_ratio=keep_ratio,
        pad_multiple=multiple if pads else 1,
        reduce_labels=any(config.flag(key, False) for key in _REDUCE if key in family.further),
    )


def _fit_steps(config: _Config, family: ProcessorFamily, fit: int) -> Steps:
    """Resized to a longest edge, then filled up with zeros, as SAM does it."""
    longest = config.edge("size", "longest_edge", fit)
    pads = config.flag("do_pad", True)
    size = (config.edge("pad_size", "height", longest), config.edge("pad_size", "width", longest))
    normalize = config.flag("do_normalize", True)
    return Steps(
        resize=longest,
        resample=config.resample(family.resample),
        crop=None,
        scale=config.number("rescale_factor", 1 / 255) if config.flag("do_rescale", True) else None,
        mean=config.numbers("image_mean", family.mean) if normalize else None,
        std=config.numbers("image_std", family.std) if normalize else None,
        fit=longest,
        pad_to=size if pads else None,
    )
