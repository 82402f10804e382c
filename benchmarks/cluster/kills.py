"""kill -9 of run, nodes and scheduler of a cluster at random moments: nothing lost, every cell published exactly once.

    python benchmarks/cluster/kills.py [--kills 15] [--seed 0] [--json FILE]

Five small models for four targets on two nodes of this machine, each with a cache of its own. What was killed starts
again, the run with `--resume`; when one is through, the next one starts under another stamp. Checked at the end of
each: all versions there with the digest of the journal, none built or published twice, every byte verified, nothing
left in the staging area. Checked at the end of all: no process is left of what was killed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import psutil

import model_zoo
from cluster_zoo import ClusterHere, Process
from winml.modelkit.core.errors import UnavailableError
from winml.modelkit.dispatch import node_command as nodes
from winml.modelkit.dispatch.staging import PACKAGE
from winml.modelkit.feed.table import open_feed

KINDS = ("run", "node", "scheduler")
NODES = ("one", "two")
TARGETS = "cpu,dml,openvino/cpu,openvino/gpu"
CELLS = 20
LONGEST_S = 8.0
"""So long a run is left alone at most."""
STARTING_S = 60.0


class World:
    """A scheduler, two nodes, a feed, and five models."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.feed = f"folder:{root / 'feed'}"
        made = {
            "relu": model_zoo.relu(), "conv": model_zoo.conv_net(), "split": model_zoo.split_net(),
            "fused": model_zoo.conv_net(fused=True), "encoder": model_zoo.encoder(),
        }  # fmt: skip
        self._models = [model_zoo.saved(model, root / f"{name}.onnx") for name, model in made.items()]
        self.env = {**os.environ, "WINML_CACHE": str(root / "cache")}
        self.here = ClusterHere(root / "cluster")
        for name in NODES:
            self.here.join(name, "--target", "cpu")

    def start(self, stamp: str) -> subprocess.Popen[str]:
        """Go on with a run, once both nodes are there."""
        until = time.monotonic() + STARTING_S
        while self._there() != set(NODES):
            assert time.monotonic() < until, "a node did not come back"
            time.sleep(0.2)
        named = [word for model in self._models for word in ("-m", str(model))]
        argv = [
            sys.executable, "-m", "winml.modelkit", "matrix", "run", *named, "--targets", TARGETS, "--calibration",
            "random", "--no-analyze", "--feed", self.feed, "--run-stamp", stamp, "--resume",
            "--cluster", str(self.here.cluster), "-o", str(self.root / stamp), "--json",
        ]  # fmt: skip
        pipe = subprocess.PIPE
        return subprocess.Popen(argv, env=self.env, stdout=pipe, stderr=pipe, text=True)

    def _there(self) -> set[str]:
        try:
            return {one.name for one in nodes.list_nodes(self.here.cluster).nodes}
        except UnavailableError:
            return set()

    def again(self, process: Process) -> None:
        process.kill()
        process.start()

    def records(self, stamp: str, kind: str) -> list[dict[str, Any]]:
        journal = self.root / stamp / "journal.jsonl"
        lines = journal.read_text().splitlines() if journal.exists() else []
        return [line["record"] for line in map(json.loads, lines) if line["record"]["record"] == kind]

    def left(self) -> list[str]:
        """Processes that have our folders and are nobody's any more."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("WINML_CACHE", "").startswith(str(self.root)):
                    found.append(" ".join(process.cmdline()))
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return found


def check(world: World, stamp: str, said: str) -> None:
    """Hold a finished run to what is promised."""
    cells = json.loads(said)["cells"]
    assert len(cells) == CELLS
    uploads = world.records(stamp, "upload")
    assert {record["status"] for record in uploads} == {"uploaded"}
    once = Counter(cell["version"] for cell in cells)
    assert Counter(record["version"] for record in uploads) == once, "a cell was published twice"
    built = [record["version"] for record in world.records(stamp, "build") if record["status"] == "ok"]
    assert Counter(built) == once, "a cell was built twice, or its build is not in the journal"
    with closing(open_feed(world.feed)) as feed:
        for cell in cells:
            stored = feed.find(cell["package"], cell["version"])
            assert stored is not None
            assert stored.content.digest == cell["digest"]
            assert feed.verify(stored, lambda event: None).damaged == ()
        assert not feed.versions(PACKAGE), "staged files are left"
    assert not list((world.root / stamp).rglob("*.onnx")), "files of published cells are left"


def disturbed(world: World, stamp: str, kinds: list[str], rng: random.Random) -> tuple[int, str]:
    """Kill something again and again until a run is through; how often that was, and what the run said."""
    run = world.start(stamp)
    for number, kind in enumerate(kinds):
        try:
            said, text = run.communicate(timeout=rng.uniform(0.5, LONGEST_S))
            assert run.returncode == 0, text
            return number, said
        except subprocess.TimeoutExpired:
            pass
        if kind == "run":
            run.kill()
        elif kind == "node":
            world.again(world.here.nodes[rng.choice(NODES)])
        else:
            world.again(world.here.scheduler)
        if kind != "node":
            said, text = run.communicate()
            assert run.returncode in (-9, 0, 3), text
            if run.returncode == 0:
                return number + 1, said
            run = world.start(stamp)
        print(f"{stamp}, {kind} killed: {len(world.records(stamp, 'upload'))} cells published", flush=True)
    said, text = run.communicate()
    assert run.returncode == 0, text
    return len(kinds), said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    left = [KINDS[number % len(KINDS)] for number in range(given.kills)]
    rng.shuffle(left)
    counts: Counter[str] = Counter()
    number = 0
    with tempfile.TemporaryDirectory() as name:
        world = World(Path(name))
        try:
            while left:
                number += 1
                done, said = disturbed(world, f"killed{number}", left, rng)
                counts.update(left[:done])
                left = left[done:]
                check(world, f"killed{number}", said)
        finally:
            world.here.close()
        assert not world.left(), world.left()
    print(f"{dict(counts)} over {number} runs of {CELLS} cells: every cell built and published exactly once")
    if given.json:
        given.json.write_text(json.dumps({"kills": dict(counts), "runs": number, "cells": CELLS}, indent=2) + "\n")


if __name__ == "__main__":
    main()
