"""What a program needs to run a decoder step by step (`genai_config.json`), made from the config of the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from winml.modelkit.building.export import signature
from winml.modelkit.building.export.folder import ModelFolder
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.generation import IN_PLACE_ATTENTION, DecoderFolder
from winml.modelkit.core.json_text import read_object
from winml.modelkit.graph.outline import outline
from winml.modelkit.graph.signature import read_signature

DEFAULT_LENGTH = 2048
"""How many tokens a model without a table of positions gets; nothing in it sets a limit."""
_TYPES = (
    "ernie4_5", "gemma", "gemma2", "gemma3_text", "granite", "llama", "mistral", "nemotron", "olmo", "phi", "phi3",
    "qwen2", "qwen3", "smollm3",
)  # fmt: skip
"""Types that onnxruntime-genai knows; it has a generic one for others."""
GENERIC = "decoder"


def describe_decoder(folder: ModelFolder, model: Path) -> DecoderFolder:
    """The decoder in `model`, which was exported from a folder of transformers."""
    inputs = {entry.name: entry.shape for entry in read_signature(model).inputs}
    caches = [shape for name, shape in inputs.items() if name.startswith("past_key_values.")]
    # Where layers differ, or keys from values, only the graph has the sizes.
    heads, size = (sizes.pop() if len(sizes := {shape[axis] for shape in caches}) == 1 else None for axis in (1, 3))
    tokens = {**folder.config, **_generation(folder)}
    return DecoderFolder(
        folder=model.parent,
        file=model.name,
        model_type=folder.model_type if folder.model_type in _TYPES else GENERIC,
        context_length=signature.longest(folder) or _optional(folder, "max_seq_len", "seq_length") or DEFAULT_LENGTH,
        layers=len(caches) // 2,
        heads=heads if isinstance(heads, int) else None,
        head_size=size if isinstance(size, int) else None,
        past_names=("past_key_values.%d.key", "past_key_values.%d.value"),
        present_names=("present.%d.key", "present.%d.value"),
        takes_positions="position_ids" in inputs,
        in_place=any(node.op_type == IN_PLACE_ATTENTION for node in outline(model).nodes),
        vocabulary=folder.whole("vocab_size"),
        hidden_size=_optional(folder, "hidden_size", "n_embd", "d_model"),
        attention_heads=_optional(folder, "num_attention_heads", "n_head", "num_heads"),
        first_token=next(iter(_tokens(tokens.get("bos_token_id"))), None),
        end_tokens=_tokens(tokens.get("eos_token_id")),
        padding_token=(_tokens(tokens.get("pad_token_id")) or _tokens(tokens.get("eos_token_id")) or (0,))[0],
    )


def _generation(folder: ModelFolder) -> dict[str, Any]:
    """What `generation_config.json` says; a model without one has its tokens in its config."""
    path = folder.path / "generation_config.json"
    if not path.is_file():
        return {}
    try:
        return {name: value for name, value in read_object(path, lenient=True).items() if value is not None}
    except DataError:
        return {}


def _optional(folder: ModelFolder, *names: str) -> int | None:
    found = folder.value(*names)
    return found if isinstance(found, int) else None


def _tokens(value: Any) -> tuple[int, ...]:
    found = value if isinstance(value, list) else [value]
    return tuple(token for token in found if isinstance(token, int) and not isinstance(token, bool) and token >= 0)
