"""Make a folder with a tiny model for every architecture of the installed transformers, as `save_pretrained` writes it.

Configs are made by `shrink.py`; weights are random with a fixed seed; the files of processors and a tokenizer lie
beside them where their classes work without a download. INDEX.tsv says for each architecture which class was made,
how many parameters it has, and whether PyTorch runs it with obvious inputs, or why there is no folder.

    python benchmarks/walk/tiny_models.py -o FOLDER [--named] [--again] [NAME ...]
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import importlib
import inspect
import json
import shutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import overrides
from shrink import Tokens, make_value, shrink

INDEX = "INDEX.tsv"
COLUMNS = ("model_type", "class", "parameters", "state", "reason")
LARGEST = 12_000_000
"""Parameters of a model that is still called tiny; nearly all have less than half a million."""

HEADS: tuple[str, ...] = (
    "KEYPOINT_MATCHING", "KEYPOINT_DETECTION", "POSE_ESTIMATION", "MASK_GENERATION", "DEPTH_ESTIMATION",
    "NORMAL_ESTIMATION", "POINTMAP_ESTIMATION", "IMAGE_MATTING", "UNIVERSAL_SEGMENTATION", "INSTANCE_SEGMENTATION",
    "ZERO_SHOT_OBJECT_DETECTION", "OBJECT_DETECTION", "IMAGE_TO_IMAGE", "TABLE_RECOGNITION", "TEXT_RECOGNITION",
    "TABLE_QUESTION_ANSWERING", "TIME_SERIES_PREDICTION", "VIDEO_CLASSIFICATION", "TEXT_TO_SPECTROGRAM",
    "TEXT_TO_WAVEFORM", "CTC", "RNNT", "TDT", "SPEECH_SEQ_2_SEQ", "AUDIO_CLASSIFICATION", "IMAGE_TEXT_TO_TEXT",
    "MULTIMODAL_LM", "RETRIEVAL", "ZERO_SHOT_IMAGE_CLASSIFICATION", "VISUAL_QUESTION_ANSWERING",
    "IMAGE_CLASSIFICATION", "SEMANTIC_SEGMENTATION", "SEQ_TO_SEQ_CAUSAL_LM", "MASKED_LM", "CAUSAL_LM",
    "TOKEN_CLASSIFICATION", "SEQUENCE_CLASSIFICATION", "QUESTION_ANSWERING", "CAUSAL_IMAGE_MODELING",
    "AUDIO_XVECTOR", "MASKED_IMAGE_MODELING", "BACKBONE", "PRETRAINING", "TEXT_ENCODING", "IMAGE",
)  # fmt: skip
"""The head that is taken of an architecture is the first in this order that it has: the rarer says more of it."""

TEXT_HEADS = ("CAUSAL_LM", "MASKED_LM", "SEQ_TO_SEQ_CAUSAL_LM", "SEQUENCE_CLASSIFICATION", "TEXT_ENCODING")
"""Heads of architectures that read text."""


@dataclasses.dataclass(frozen=True)
class Row:
    """A line of the index."""

    model_type: str
    model: str
    parameters: int
    state: str
    """`ok`, `ok, no forward`, `no model` or `failed`."""
    reason: str = ""


def all_types() -> list[str]:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    return sorted({*CONFIG_MAPPING_NAMES, *overrides.COMPOSITES})


def make_config(name: str) -> Any:
    """The tiny config of an architecture."""
    from transformers import CONFIG_MAPPING

    model_type = overrides.COMPOSITES.get(name, name)
    kind = CONFIG_MAPPING[model_type]
    own = overrides.CONFIGS if name == model_type else {**overrides.CONFIGS, model_type: overrides.CONFIGS[name]}
    needed = {key: value for key, value in own.get(model_type, {}).items() if value is not ...}
    try:
        default = kind()
    except Exception:  # noqa: BLE001 - a class that refuses its own defaults takes the values of its row
        return kind(**{key: make_value(value, own, Tokens()) for key, value in needed.items()})
    return shrink(default, own)


def choose_class(name: str, config: Any) -> type | None:
    """The model class that stands for an architecture; None when transformers has none for this config."""
    import transformers
    from transformers.models.auto import modeling_auto

    if name in overrides.CLASSES:
        return getattr(transformers, overrides.CLASSES[name])
    model_type = overrides.COMPOSITES.get(name, name)
    for table in [*(f"MODEL_FOR_{head}_MAPPING_NAMES" for head in HEADS), "MODEL_MAPPING_NAMES"]:
        found = getattr(modeling_auto, table).get(model_type)
        if found:
            found = found if isinstance(found, str) else found[0]
            kind = getattr(transformers, found, None)
            if kind is not None:
                return kind
    return next(_models_of(type(config)), None)


def _models_of(config: type) -> Iterator[type]:
    """Model classes for a config that no table of transformers names, the last defined first: it has a head."""
    import transformers

    module = config.__module__.replace(".configuration_", ".modeling_")
    try:
        found = vars(importlib.import_module(module))
    except ImportError:
        return
    for kind in reversed(list(found.values())):
        if (
            isinstance(kind, type)
            and issubclass(kind, transformers.PreTrainedModel)
            and kind.config_class is config  # type: ignore[attr-defined]
            and not kind.__name__.endswith("PreTrainedModel")
        ):
            yield kind


def _require_all_but_scipy(thing: Any, backends: Any) -> None:
    from transformers.utils import requires_backends

    if backends not in ("scipy", ["scipy"]):
        requires_backends(thing, backends)


def make_model(kind: Any, config: Any) -> Any:
    """The model with weights at which its outputs depend on its inputs, as they do after training."""
    import torch

    # Some classes make their loss with the model, which needs scipy; nothing else of them does.
    module = sys.modules.get(kind.__module__)
    if hasattr(module, "requires_backends"):
        module.requires_backends = _require_all_but_scipy  # type: ignore[attr-defined]
    try:
        with torch.device("meta"):
            counted = kind(config)
    except Exception:  # noqa: BLE001 - not every class can be made without memory
        counted = None
    if counted is not None and (size := sum(weight.numel() for weight in counted.parameters())) > 5 * LARGEST:
        largest = sorted(counted.named_parameters(), key=lambda pair: -pair[1].numel())[:4]
        shapes = ", ".join(f"{name} {list(weight.shape)}" for name, weight in largest)
        raise ValueError(f"{size:,} parameters: {shapes}")
    torch.manual_seed(0)
    model = kind(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1 and weight.numel() and weight.is_floating_point():
                weight.normal_(0, weight[0].numel() ** -0.5)
        for layer in model.modules():
            if isinstance(layer, torch.nn.BatchNorm2d):
                # As drawn for training some divide by fifty, and nothing is left in the end.
                layer.reset_parameters()
    return model


# --- files beside the weights ----------------------------------------------------------------------------------------


def find_value(config: Any, *names: str) -> Any:
    """The first value that a config or one of its parts has under one of the names."""
    for name in names:
        if (value := getattr(config, name, None)) is not None:
            return value
    for part in vars(config).values():
        is_config = hasattr(part, "to_dict") and hasattr(part, "model_type")
        if is_config and (value := find_value(part, *names)) is not None:
            return value
    return None


def image_size(config: Any) -> tuple[int, int]:
    size = find_value(config, "image_size", "input_size", "img_size")
    if isinstance(size, (list, tuple)):
        return (int(size[-2]), int(size[-1])) if len(size) > 1 else (int(size[0]),) * 2
    return (size, size) if isinstance(size, int) else (64, 64)


def save_processors(name: str, config: Any, folder: Path) -> list[str]:
    """Write the processor files a real folder has; the reasons why one is missing."""
    missing = []
    for write in (_save_image_processor, _save_feature_extractor, _save_tokenizer):
        try:
            write(overrides.COMPOSITES.get(name, name), config, folder)
        except Exception as error:  # noqa: BLE001 - every class of transformers fails in its own way
            missing.append(f"{write.__name__.removeprefix('_save_')}: {one_line(error)}")
    return missing


def _save_image_processor(model_type: str, config: Any, folder: Path) -> None:
    import transformers
    from transformers.models.auto.image_processing_auto import IMAGE_PROCESSOR_MAPPING_NAMES

    model_type = overrides.PROCESSOR_OF.get(folder.name, model_type)
    found = IMAGE_PROCESSOR_MAPPING_NAMES.get(model_type)
    if not found:
        return
    named = found.get("pil") or found.get("torchvision") if isinstance(found, dict) else found
    kind = getattr(transformers, named if isinstance(named, str) else named[0])
    default = kind()
    height, width = image_size(config)
    values: dict[str, Any] = {}
    for key in ("size", "crop_size", "pad_size", "min_size", "max_size"):
        value = getattr(default, key, None)
        value = dict(value) if value is not None and not isinstance(value, (int, float)) else value
        if isinstance(value, dict):
            edges = {"height": height, "width": width, "shortest_edge": min(height, width)}
            values[key] = {edge: edges.get(edge, max(height, width)) for edge in value if value[edge] is not None}
        elif isinstance(value, int):
            values[key] = height
    for key in ("patch_size", "temporal_patch_size", "merge_size"):
        source = {"merge_size": "spatial_merge_size"}.get(key, key)
        value = find_value(config, source)
        if getattr(default, key, None) is not None and isinstance(value, int):
            values[key] = value
    kind(**values).save_pretrained(folder)


def _save_feature_extractor(model_type: str, config: Any, folder: Path) -> None:
    import transformers
    from transformers.models.auto.feature_extraction_auto import FEATURE_EXTRACTOR_MAPPING_NAMES

    found = FEATURE_EXTRACTOR_MAPPING_NAMES.get(model_type)
    if not found or (folder / "preprocessor_config.json").exists():
        return
    kind = getattr(transformers, found)
    default = kind()
    values: dict[str, Any] = {}
    bins = find_value(config, "num_mel_bins", "num_mel_channels", "input_feat_size", "n_mels")
    for key in ("feature_size", "num_mel_bins"):
        if isinstance(bins, int) and isinstance(getattr(default, key, None), int) and getattr(default, key) > 1:
            values[key] = bins
    kind(**values).save_pretrained(folder)


WORDS = [
    "the", "of", "and", "to", "in", "is", "was", "he", "for", "it", "with", "as", "his", "on", "be", "at", "by",
    "had", "not", "are", "but", "from", "or", "have", "an", "they", "which", "one", "you", "were", "all", "her",
    "she", "there", "would", "their", "we", "him", "been", "has", "when", "who", "will", "no", "more", "if", "out",
    "so", "up", "said", "what", "its", "about", "than", "into", "them", "can", "only", "other", "time", "new",
    "some", "could", "these", "two", "may", "first", "then", "do", "any", "like", "my", "now", "over", "such",
    "our", "man", "me", "even", "most", "made", "after", "also", "did", "many", "must", "before", "back", "see",
    "through", "way", "where", "get", "much", "go", "well", "your", "know", "should", "down", "work", "year",
    "because", "come", "people", "just", "say", "each", "those", "take", "day", "good", "how", "long", "little",
    "own", "old", "use", "great", "house", "school", "state", "world", "three", "here", "between", "life", "being",
    "under", "never", "same", "another", "while", "last", "us", "off", "might", "since", "against", "right",
    "place", "high", "small", "found", "still", "part", "number", "water", "light", "music", "car", "dog", "cat",
    "tree", "road", "city", "river", "book", "name", "head", "hand", "eye", "face",
]  # fmt: skip


def _save_tokenizer(model_type: str, config: Any, folder: Path) -> None:
    """A tokenizer of words with the special tokens where the config has them."""
    import tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = find_value(config, "vocab_size", "src_vocab_size")
    if not isinstance(vocabulary, int) or vocabulary < 8 or not _takes_text(model_type, config):
        return
    vocabulary = min(vocabulary, 256)
    special: dict[str, int] = {}
    for role in ("pad", "bos", "eos", "unk", "cls", "sep", "mask"):
        value = find_value(config, f"{role}_token_id")
        value = value[0] if isinstance(value, list) else value
        if isinstance(value, int) and 0 <= value < vocabulary and value not in special.values():
            special[role] = value
    free = iter([number for number in range(vocabulary) if number not in special.values()])
    for role in ("pad", "unk", "bos", "eos"):
        if role not in special:
            special[role] = next(free)
    words = iter([*WORDS, *(f"word{number}" for number in range(vocabulary))])
    ids = {f"<{role}>": number for role, number in special.items()}
    ids |= {next(words): number for number in free}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(ids, unk_token="<unk>"))
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    first, last = ("cls", "sep") if "cls" in special else ("bos", "eos")
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"<{first}> $A <{last}>",
        pair=f"<{first}> $A <{last}> $B:1 <{last}>:1",
        special_tokens=[(f"<{role}>", special[role]) for role in (first, last)],
    )
    names = ["input_ids", "attention_mask"]
    if (find_value(config, "type_vocab_size") or 0) > 1:
        names.insert(1, "token_type_ids")
    positions = find_value(config, "max_position_embeddings", "n_positions")
    made = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_input_names=names,
        model_max_length=positions if isinstance(positions, int) and 0 < positions < 512 else 64,
        **{f"{role}_token": f"<{role}>" for role in special},
    )
    made.save_pretrained(folder)


def _takes_text(model_type: str, config: Any) -> bool:
    """Whether models of this type come with a tokenizer: one is named for them, or they or a part read text."""
    from transformers.models.auto import modeling_auto
    from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES

    family = model_type.removesuffix("_text").removesuffix("_text_model")
    tables = [getattr(modeling_auto, f"MODEL_FOR_{head}_MAPPING_NAMES") for head in TEXT_HEADS]
    return (
        any(family in table or model_type in table for table in (TOKENIZER_MAPPING_NAMES, *tables))
        or getattr(config, "text_config", None) is not None
        or getattr(config, "decoder", None) is not None
    )


# --- proof that PyTorch runs it --------------------------------------------------------------------------------------


def obvious_inputs(model: Any) -> dict[str, Any]:
    """Inputs by the names in the signature of `forward` that need no knowledge of the architecture."""
    import torch

    config, names = model.config, inspect.signature(model.forward).parameters
    torch.manual_seed(1)
    vocabulary = find_value(config, "vocab_size", "src_vocab_size") or 64
    ids = (
        torch.randint(5, max(vocabulary - 16, 8), (1, 16)) if isinstance(vocabulary, int) else torch.ones(1, 16).long()
    )
    height, width = image_size(config)
    channels = find_value(config, "num_channels", "in_channels", "in_chans")
    channels = channels if isinstance(channels, int) else 3
    frames = find_value(config, "num_frames") or 4
    bins = find_value(config, "num_mel_bins", "input_feat_size") or 16
    positions = find_value(config, "max_source_positions")
    image = torch.randn(1, channels, height, width)
    video = model.main_input_name == "pixel_values" and hasattr(config, "num_frames")
    known = {
        "pixel_values": torch.randn(1, frames, channels, height, width) if video else image,
        "pixel_values_videos": torch.randn(1, frames, channels, height, width),
        "input_values": torch.randn(1, 4000),
        "input_features": torch.randn(1, bins, 2 * positions if isinstance(positions, int) else 64),
    }
    if "pixel_values_images" in names or "image_grid_thw" in names:
        known.pop("pixel_values")
    wanted = {name: value for name, value in known.items() if name in names}
    if "input_ids" in names:
        if find_value(config, "image_token_id", "image_token_index", "audio_token_id") is not None:
            # Places of images in a text need a processor to be counted: text alone is obvious.
            wanted = {}
        wanted["input_ids"] = ids
    if "decoder_input_ids" in names:
        wanted["decoder_input_ids"] = ids[:, :4]
    return wanted


def check_forward(model: Any) -> str:
    """Why PyTorch does not run the model with obvious inputs; empty when it does."""
    import torch

    try:
        own = overrides.INPUTS.get(model.config.model_type)
        inputs = obvious_inputs(model) if own is None else own(model.config)
        with torch.no_grad():
            model(**inputs)
    except Exception as error:  # noqa: BLE001 - every architecture fails in its own way
        return one_line(error)
    return ""


def one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:240]


def make_folder(name: str, folder: Path) -> Row:
    """Write the folder of an architecture; its line in the index says what came of it."""
    shutil.rmtree(folder, ignore_errors=True)
    kind: Any = None
    try:
        config = make_config(name)
        kind = choose_class(name, config)
        if kind is None:
            return Row(name, "", 0, "no model", "transformers has no model class for this config")
        model = make_model(kind, config)
        size = sum(weight.numel() for weight in model.parameters())
        if size > LARGEST:
            largest = sorted(model.named_parameters(), key=lambda pair: -pair[1].numel())[:4]
            shapes = ", ".join(f"{weight} {list(value.shape)}" for weight, value in largest)
            return Row(name, kind.__name__, size, "failed", f"too large: {shapes}")
        model.save_pretrained(folder)
        missing = save_processors(name, config, folder)
    except Exception as error:  # noqa: BLE001 - every architecture fails in its own way
        shutil.rmtree(folder, ignore_errors=True)
        return Row(name, getattr(kind, "__name__", ""), 0, "failed", one_line(error))
    refused = check_forward(model)
    reasons = "; ".join([*([refused] if refused else []), *missing])
    return Row(name, kind.__name__, size, "ok, no forward" if refused else "ok", reasons)


def read_index(path: Path) -> dict[str, Row]:
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as stream:
        lines = list(csv.reader(stream, delimiter="\t"))[1:]
    return {line[0]: Row(line[0], line[1], int(line[2]), line[3], line[4]) for line in lines if len(line) == 5}


def write_index(path: Path, rows: dict[str, Row]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(dataclasses.astuple(rows[name]) for name in sorted(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a model_type; all without one")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--named", action="store_true", help="only the families that people bring most")
    parser.add_argument("--again", action="store_true", help="make also what is in the index")
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")

    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    asked.output.mkdir(parents=True, exist_ok=True)
    rows = read_index(asked.output / INDEX)
    wanted = asked.names or (list(overrides.NAMED) if asked.named else all_types())
    for name in wanted:
        if name in rows and not (asked.again or asked.names):
            continue
        rows[name] = make_folder(name, asked.output / name)
        print(*dataclasses.astuple(rows[name]), sep="\t", flush=True)
        write_index(asked.output / INDEX, rows)
    states = [row.state for row in rows.values()]
    print(json.dumps({state: states.count(state) for state in sorted(set(states))}), file=sys.stderr)


if __name__ == "__main__":
    main()
