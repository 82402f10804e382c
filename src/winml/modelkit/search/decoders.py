"""Searches of models that generate text: the folder they start from, what is measured of it, and on what outputs agree.

Every config is a decoder folder: its artifact with a `genai_config.json` written from what was read of the first one.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from winml.modelkit.building.build import BuildRequest, build
from winml.modelkit.building.build_parts import parts_of
from winml.modelkit.building.config import ConfigRequest
from winml.modelkit.building.export.families import DECODER
from winml.modelkit.building.export.resolve import ExportOptions
from winml.modelkit.building.pipeline.folder import write_json
from winml.modelkit.core import model_ref
from winml.modelkit.core.config import RANDOM, DataSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.events import Event, OnEvent, TargetChosen
from winml.modelkit.core.generation import (
    GENAI_CONFIG,
    DecoderFolder,
    is_decoder_folder,
    make_genai_config,
    read_decoder_folder,
)
from winml.modelkit.core.measurement import GenerationArm, GenerationMetric, SessionSection
from winml.modelkit.core.objective import Objective
from winml.modelkit.core.suggest import near_path
from winml.modelkit.core.target import Target
from winml.modelkit.graph.signature import read_signature
from winml.modelkit.measuring.compare_arms import NEW_TOKENS, PROMPT_TOKENS
from winml.modelkit.session.generation.graph_fit import check_graph
from winml.modelkit.session.generation.runtimes import choose_runtime
from winml.modelkit.store import digest

GATE_TOKENS = 8
"""Tokens of a sample on which outputs are compared, and tokens in the cache before them."""
GATE_SAMPLES = 16
"""Fewer than of other models: outputs hold a number for every token of the vocabulary, at every place."""
UNPROVEN = "the search compares every config with it"


@dataclass(frozen=True)
class SearchedDecoder:
    """A model that generates text, and what is a run of it."""

    folder: DecoderFolder
    text: GenerationArm
    """Without a folder; the runtime is that of a config that does not choose one."""

    def complete_folder(self, model: Path) -> None:
        """Make the folder of an artifact one that generates text."""
        path = model.parent / GENAI_CONFIG
        if not path.is_file():
            write_json(path, make_genai_config(self.folder, file=model.name))

    def arm(self, model: Path, target: Target, section: SessionSection) -> GenerationArm:
        """What is measured of an artifact."""
        runtime = choose_runtime(target, folder=self.folder, saved=section.runtime).name
        return replace(self.text, folder=str(model.parent), runtime=runtime)


def find_decoder_folder(model: str, target: Target, on_event: OnEvent) -> Path | None:
    """The decoder folder that a model names or that is built from it, in the cache; None for other models."""
    if is_decoder_folder(Path(model)):
        return Path(model).absolute()
    ref = model_ref.parse(model)
    if not ref.is_exported:
        return None
    config = ConfigRequest(model, target=str(target), precision="fp32", optimize=False)
    if parts_of(BuildRequest(config), on_event) != (DECODER,):
        return None
    config = replace(config, export=ExportOptions(part=DECODER))

    def forward(event: Event) -> None:
        if not isinstance(event, TargetChosen):  # the search has reported it already
            on_event(event)

    built = build(BuildRequest(config, analyze=False, prove=False, unproven=UNPROVEN), forward)
    return Path(built.folder)


def describe_search(
    folder: Path, target: Target, section: SessionSection, objective: Objective, batch: int | None
) -> SearchedDecoder:
    """What is measured of a decoder folder: a text of the lengths that `winml compare` has."""
    described = read_decoder_folder(folder)
    check_graph(described)
    context = described.context_length
    new_tokens = max(2, min(NEW_TOKENS, context // 2))
    metric: GenerationMetric = "tokens-per-second"
    if objective in ("first-token", "memory"):
        metric = objective
    text = GenerationArm(
        folder="",
        metric=metric,
        runtime=choose_runtime(target, folder=described, saved=section.runtime).name,
        prompt_tokens=max(1, min(PROMPT_TOKENS, context - new_tokens)),
        new_tokens=new_tokens,
        batch=batch or 1,
    )
    return SearchedDecoder(described, text)


def describe_text(text: GenerationArm, reason: str) -> tuple[str, str]:
    """What is a run, and which program runs it."""
    what = {
        "first-token": f"a prompt of {text.prompt_tokens} tokens until its first token",
        "tokens-per-second": f"one of the {text.new_tokens - 1} tokens after the first, after a prompt of "
        f"{text.prompt_tokens}",
        "memory": f"a text of {text.prompt_tokens} and {text.new_tokens} tokens, and its size the peak of the process",
    }
    return f"a run is {what[text.metric]}", f"the baseline is run by {text.runtime}: {reason}"


def describe_texts(data: DataSection) -> DataSection:
    """Texts to judge by, with their digest and an absolute path."""
    data = data.absolute()
    if not Path(data.source).is_file():
        raise RequestError(
            f"no file with texts: `{data.source}`",
            hint=near_path(data.source) or "a .jsonl, .parquet, .csv, .tsv or .txt",
        )
    return replace(data, digest=digest.of_file(Path(data.source)))


def make_gate_data(folder: DecoderFolder) -> DataSection:
    """Random tokens after a cache of random numbers; every place is seen, as the graph takes its lengths from the mask.

    Names of open axes are read from the graph, since every exporter has its own.
    """
    shapes = {value.name: value.shape or () for value in read_signature(folder.model).inputs}
    tokens = max(1, min(GATE_TOKENS, folder.context_length // 2))
    past = [name for name, _ in folder.past_pairs()]
    sizes = {("input_ids", 1): tokens, ("attention_mask", 1): 2 * tokens, ("position_ids", 1): tokens}
    sizes |= {(name, 2): tokens for name in past}
    dims: dict[str, int] = {}
    for name, shape in shapes.items():
        for index, axis in enumerate(shape):
            if isinstance(axis, str) and axis:
                dims.setdefault(axis, sizes.get((name, index), 1))
    ranges = {"input_ids": (0.0, float((folder.vocabulary or 2) - 1)), "attention_mask": (1.0, 1.0)}
    ranges |= {"position_ids": (0.0, 2.0 * tokens - 1)} | dict.fromkeys(past, (-1.0, 1.0))
    known = {name: limits for name, limits in ranges.items() if name in shapes}
    return DataSection(RANDOM, limit=GATE_SAMPLES, dims=dims, ranges=known)
