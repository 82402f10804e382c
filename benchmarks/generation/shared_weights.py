"""Whether a decoder has its weights once, for prompts and for steps: in its files, and in the process that runs it.

    python benchmarks/generation/shared_weights.py FOLDER... [--json FILE]

A folder that is not there and is named `SIZE-PRECISION`, as `62M-fp32`, is built first with `winml build`. Bytes of all
model files of the folder are set against the weights of the graph, each counted once by its name. A fresh process then
opens the folder, reads a prompt and runs steps; its memory, with pages of mapped files, is taken before,
when the folder is open, after the prompt, and after the steps. A second copy would show as twice the weights.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import record
from memory import read_memory
from run import ensure_folder

PROMPT, STEPS = 64, 32
RUNTIMES = ("onnxruntime", "genai")


def count_weights(model: Path) -> int:
    """Bytes of the weights of a graph."""
    import onnx

    graph = onnx.load(model, load_external_data=False).graph
    return sum(
        math.ceil(math.prod(tensor.dims) * onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)
        for tensor in graph.initializer
    )


def size_of_models(folder: Path) -> int:
    """Bytes of what is run: the graph and the files that its weights are in."""
    import onnx

    model = folder / "model.onnx"
    named = {
        entry.value
        for tensor in onnx.load(model, load_external_data=False).graph.initializer
        for entry in tensor.external_data
        if entry.key == "location"
    }
    return model.stat().st_size + sum((folder / name).stat().st_size for name in named)


def run_text(folder: Path, runtime: str) -> dict[str, int]:
    """Memory that a process has got since before it opened the folder."""
    import numpy as np

    from winml.modelkit.core.measurement import SessionSection
    from winml.modelkit.core.target import Target
    from winml.modelkit.session.generation.opening import open_generator

    section = SessionSection(threads=1)
    tiny = np.arange(3, 3 + PROMPT)[None]
    for name in ("onnxruntime", "onnxruntime_genai"):
        importlib.import_module(name)  # before anything is counted
    found: dict[str, int] = {}
    before = read_memory([os.getpid()])[1]

    def take(name: str) -> None:
        found[name] = read_memory([os.getpid()])[1] - before

    generator = open_generator(folder, target=Target("cpu", "cpu"), section=section, runtime=runtime)
    take("open")
    generator.start(tiny, new_tokens=STEPS)
    generator.next()
    take("after the prompt")
    for _ in range(STEPS - 1):
        generator.next()
    take("after the steps")
    generator.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(run_text(asked.folders[0], asked.one)))
        return
    rows: list[tuple[str, list[float]]] = []
    for folder in asked.folders:
        ensure_folder(folder)
        weights = count_weights(folder / "model.onnx")
        rows.append((f"{folder.name}: files of the model / weights", [size_of_models(folder) / weights]))
        for runtime in RUNTIMES:
            argv = [sys.executable, __file__, str(folder), "--one", runtime]
            done = subprocess.run(argv, check=True, capture_output=True, text=True)
            taken: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
            rows += [
                (f"{folder.name}, {runtime}: memory {name} / weights", [value / weights])
                for name, value in taken.items()
            ]
    for name, values in rows:
        print(f"{name}: {values[0]:.3f}")
    if asked.json:
        words = " ".join(folder.name for folder in asked.folders)
        record.write_results(asked.json, f"python benchmarks/generation/shared_weights.py {words}", rows)


if __name__ == "__main__":
    main()
