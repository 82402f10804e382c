"""Which program runs a decoder: onnxruntime-genai where it is installed and has the EP, our own loop elsewhere.

Nothing of a runtime is imported here: the process of a command chooses, a worker runs.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.target import Target

Runtime = Literal["genai", "onnxruntime"]
RUNTIMES: tuple[Runtime, ...] = ("genai", "onnxruntime")
EPS = ("cpu",)
"""EPs that onnxruntime-genai is run with here; it has others in packages of its own."""
INSTALL = "`pip install 'winml-modelkit[genai]'`"


@dataclass(frozen=True)
class ChosenRuntime:
    """The program that runs a decoder, and why."""

    name: Runtime
    reason: str


def is_installed() -> bool:
    return find_spec("onnxruntime_genai") is not None


def choose_runtime(target: Target, wanted: str | None = None, *, saved: Runtime | None = None) -> ChosenRuntime:
    """The runtime for a target; the one that was asked for where one was, then the one that its build names.

    A build says what was faster where it was searched, so that onnxruntime-genai is not missed where it is absent.
    """
    if wanted is not None:
        return ChosenRuntime("genai" if wanted == "genai" else "onnxruntime", "it was asked for")
    if saved == "onnxruntime":
        return ChosenRuntime("onnxruntime", "the build names it")
    if target.ep not in EPS:
        return ChosenRuntime("onnxruntime", f"onnxruntime-genai is not used on {target}")
    if not is_installed():
        return ChosenRuntime("onnxruntime", f"onnxruntime-genai is not installed ({INSTALL})")
    return ChosenRuntime("genai", "onnxruntime-genai is installed")
