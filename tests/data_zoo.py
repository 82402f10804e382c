"""Small real data for tests: a tokenizer, tables, folders of images."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

WORDS = (
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "good",
    "bad",
    "film",
    "dull",
    "who",
    "wrote",
    "it",
    "ada",
    "did",
    ",",
    ".",
    "[MASK]",
)
IDS = {word: number for number, word in enumerate(WORDS)}


def tokenizer(folder: Path, **settings: Any) -> Path:
    """A word tokenizer in the manner of BERT, with `pad_token` in its settings."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    made = Tokenizer(models.WordLevel(IDS, unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()  # type: ignore[assignment]
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()  # type: ignore[assignment]
    made.post_processor = processors.TemplateProcessing(  # type: ignore[assignment]
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", IDS["[CLS]"]), ("[SEP]", IDS["[SEP]"])],
    )
    folder.mkdir(exist_ok=True, parents=True)
    made.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"pad_token": "[PAD]", **settings}), encoding="utf-8")
    return folder


def jsonl(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def images(folder: Path, classes: Mapping[str, int], *, size: int = 10) -> Path:
    """`{"cat": 3}` makes three images in a folder `cat`; how bright they are tells them apart."""
    from PIL import Image

    shade = 0
    for name, count in classes.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            Image.new("RGB", (size, size), (shade % 256, 100, 200)).save(folder / name / f"{number}.png")
            shade += 7
    return folder


def image_processor(folder: Path, size: int = 8) -> Path:
    config = {"size": {"height": size, "width": size}, "do_normalize": False}
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "preprocessor_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def image(path: Path, size: tuple[int, int], shade: int | tuple[int, int, int]) -> Path:
    """An image of one colour, by width and height."""
    from PIL import Image

    Image.new("RGB", size, (shade,) * 3 if isinstance(shade, int) else shade).save(path)
    return path


def wave(path: Path, samples: Sequence[float], rate_hz: int) -> Path:
    """A recording of 16-bit samples from -1 to 1."""
    import wave as waves

    import numpy as np

    with waves.open(str(path), "wb") as stream:
        stream.setnchannels(1)
        stream.setsampwidth(2)
        stream.setframerate(rate_hz)
        stream.writeframes((np.asarray(samples) * 32767).astype("<i2").tobytes())
    return path
