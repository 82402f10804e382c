"""What a job costs on a cluster, against the local pool; and what a second node brings on the same work.

    python benchmarks/cluster/run.py [--pairs 3] [--json FILE]

Scheduler and nodes run on this machine, so that network costs nothing and cores are shared. `nothing` is a Python that
ends at once; `waiting` waits for two seconds, which needs no core; `cells` are builds of small models through
`winml matrix run`, with a feed in a folder, against `--jobs 1` here. Ratios are within a pair, the median over pairs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import record

import model_zoo
from cluster_zoo import ClusterHere
from winml.modelkit.dispatch.base import Executor, Job
from winml.modelkit.dispatch.dask_cluster import DaskCluster
from winml.modelkit.dispatch.local import LocalPool

NOTHING = ("nothing", "", 20)
WAITING = ("waiting", "import time; time.sleep(2)", 12)


def seconds(executor: Executor, work: tuple[str, str, int]) -> float:
    """How long jobs take, all submitted at once."""
    name, code, count = work
    started = time.perf_counter()
    for number in range(count):
        executor.submit(Job(f"{name}-{number}", (sys.executable, "-c", code)))
    left = count
    while left:
        result = executor.wait(60)
        if result is not None:
            assert result.status == "ok", result
            left -= 1
    return time.perf_counter() - started


def matrix_seconds(models: list[Path], folder: Path, *words: str) -> float:
    """How long a run over small models takes, with an empty store."""
    named = [word for model in models for word in ("-m", str(model))]
    argv = [sys.executable, "-m", "winml.modelkit", "matrix", "run", *named, "--targets", "cpu", "--no-analyze"]
    where = ["--feed", f"folder:{folder / 'feed'}", "-o", str(folder / "out")]
    env = {**os.environ, "WINML_CACHE": str(folder / "cache")}
    started = time.perf_counter()
    subprocess.run([*argv, *where, *words], check=True, capture_output=True, env=env)
    return time.perf_counter() - started


def models_in(root: Path) -> list[Path]:
    made = {"relu": model_zoo.relu(), "conv": model_zoo.conv_net(), "split": model_zoo.split_net()}
    return [model_zoo.saved(model, root / f"{name}.onnx") for name, model in made.items()]


def one_pair(root: Path, models: list[Path]) -> dict[str, float]:
    found: dict[str, float] = {}
    with LocalPool(1) as pool:
        found["local nothing"] = seconds(pool, NOTHING)
    found["local cells"] = matrix_seconds(models, root / "local")
    here = ClusterHere(root / "cluster")
    try:
        for nodes in (1, 2):
            here.join_with(f"node-{nodes}", 1, {})
            with DaskCluster(here.cluster) as executor:
                found[f"{nodes} nothing"] = seconds(executor, NOTHING)
                found[f"{nodes} waiting"] = seconds(executor, WAITING)
            found[f"{nodes} cells"] = matrix_seconds(models, root / str(nodes), "--cluster", str(here.cluster))
    finally:
        here.close()
    return {
        "overhead_ms_per_job": (found["1 nothing"] - found["local nothing"]) / NOTHING[2] * 1000,
        "one node / local pool, nothing": found["1 nothing"] / found["local nothing"],
        "one node / local, cells": found["1 cells"] / found["local cells"],
        "one node / two, waiting": found["1 waiting"] / found["2 waiting"],
        "one node / two, cells": found["1 cells"] / found["2 cells"],
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    pairs = []
    for _ in range(given.pairs):
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            for folder in ("local", "1", "2"):
                (root / folder).mkdir()
            pairs.append(one_pair(root, models_in(root)))
            print(json.dumps(pairs[-1]))
    for name in pairs[0]:
        values = sorted(pair[name] for pair in pairs)
        print(f"{name:32} {statistics.median(values):8.2f}  ({values[0]:.2f} … {values[-1]:.2f})")
    if given.json is not None:
        rows = [(name, [pair[name] for pair in pairs]) for name in pairs[0]]
        record.write_results(given.json, f"python benchmarks/cluster/run.py --pairs {given.pairs}", rows)


if __name__ == "__main__":
    main()
