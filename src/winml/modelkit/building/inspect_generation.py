"""What `winml inspect` says of a folder that generates text, besides its graph."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from winml.modelkit.core.build_folder import CONFIG
from winml.modelkit.core.config import BuildConfig, read_config
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import ModelFileError, RequestError
from winml.modelkit.core.generation import TOKENIZER, read_decoder_folder
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.target import NamedTarget, Target
from winml.modelkit.core.values import Names, key
from winml.modelkit.data.chat import has_chat_template
from winml.modelkit.session.generation.graph_fit import check_graph
from winml.modelkit.session.generation.runtimes import Runtime, choose_runtime


@dataclass(frozen=True, kw_only=True)
class GenerationInspection:
    """How a folder with `genai_config.json` generates text."""

    model_type: str
    """As onnxruntime-genai calls it; `decoder` is any other."""
    runtime: Runtime
    """The program that runs it here without `--runtime`."""
    reason: str
    target: Target = key(inline=True)
    """What the runtime was chosen for: the target of the build, else the CPU."""
    precision: str | None
    """Of the build; null for a folder that winml did not build."""
    context_length: int
    layers: int
    heads: int | None
    """Heads of keys and values in the cache; null where layers differ, and only the graph says."""
    head_size: int | None
    cache: Literal["in place", "grows"]
    """Whether steps write into one buffer, or return a longer cache every time."""
    takes_positions: bool
    vocabulary: int | None
    first_token: int | None
    end_tokens: tuple[int, ...]
    padding_token: int
    tokenizer: str | None
    """The file beside the model; null where there is none, and texts need `--processor DIR`."""
    chat_template: bool
    """Whether the tokenizer has a template for conversations."""
    ignored: Names
    """Settings of genai_config.json that are never used."""


def inspect_generation(folder: Path) -> GenerationInspection:
    """How a decoder folder generates text; a ModelFileError where it does not."""
    described = read_decoder_folder(folder)
    check_graph(described)
    config, target = _read_build(folder)
    saved = None if config is None else config.session.runtime
    runtime = choose_runtime(target, folder=described, saved=saved)
    return GenerationInspection(
        model_type=described.model_type,
        runtime=runtime.name,
        reason=runtime.reason,
        target=target,
        precision=None if config is None else config.precision,
        context_length=described.context_length,
        layers=described.layers,
        heads=described.heads,
        head_size=described.head_size,
        cache="in place" if described.in_place else "grows",
        takes_positions=described.takes_positions,
        vocabulary=described.vocabulary,
        first_token=described.first_token,
        end_tokens=described.end_tokens,
        padding_token=described.padding_token,
        tokenizer=TOKENIZER if (folder / TOKENIZER).is_file() else None,
        chat_template=has_chat_template(folder),
        ignored=described.ignored,
    )


def find_generation(folder: Path) -> tuple[GenerationInspection | None, str | None]:
    """How a folder generates text, or why it does not."""
    try:
        return inspect_generation(folder), None
    except ModelFileError as error:
        return None, error.message


def _read_build(folder: Path) -> tuple[BuildConfig | None, Target]:
    """The config of the build and its target; none and the CPU for a folder that winml did not build."""
    try:
        config = read_config(read_json(folder / CONFIG))
        return config, Target.from_value(NamedTarget(config.target, simulated=False))
    except (OSError, ValueError, RequestError):  # a damaged one is reported by commands that use it
        return None, Target("cpu", "cpu")
