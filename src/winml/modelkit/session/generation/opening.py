"""Which program runs a decoder: onnxruntime-genai where it is installed and has the EP, our own loop elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.session.generation import genai_loop
from winml.modelkit.session.generation.genai_loop import GenaiGenerator
from winml.modelkit.session.generation.ort_loop import OrtGenerator

Runtime = Literal["genai", "onnxruntime"]
RUNTIMES: tuple[Runtime, ...] = ("genai", "onnxruntime")


@dataclass(frozen=True)
class ChosenRuntime:
    """The program that runs a decoder, and why."""

    name: Runtime
    reason: str


def choose_runtime(target: Target, wanted: str | None = None) -> ChosenRuntime:
    """The runtime for a target; the one that was asked for where one was."""
    if wanted is not None:
        return ChosenRuntime("genai" if wanted == "genai" else "onnxruntime", "it was asked for")
    if target.ep not in genai_loop.EPS:
        return ChosenRuntime("onnxruntime", f"onnxruntime-genai is not used on {target}")
    if not genai_loop.is_installed():
        return ChosenRuntime("onnxruntime", f"onnxruntime-genai is not installed ({genai_loop.INSTALL})")
    return ChosenRuntime("genai", "onnxruntime-genai is installed")


def open_generator(
    folder: str | Path,
    *,
    target: Target,
    section: SessionSection | None = None,
    runtime: str | None = None,
    distribution: str | None = None,
    strict_ep: bool = False,
    endless: bool = True,
) -> GenaiGenerator | OrtGenerator:
    """A decoder folder, ready to run on a target.

    `distribution` and `strict_ep` are for our own loop, as a session takes them; it never ends a text by itself.
    Without `endless`, onnxruntime-genai does at the model's end tokens, which are no choice for it otherwise.
    """
    chosen = choose_runtime(target, runtime)
    if chosen.name == "genai":
        return GenaiGenerator(folder, target=target, section=section, endless=endless)
    return OrtGenerator(folder, target=target, section=section, distribution=distribution, strict_ep=strict_ep)
