"""kill -9 of a matrix run and of its registry at random moments, then `--resume`: every cell published exactly once.

    python benchmarks/matrix/kill.py [--kills 30] [--registry-kills 5] [--seed 0] [--json FILE]

Three models for eight combos against a real docker-registry on 127.0.0.1. After every kill the run goes on; when one is
through, the next one starts under another stamp. Checked at the end of each: all versions there, none named twice in
the registry's own log, none built twice in the journal, `winml feed verify` clean, another `--resume` sends 0 bytes,
skopeo copies an artifact.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import model_zoo
from feed_zoo import RegistryServer, docker_registry, skopeo
from winml.modelkit import sample

PUT = re.compile(r'"PUT /v2/models/[^ ]+/manifests/([^ ]+) HTTP/1\.1" 201')
ROOT = Path(__file__).resolve().parents[2]
WINML = [sys.executable, "-m", "winml.modelkit"]


class World:
    """A registry, a cache and three models."""

    def __init__(self, root: Path) -> None:
        self.root = root
        model_zoo.saved(model_zoo.conv_net(), root / "conv.onnx")
        model_zoo.saved(model_zoo.encoder(), root / "encoder.onnx")
        (root / "list.txt").write_text(
            f"{sample.MODEL} calibration={sample.CALIBRATION} priority=P0\n"
            "conv.onnx priority=P0\nencoder.onnx priority=P0\n"
        )
        (root / "registry").mkdir()
        self.server = RegistryServer(root / "registry")
        self._logs: list[str] = []
        self.env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "WINML_CACHE": str(root / "cache")}

    def argv(self, stamp: str, output: str) -> list[str]:
        return [
            *WINML, "matrix", "run", "--models", str(self.root / "list.txt"), "--priority", "P0", "--calibration",
            "random", "--no-analyze", "--jobs", "2", "--feed", self.server.address, "--run-stamp", stamp, "--resume",
            "-o", str(self.root / output), "--json",
        ]  # fmt: skip

    def start(self, stamp: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(self.argv(stamp, f"out-{stamp}"), env=self.env, stdout=pipe, stderr=pipe, text=True)

    def finish(self, stamp: str, output: str) -> dict:
        done = subprocess.run(self.argv(stamp, output), env=self.env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def kill_registry(self) -> None:
        self.server.kill()
        self._logs.append((self.server.folder / "registry.log").read_text())

    def named(self) -> Counter[str]:
        """How often the registry took a manifest under each version."""
        text = "".join([*self._logs, (self.server.folder / "registry.log").read_text()])
        return Counter(PUT.findall(text))

    def builds(self, stamp: str) -> Counter[str]:
        """How often each cell was built well, by the journal."""
        lines = (self.root / f"out-{stamp}" / "journal.jsonl").read_text().splitlines()
        records = [json.loads(line)["record"] for line in lines]
        return Counter(r["version"] for r in records if r["record"] == "build" and r["status"] == "ok")


def check(world: World, stamp: str) -> int:
    """Hold a finished run to what is promised; the bytes it sent in its last part."""
    value = world.finish(stamp, f"out-{stamp}")
    versions = [cell["version"] for cell in value["cells"]]
    assert len(versions) == 24
    assert all(cell["upload_status"] == "uploaded" for cell in value["cells"])
    named, built = world.named(), world.builds(stamp)
    assert all(named[v] <= 1 for v in versions), "a version was published twice"
    assert all(built[v] == 1 for v in versions), "a cell was built twice or its build is not in the journal"
    assert not list((world.root / f"out-{stamp}").rglob("*.onnx")), "files of published cells are left"
    for package in {cell["package"] for cell in value["cells"]}:
        words = ["feed", "verify", "--package-name", package, "--run-stamp", stamp, "--feed", world.server.address]
        done = subprocess.run([*WINML, *words, "--json"], env=world.env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert len(json.loads(done.stdout)["versions"]) == 8
    assert world.finish(stamp, f"out-{stamp}")["sent_bytes"] == 0
    fresh = world.finish(stamp, f"fresh-{stamp}")
    assert fresh["sent_bytes"] == 0
    assert [c["digest"] for c in fresh["cells"]] == [c["digest"] for c in value["cells"]]
    copy_with_skopeo(world, value["cells"][0])
    return int(value["sent_bytes"])


def copy_with_skopeo(world: World, cell: dict) -> None:
    found = skopeo()
    assert found is not None
    program, env = found
    source = f"docker://{world.server.host}/models/{cell['package']}:{cell['version']}"
    target = world.root / "copy"
    shutil.rmtree(target, ignore_errors=True)
    words = [program, "--insecure-policy", "copy", "--src-tls-verify=false", source, f"dir:{target}"]
    subprocess.run(words, check=True, env=env, capture_output=True)
    assert sum(path.stat().st_size for path in target.iterdir()) >= cell["bytes"]


def disturbed(world: World, stamp: str, kinds: list[str], rng: random.Random, took_s: float) -> int:
    """Start a run again and again and disturb it at random moments, until it is through; how often that was."""
    for number, kind in enumerate(kinds):
        process = world.start(stamp)
        try:
            _, text = process.communicate(timeout=rng.uniform(0.2, took_s / 3))
            assert process.returncode == 0, text
            return number
        except subprocess.TimeoutExpired:
            pass
        if kind == "client":
            process.send_signal(signal.SIGKILL)
            process.communicate()
        else:
            world.kill_registry()
            _, text = process.communicate()
            assert process.returncode in (0, 3), text
            world.server.start()
        journal = world.root / f"out-{stamp}" / "journal.jsonl"
        lines = len(journal.read_bytes().splitlines()) if journal.exists() else 0
        print(f"{stamp}, {kind} killed: {lines} records", flush=True)
    return len(kinds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--registry-kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if docker_registry() is None or skopeo() is None:
        raise SystemExit("docker-registry or skopeo is not here and cannot be fetched")
    rng = random.Random(given.seed)
    left = ["client"] * given.kills + ["registry"] * given.registry_kills
    rng.shuffle(left)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        world = World(Path(name))
        try:
            started = time.monotonic()
            check(world, "whole")
            took_s = time.monotonic() - started
            print(f"uninterrupted: 24 cells in {took_s:.0f} s", flush=True)
            number = 0
            while left:
                number += 1
                stamp = f"killed{number}"
                shutil.rmtree(world.root / "cache", ignore_errors=True)
                done = disturbed(world, stamp, left, rng, took_s)
                counts.update(left[:done])
                left = left[done:]
                check(world, stamp)
        finally:
            world.server.kill()
    print(f"{dict(counts)} over {number} runs of 24 cells: every cell built and published exactly once")
    if given.json:
        given.json.write_text(json.dumps({"kills": dict(counts), "runs": number, "cells": 24}, indent=2) + "\n")


if __name__ == "__main__":
    main()
