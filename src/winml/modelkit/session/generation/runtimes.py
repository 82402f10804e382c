"""Which program runs a decoder: onnxruntime-genai where it is installed and has the EP, our own loop elsewhere.

Nothing of a runtime is imported here: the process of a command chooses, a worker runs.
"""

from __future__ import annotations

from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.generation import INSTALL_GENAI, DecoderFolder, find_genai
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.target import Target

Runtime = Literal["genai", "onnxruntime"]
RUNTIMES: tuple[Runtime, ...] = ("genai", "onnxruntime")
EPS = ("cpu",)
"""EPs that onnxruntime-genai is run with here; it has others in packages of its own."""


@dataclass(frozen=True)
class ChosenRuntime:
    """The program that runs a decoder, and why."""

    name: Runtime
    reason: str


def unknown_settings(section: SessionSection) -> str | None:
    """Settings of a session that onnxruntime-genai has no word for; None when there are none."""
    given = {
        "the optimization level": section.optimization_level != "all",
        "options of an EP": bool(section.ep_options),
        "fixed dimensions": bool(section.fixed_dims),
    }
    return ", ".join(name for name, is_given in given.items() if is_given) or None


def unknown_cache(folder: DecoderFolder) -> str | None:
    """The cache of a decoder where onnxruntime-genai does not take it, which has one size for all layers."""
    if folder.heads is None or folder.head_size is None:
        return "a cache without `num_key_value_heads` and `head_size`, which must be the same in all layers"
    return None


def choose_runtime(
    target: Target,
    wanted: str | None = None,
    *,
    folder: DecoderFolder | None = None,
    saved: Runtime | None = None,
    section: SessionSection | None = None,
    strict_ep: bool = False,
) -> ChosenRuntime:
    """The runtime for a target; the one that was asked for where one was, then the one that its build names.

    A build says what was faster where it was searched, so that onnxruntime-genai is not missed where it is absent.
    `folder` is the decoder, where it is known: not every cache is one that onnxruntime-genai takes.
    """
    if wanted is not None:
        return ChosenRuntime("genai" if wanted == "genai" else "onnxruntime", "it was asked for")
    if saved == "onnxruntime":
        return ChosenRuntime("onnxruntime", "the build names it")
    if target.ep not in EPS:
        return ChosenRuntime("onnxruntime", f"onnxruntime-genai is not used on {target}")
    if find_genai() is None:
        return ChosenRuntime("onnxruntime", f"onnxruntime-genai is not installed ({INSTALL_GENAI})")
    other = "a check of where nodes ran" if strict_ep else unknown_settings(section or SessionSection())
    other = other or (None if folder is None else unknown_cache(folder))
    if other:
        return ChosenRuntime("onnxruntime", f"onnxruntime-genai does not take {other}")
    return ChosenRuntime("genai", "onnxruntime-genai is installed")
