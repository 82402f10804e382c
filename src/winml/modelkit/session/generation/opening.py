"""Opens a decoder folder with the program that runs it."""

from __future__ import annotations

from pathlib import Path

from winml.modelkit.core.build_folder import kind_of_parts, load_parts
from winml.modelkit.core.generation import is_decoder_folder, read_decoder_folder
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.session.generation.genai_loop import GenaiGenerator
from winml.modelkit.session.generation.ort_loop import OrtGenerator
from winml.modelkit.session.generation.parts_loop import PairGenerator, PartsGenerator
from winml.modelkit.session.generation.runtimes import choose_runtime


def open_generator(
    folder: str | Path,
    *,
    target: Target,
    section: SessionSection | None = None,
    runtime: str | None = None,
    distribution: str | None = None,
    strict_ep: bool = False,
) -> GenaiGenerator | OrtGenerator:
    """A decoder folder, ready to run on a target; the last two are for our own loop, as a session takes them."""
    described = read_decoder_folder(Path(folder))
    chosen = choose_runtime(target, runtime, folder=described, section=section, strict_ep=strict_ep)
    if chosen.name == "genai":
        return GenaiGenerator(folder, target=target, section=section)
    return OrtGenerator(folder, target=target, section=section, distribution=distribution, strict_ep=strict_ep)


AnyGenerator = GenaiGenerator | OrtGenerator | PartsGenerator | PairGenerator
"""What runs a folder that generates text."""


def open_folder(
    folder: str | Path,
    *,
    target: Target,
    section: SessionSection | None = None,
    runtime: str | None = None,
    distribution: str | None = None,
    strict_ep: bool = False,
) -> AnyGenerator:
    """The same for any folder that generates text, a folder of parts among them."""
    path = Path(folder)
    if is_decoder_folder(path):
        return open_generator(
            path, target=target, section=section, runtime=runtime, distribution=distribution, strict_ep=strict_ep
        )
    kind = PairGenerator if kind_of_parts(load_parts(path).parts) == "pair" else PartsGenerator
    return kind(path, target=target, section=section, distribution=distribution, strict_ep=strict_ep)
