"""Whether the graph in a decoder folder is the one that its `genai_config.json` describes.

Both may come from elsewhere, and onnxruntime-genai does not compare them: it generates tokens of a graph without a past
as of any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from winml.modelkit.core.errors import ModelFileError
from winml.modelkit.core.generation import GENAI_CONFIG, DecoderFolder
from winml.modelkit.graph.signature import read_signature

Shapes = Mapping[str, Sequence[int | str | None]]

_TOKENS = ("input_ids", "attention_mask", "position_ids")
_REBUILD = "build the folder again: `winml build -m MODEL -o DIR`"
_ONE_GRAPH = "the graph alone is measured by naming its .onnx file; `winml build -m MODEL -o DIR` makes a decoder"


def check_graph(folder: DecoderFolder) -> None:
    """Raise a ModelFileError where the graph has no past, or another one than the folder describes."""
    found = read_signature(folder.model)
    check_shapes(
        folder,
        {value.name: value.shape for value in found.inputs},
        {value.name: value.shape for value in found.outputs},
    )


def count_vocabulary(folder: DecoderFolder) -> int | None:
    """How many tokens the logits have, by the graph or else by the config; None where neither says."""
    logits = next((value for value in read_signature(folder.model).outputs if value.name == "logits"), None)
    size = logits.shape[-1] if logits is not None and logits.shape else None
    return size if isinstance(size, int) else folder.vocabulary


def check_shapes(folder: DecoderFolder, inputs: Shapes, outputs: Shapes) -> None:
    """The same for shapes that a session reports."""
    pairs = folder.past_pairs()
    caches = [name for name in inputs if name not in _TOKENS]
    if "input_ids" not in inputs or "logits" not in outputs:
        missing = "input `input_ids`" if "input_ids" not in inputs else "output `logits`"
        raise ModelFileError(f"`{folder.model}` has no {missing}, so that it is no decoder of tokens", hint=_ONE_GRAPH)
    if not caches:
        raise ModelFileError(
            f"`{folder.model}` has no past: it takes {', '.join(inputs)} alone, so a text cannot grow step by step",
            hint=_ONE_GRAPH,
        )
    if {*caches} != {past for past, _ in pairs}:
        raise _explain_names(folder, caches, pairs)
    for _, present in pairs:
        if present not in outputs:
            raise ModelFileError(
                f"`{folder.model}` has no output `{present}`, which its {GENAI_CONFIG} names", hint=_REBUILD
            )
    for past, _ in pairs:
        _check_cache(folder, past, inputs[past])
    tokens = outputs["logits"][-1] if outputs["logits"] else None
    if isinstance(tokens, int) and folder.vocabulary is not None and folder.vocabulary > tokens:
        raise ModelFileError(
            f"`{folder.model}` has logits for {tokens} tokens, but its {GENAI_CONFIG} says `vocab_size` "
            f"{folder.vocabulary}",
            hint=_REBUILD,
        )


def _explain_names(folder: DecoderFolder, caches: Sequence[str], pairs: Sequence[tuple[str, str]]) -> ModelFileError:
    wanted = [past for past, _ in pairs]
    if len(caches) != len(wanted) and len(caches) % 2 == 0:
        return ModelFileError(
            f"`{folder.model}` has a cache of {len(caches) // 2} layers, but its {GENAI_CONFIG} says {folder.layers}",
            hint=_REBUILD,
        )
    missing = [name for name in wanted if name not in caches]
    others = [name for name in caches if name not in wanted]
    if not missing:
        return ModelFileError(f"`{folder.model}` takes `{others[0]}`, which a loop over tokens does not have")
    has = f"; it has `{others[0]}`" if others else ""
    return ModelFileError(
        f"`{folder.model}` has no input `{missing[0]}`, which its {GENAI_CONFIG} names{has}", hint=_REBUILD
    )


def _check_cache(folder: DecoderFolder, name: str, shape: Sequence[int | str | None]) -> None:
    if len(shape) != 4:
        raise ModelFileError(
            f"input `{name}` has shape {list(shape)}; a cache must be (batch, heads, length, size)", hint=_REBUILD
        )
    if isinstance(shape[2], int):
        raise ModelFileError(
            f"input `{name}` has a fixed length of {shape[2]}, so that a text cannot grow step by step",
            hint="build it for a device that takes open shapes: `winml build -m MODEL --target cpu -o DIR`",
        )
    for what, size, said in (("heads", shape[1], folder.heads), ("a head of size", shape[3], folder.head_size)):
        if isinstance(size, int) and said is not None and size != said:
            key = "num_key_value_heads" if what == "heads" else "head_size"
            raise ModelFileError(
                f"input `{name}` has {f'{size} heads' if what == 'heads' else f'{what} {size}'}, but {GENAI_CONFIG} "
                f"says `{key}` {said}",
                hint=_REBUILD,
            )
