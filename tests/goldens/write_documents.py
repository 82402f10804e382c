"""Writes the documents of `before/` with the program as it is: `python tests/goldens/write_documents.py`.

They were written once, by the version before all results became values, and stay as they are: what reads them has to
go on doing so. Run this again only to add a document, and keep the others.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # as a program

import hf_zoo
import model_zoo
from goldens import inputs

PLACE = Path("/tmp/winml-before")  # a name that says nothing about a machine: paths in the documents start with it
BEFORE = Path(__file__).parent / "before"
KEPT = (
    "tiny.onnx", "small.onnx", "wide.onnx", "calibration.npz", "space.json", "models.txt", "list.txt", "config.json",
    "plain", "int8", "parts", "perf.json", "perf_op_trace.json", "small_op_trace.json", "compare.json", "eval.json",
    "search", "stopped-search", "sweep", "feed", "matrix", "matrix-feed", "own", "contribution", "cache",
)  # fmt: skip
PROGRAM = [sys.executable, "-m", "winml.modelkit"]
SEARCH = ("-m", "tiny.onnx", "--objective", "size", "--target", "cpu", "--budget", "5m",
          "--calibration", "calibration.npz", "--space", "space.json")  # fmt: skip
MATRIX = ("matrix", "run", "--models", "models.txt", "--targets", "cpu,dml", "--no-analyze", "--run-stamp", "20260101",
          "--feed", "folder:matrix-feed")  # fmt: skip


def _environment() -> dict[str, str]:
    return {**os.environ, "WINML_CACHE": str(PLACE / "cache"), "WINML_KNOWLEDGE": str(PLACE / "own")}


def winml(*words: str) -> None:
    done = subprocess.run(
        [*PROGRAM, *words], cwd=PLACE, env=_environment(), capture_output=True, text=True, check=False
    )
    print(done.returncode, *words, flush=True)  # noqa: T201
    if done.returncode:
        print(done.stdout[-500:], done.stderr)  # noqa: T201


def stopped(journal: str, kind: str, count: int, *words: str) -> None:
    """Start a command and kill it when its journal has so many records of a kind."""
    path = PLACE / journal
    process = subprocess.Popen(
        [*PROGRAM, *words], cwd=PLACE, env=_environment(), start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while process.poll() is None:
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        if text.count(kind) >= count:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.01)
    print("stopped", process.wait(), *words, flush=True)  # noqa: T201


def write_inputs() -> None:
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir()
    model_zoo.saved(model_zoo.conv_net(channels=4, size=8), PLACE / "tiny.onnx")
    model_zoo.saved(model_zoo.conv_net(channels=6, size=8), PLACE / "small.onnx")
    model_zoo.saved(model_zoo.conv_net(), PLACE / "conv.onnx")
    model_zoo.saved(inputs.deep_net(), PLACE / "deep.onnx")
    model_zoo.saved(inputs.wide_product(), PLACE / "wide.onnx")
    np.savez(PLACE / "calibration.npz", x=np.random.default_rng(1).random((8, 3, 8, 8), dtype=np.float32))
    space = {"quantize.scheme": ["fp16", "dynamic", "int8"]}
    (PLACE / "space.json").write_text(json.dumps({"schema": "winml/space/1", "knobs": space}), encoding="utf-8")
    (PLACE / "models.txt").write_text("tiny.onnx name=tiny\nsmall.onnx name=small\n", encoding="utf-8")
    (PLACE / "list.txt").write_text("tiny.onnx\nsmall.onnx\n", encoding="utf-8")


def write_documents() -> None:
    quick = ("--target", "cpu", "--sessions", "1", "--iterations", "3")
    winml("build", "-m", "tiny.onnx", "--target", "cpu", "-o", "plain")
    int8 = ("-m", "tiny.onnx", "--target", "cpu", "-p", "int8", "--calibration", "calibration.npz")
    winml("config", *int8, "-o", "config.json")
    winml("build", *int8, "-o", "int8")
    shutil.copytree(PLACE / "cache", PLACE / "kept-cache")
    winml("perf", "-m", "tiny.onnx", *quick, "--op-tracing", "basic", "-o", "perf.json")
    winml("perf", "-m", "small.onnx", *quick, "--op-tracing", "basic", "-o", "small.json")
    winml("compare", "deep.onnx", "conv.onnx", "--target", "cpu", "--max-seconds", "60", "--allow-different",
          "--no-calibration", "-o", "compare.json")  # fmt: skip
    winml("kb", "draft", "compare.json")
    winml("eval", "-m", "int8", "--reference", "tiny.onnx", "--data", "random", "--samples", "3", "-o", "eval.json")
    winml("autoconfig", *SEARCH, "-o", "search")
    stopped("stopped-search/journal.jsonl", '"kind":"trial"', 2, "autoconfig", *SEARCH, "-o", "stopped-search")
    winml("autoconfig", "--models", "list.txt", *SEARCH[2:], "-o", "sweep")
    winml("feed", "push", "int8", "--feed", "folder:feed", "-m", "org/tiny", "--run-stamp", "20260101")
    stopped("matrix/journal.jsonl", '"record":"upload"', 1, *MATRIX, "--keep-local", "-o", "matrix")
    winml("kb", "replay", "npu-006")
    subprocess.run([sys.executable, hf_zoo.__file__, PLACE, "t5"], check=True)
    winml("build", "-m", "t5", "--target", "cpu", "-o", "parts", "--no-analyze")
    winml("support", "produce", "-m", "wide.onnx", "-p", "dynamic", "--goal", "L2", "-o", "contribution")


def collect() -> None:
    """Copy what is kept; a file that is there already stays as it is."""
    (PLACE / "cache").rename(PLACE / "whole-cache")
    (PLACE / "kept-cache").rename(PLACE / "cache")
    for name in KEPT:
        for path in (p for p in (PLACE / name, *(PLACE / name).rglob("*")) if p.is_file() and p.suffix != ".lock"):
            place = BEFORE / path.relative_to(PLACE)
            if not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(path.read_bytes())


if __name__ == "__main__":
    write_inputs()
    write_documents()
    collect()
