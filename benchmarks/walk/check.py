"""Compare a build for the CPU with PyTorch, without anything of winml: what it calls right is checked by another.

    python benchmarks/walk/check.py MODEL_FOLDER BUILD_FOLDER

Inputs are drawn for the names, types and sizes that the ONNX file has, with two rows where it leaves that open; other
open sizes are those that the export was tried with. Prints JSON: `right`, `wrong`, or `skipped` with the reason where
the two cannot be compared: by their names, or because PyTorch draws random numbers itself. PyTorch has two attentions,
`sdpa` and `eager`; where they differ either counts.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

LARGEST_ERROR = 2e-3
"""Of the largest value of an output."""
SIZES = {"batch": 2, "sequence": 12}
"""Of open dimensions that the export does not say a size of."""
DTYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}


def draw(put: Any, config: Any, sizes: dict[str, int], rng: np.random.Generator) -> np.ndarray:
    """A value for an input of the ONNX file."""
    from tiny_models import find_value

    shape = [dim if isinstance(dim, int) else sizes.get(str(dim), 8) for dim in put.shape]
    kind = DTYPES[put.type]
    if kind is np.float32:
        return rng.normal(size=shape).astype(np.float32)
    if "mask" in put.name or kind is np.bool_:
        return np.ones(shape, kind)
    if "bbox" in put.name:
        corners = np.sort(rng.integers(0, 900, (*shape[:-1], 2, 2)), axis=-2)
        return corners.reshape(*shape[:-1], 4).astype(kind)
    if "token_type" in put.name:
        return np.zeros(shape, kind)
    if put.name == "position_ids":
        return np.broadcast_to(np.arange(shape[-1]), shape).astype(kind)
    vocabulary = find_value(config, "vocab_size", "src_vocab_size")
    return rng.integers(5, max(6, (vocabulary if isinstance(vocabulary, int) else 32) - 32), shape).astype(kind)


def find_class(config: Any) -> Any:
    """The class that a config names: of the library, or of the module beside that of the config, which lists it not."""
    import importlib

    import transformers

    name = config.architectures[0]
    module = type(config).__module__.replace(".configuration_", ".modeling_")
    return getattr(transformers, name, None) or getattr(importlib.import_module(module), name)


def compare(model: Path, build: Path) -> dict[str, Any]:
    import inspect

    import onnxruntime
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    files = sorted(build.rglob("model.onnx"))
    if len(files) != 1:
        return {"outcome": "skipped", "reason": f"{len(files)} parts, which PyTorch does not run apart"}
    config = transformers.AutoConfig.from_pretrained(model)
    kind = find_class(config)
    torch_model = kind.from_pretrained(model).eval()
    session = onnxruntime.InferenceSession(files[0], providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(11)
    exported = json.loads((files[0].parent / "export_metadata.json").read_bytes())
    sizes = SIZES | exported.get("sizes", {}) | {"batch": 2}
    values = {put.name: draw(put, config, sizes, rng) for put in session.get_inputs()}
    known = inspect.signature(torch_model.forward).parameters
    if strange := [name for name in values if name not in known]:
        return {"outcome": "skipped", "reason": f"`forward` has no argument {', '.join(strange)}"}
    tensors = {name: torch.from_numpy(value) for name, value in values.items()}
    answers = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        with torch.no_grad():
            answers.append(torch_model(**tensors))
    expected, other = answers
    if torch_model.config._attn_implementation == "sdpa" and hasattr(torch_model, "set_attn_implementation"):
        # Some classes are causal in one attention of PyTorch and not in the other: either is an answer of PyTorch's.
        torch_model.set_attn_implementation("eager")
    with torch.no_grad():
        eager = torch_model(**tensors)
    found = dict(zip([put.name for put in session.get_outputs()], session.run(None, values), strict=True))
    errors = {}
    for name, value in found.items():
        wanted = expected.get(name) if hasattr(expected, "get") else None
        if isinstance(wanted, torch.Tensor):
            if relative_error(other[name].numpy(), wanted.numpy()) > LARGEST_ERROR:
                return {"outcome": "skipped", "reason": f"`{name}` of PyTorch itself is random"}
            errors[name] = min(relative_error(np.asarray(value), one[name].numpy()) for one in (expected, eager))
    if not errors:
        return {"outcome": "skipped", "reason": f"no output of PyTorch is named {', '.join(found)}"}
    worst = max(errors, key=lambda name: errors[name])
    facts = {"compared": len(errors), "outputs": len(found), "error": float(f"{errors[worst]:.3g}")}
    if not errors[worst] <= LARGEST_ERROR:
        said = f"`{worst}` is off PyTorch by {errors[worst]:.2g} of its largest value, and the build ended with 0"
        return {"outcome": "wrong", "reason": said, "facts": facts}
    return {"outcome": "right", "reason": "", "facts": facts}


def relative_error(found: np.ndarray, wanted: np.ndarray) -> float:
    """The largest difference, of the largest value; infinite where shapes or the places of NaN differ."""
    if found.shape != wanted.shape or not np.array_equal(np.isfinite(found), np.isfinite(wanted)):
        return 1e9
    finite = np.isfinite(wanted)
    if not finite.any():
        return 0.0
    difference = np.abs(found[finite].astype(np.float64) - wanted[finite].astype(np.float64)).max()
    return float(difference / max(np.abs(wanted[finite].astype(np.float64)).max(), 1e-12))


def preload() -> None:
    """Import what every comparison needs and what starts no thread, for `warm.py`."""
    import torch  # noqa: F401
    import transformers.modeling_utils  # noqa: F401


def main(words: list[str]) -> int:
    warnings.filterwarnings("ignore")
    print(json.dumps(compare(Path(words[0]), Path(words[1]))), flush=True)
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    sys.exit(main(sys.argv[1:]))
