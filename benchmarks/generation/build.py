"""What `winml build` of a decoder costs on top of the model builder of onnxruntime-genai, as ratios in one run.

    python benchmarks/generation/build.py [--size 62M] [--rounds 5] [--json FILE]

Both arms make int4 for the CPU of the same Llama with random weights, in turn, each into an empty place: `winml build`,
which also compares with PyTorch and proves the artifact, and `python -m onnxruntime_genai.models.builder`, which does
neither. Processor time is that of all processes. The limits are 2 for time and 1.05 for size.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import record

HERE = Path(__file__).resolve().parent
LIMIT, SIZE_LIMIT = 2.0, 1.05


def run(argv: list[str], env: dict[str, str]) -> tuple[float, float]:
    """Processor time and wall time of a command with everything that it starts."""
    before, started = os.times(), time.monotonic()
    subprocess.run(argv, check=True, capture_output=True, env=env)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return cpu, time.monotonic() - started


def size_of(folder: Path, *names: str) -> int:
    return sum((folder / name).stat().st_size for name in names)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", default="62M")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="winml-build-") as temporary:
        work = Path(temporary)
        make = [sys.executable, str(HERE / "random_llama.py"), options.size, str(work / "model")]
        subprocess.run(make, check=True, capture_output=True)
        for number in range(options.rounds):
            place = work / str(number)
            place.mkdir()
            env = {**os.environ, "WINML_CACHE": str(place / "cache")}
            model, made = str(work / "model"), {name: str(place / name) for name in ("winml", "genai")}
            build = ["build", "-m", model, "-p", "int4", "--target", "cpu", "-o", made["winml"]]
            plain = ["-i", model, "-p", "int4", "-e", "cpu", "-o", made["genai"]]
            arms = {"winml": ["winml.modelkit", *build], "genai": ["onnxruntime_genai.models.builder", *plain]}
            names = list(arms) if number % 2 else list(arms)[::-1]
            took = {name: run([sys.executable, "-m", *arms[name]], env) for name in names}
            built = size_of(place / "winml", "model.onnx", "quantized.onnx.data")
            size = built / size_of(place / "genai", "model.onnx", "model.onnx.data")
            cpu, wall = (took["winml"][index] / took["genai"][index] for index in (0, 1))
            found = {
                "winml build / builder of genai, processor time": cpu,
                "winml build / builder of genai, wall time": wall,
                "winml build / builder of genai, bytes of the model": size,
                "winml build, processor s": took["winml"][0],
                "builder of genai, processor s": took["genai"][0],
            }
            for name, value in found.items():
                rows.setdefault(name, []).append(value)
            print(f"round {number + 1}: processor {cpu:.2f}x, wall {wall:.2f}x, size {size:.3f}x", flush=True)
            shutil.rmtree(place)
    cpu, _, size, *_ = (statistics.median(values) for values in rows.values())
    print(
        f"median {cpu:.2f}x of the builder's processor time (limit {LIMIT}x), {size:.3f}x of its size ({SIZE_LIMIT}x)"
    )
    if options.json:
        command = f"python benchmarks/generation/build.py --size {options.size} --rounds {options.rounds}"
        record.write_results(options.json, command, list(rows.items()))


if __name__ == "__main__":
    main()
