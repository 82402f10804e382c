"""A folder that generates text, as far as its files tell what texts it takes: one graph, or parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from winml.modelkit.core.build_folder import PARTS, PartsFile, kind_of_parts, load_parts
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.generation import DecoderFolder, find_length, is_decoder_folder, read_decoder_folder
from winml.modelkit.core.json_text import read_object
from winml.modelkit.core.model_file import part_names
from winml.modelkit.graph.signature import read_signature
from winml.modelkit.session.generation.graph_fit import check_graph

DEFAULT_LENGTH = 2048
"""Tokens of a text of a decoder in parts where neither its graphs nor its config say how many it takes."""
PARTS_REASON = "parts are run by winml alone"
STEPS = "decode"
"""The graph that a step runs."""


@dataclass(frozen=True)
class TextFolder:
    """What texts a folder takes."""

    folder: Path
    kind: Literal["folder", "decoder", "pair"]
    """One graph with `genai_config.json`, a decoder in two graphs, or an encoder with a decoder."""
    context_length: int | None
    """Tokens of a prompt and its continuation together; of a pair those that it says. None where nothing says it."""
    models: Mapping[str, Path]
    """The files of its graphs, by what they do; one graph does everything."""
    described: DecoderFolder | None = None
    """What `genai_config.json` says."""
    source_length: int | None = None
    """Tokens that the encoder of a pair takes at most; None where nothing says it."""
    source_vectors: int | None = None
    """Vectors that the encoder of a pair makes of an image or of sound; None for an encoder of texts."""


def generates_text(folder: Path) -> bool:
    """Whether a path is a folder that generates text; nothing is checked."""
    if is_decoder_folder(folder):
        return True
    return (folder / PARTS).is_file() and kind_of_parts(part_names(folder)) is not None


def read_text_folder(folder: Path) -> TextFolder:
    """The folder of a decoder or of parts; an error for what generates no text."""
    if is_decoder_folder(folder) or not (folder / PARTS).is_file():
        described = read_decoder_folder(folder)
        check_graph(described)
        return TextFolder(folder, "folder", described.context_length, {STEPS: described.model}, described)
    listed = load_parts(folder)
    kind = kind_of_parts(listed.parts)
    if kind is None:
        raise RequestError(
            f"the parts of `{folder}` are {', '.join(listed.parts)}, which do not generate text",
            hint="a decoder has the parts prefill and decode, and a pair an encoder besides",
        )
    models = {part: folder / entry.folder / entry.file for part, entry in listed.parts.items()}
    configured = _read_length(folder / listed.parts["decode"].folder)
    if kind == "decoder":
        fixed = _size(_shape(folder, listed, "decode", "attention_mask"), 1)
        return TextFolder(folder, kind, fixed or configured or DEFAULT_LENGTH, models)
    said = _size(_shape(folder, listed, "decode", "decoder_attention_mask"), 1) or configured
    ids = _shape(folder, listed, "encoder", "input_ids")
    if ids is not None:
        return TextFolder(folder, kind, said, models, source_length=_size(ids, 1) or configured)
    vectors = _size(_shape(folder, listed, "prefill", "encoder_hidden_states"), 1)
    return TextFolder(folder, kind, said, models, source_vectors=vectors or 1)


def _shape(folder: Path, listed: PartsFile, part: str, name: str) -> Sequence[int | str | None] | None:
    """The shape of an input of a part; None where it has no such input."""
    entry = listed.parts[part]
    inputs = {one.name: one.shape for one in read_signature(folder / entry.folder / entry.file).inputs}
    return inputs.get(name)


def _size(shape: Sequence[int | str | None] | None, axis: int) -> int | None:
    size = None if shape is None else shape[axis]
    return size if isinstance(size, int) else None


def _read_length(folder: Path) -> int | None:
    """How many tokens the config of a model says that its decoder takes."""
    path = folder / "config.json"
    if not path.is_file():
        return None
    return find_length(read_object(path, lenient=True))
