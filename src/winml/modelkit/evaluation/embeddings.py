"""One vector per text, from a model that gives one per text or one per token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data import processor
from winml.modelkit.evaluation.task import Outputs, Setting, plain

USUAL = ("sentence_embedding", "last_hidden_state", "token_embeddings")
POOLING = "1_Pooling/config.json"
_MASKS = ("attention_mask", "input_mask")
_POOLINGS: dict[str, Callable[[npt.NDArray[Any]], npt.NDArray[Any]]] = {
    "cls": lambda tokens: tokens[0],
    "mean": lambda tokens: tokens.mean(axis=0),
    "max": lambda tokens: tokens.max(axis=0),
}
_MODES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
}


def _pooling(folder: Path | None) -> tuple[str, str | None]:
    """How tokens become one embedding, as sentence-transformers writes it; the mean, with a note, where it does not."""
    path = processor.find(folder, POOLING)
    if path is None:
        return "mean", f"{POOLING} is missing, so the embedding of a text is the mean over its tokens"
    asked = [key for key, value in processor.read_object(path).items() if key.startswith("pooling_mode_") and value]
    if len(asked) != 1 or asked[0] not in _MODES:
        raise DataError(f"`{path}` asks for {', '.join(asked) or 'no pooling'}; known: {', '.join(_MODES)}")
    return _MODES[asked[0]], None


@dataclass(frozen=True)
class Embedder:
    """Makes one vector of an output, without the tokens that only fill up."""

    output: str
    pooling: str
    notes: tuple[str, ...]

    def embed(self, run: Outputs, inputs: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.float64]:
        output = run[self.output]
        if output.ndim != 3:
            return plain(output)
        tokens = np.asarray(output[0], np.float64)
        mask = next((inputs[name] for name in _MASKS if name in inputs), None)
        kept = tokens if mask is None else tokens[mask.reshape(-1).astype(bool)]
        return plain(_POOLINGS[self.pooling](kept))

    def unit(self, run: Outputs, inputs: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.float64] | None:
        """The vector with length 1; None when it has no direction."""
        return unit_vector(self.embed(run, inputs))


def unit_vector(vector: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:
    """The vector with length 1; None for one that has no direction."""
    norm = float(np.linalg.norm(vector))
    return vector / norm if np.isfinite(norm) and norm > 0.0 else None


def find_embedder(setting: Setting) -> Embedder:
    output, note = setting.pick(*USUAL)
    pooling, pooled = ("mean", None) if output == USUAL[0] else _pooling(setting.folder)
    return Embedder(output, pooling, tuple(n for n in (note, pooled) if n))
