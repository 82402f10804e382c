"""kill -9 at random moments of a search, then `--resume`: the same champion, no trial lost, none made twice.

python benchmarks/search/kill.py [--kills 20] [--seed 0]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
KNOBS = {"quantize.scheme": ["int8", "u8u8", "fp16"]}


class Search:
    """A search of the sample in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        space = folder / "space.json"
        space.write_text(json.dumps({"schema": "winml/space/1", "knobs": KNOBS}))
        self._argv = [
            sys.executable, "-m", "winml.modelkit", "autoconfig", "--sample", "--target", "cpu", "--threads", "1",
            "--space", str(space), "--budget", "1h", "--json", "-o",
        ]  # fmt: skip

    def start(self, name: str) -> subprocess.Popen[str]:
        """Start or go on with a search; each has a cache of its own, so that all of them take as long."""
        env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "WINML_CACHE": str(self.folder / f"cache-{name}")}
        resume = ["--resume"] if (self.folder / name / "journal.jsonl").is_file() else []
        return subprocess.Popen(
            [*self._argv, str(self.folder / name), *resume], env=env, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, start_new_session=True,
        )  # fmt: skip

    def finish(self, name: str) -> dict:
        process = self.start(name)
        out, _ = process.communicate()
        assert process.returncode == 0, out
        return json.loads(out)

    def records(self, name: str) -> list[dict]:
        path = self.folder / name / "journal.jsonl"
        lines = path.read_bytes().split(b"\n")[:-1] if path.is_file() else []
        return [json.loads(line)["record"] for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as folder:
        search = Search(Path(folder))
        started = time.monotonic()
        whole = search.finish("whole")
        took_s = time.monotonic() - started
        words = f"{whole['champion']['label']}, {len(whole['trials'])} trials in {took_s:.0f} s"
        print(f"uninterrupted: {words}", flush=True)
        kills, number = 0, 0
        while kills < given.kills:
            number += 1
            kills += killed_until_done(search, f"killed{number}", given.kills - kills, rng, took_s)
            same_as(whole, search.finish(f"killed{number}"))
    print(f"{kills} kills over {number} searches: same champion, no trial lost or doubled")


def killed_until_done(search: Search, name: str, most: int, rng: random.Random, took_s: float) -> int:
    """Kill a search again and again until it is through or was killed often enough; how often that was."""
    before: list[dict] = []
    for kill in range(most):
        process = search.start(name)
        try:
            process.wait(timeout=rng.uniform(0.3, took_s))
            return kill
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        after = search.records(name)
        assert after[: len(before)] == before, "a record was lost"
        print(f"{name}, kill {kill + 1}: {len(after)} records", flush=True)
        before = after
    return most


def same_as(whole: dict, value: dict) -> None:
    choices, expected = (sorted(json.dumps(t["choice"]) for t in v["trials"]) for v in (value, whole))
    assert len(choices) == len(set(choices)), "a trial was made twice"
    assert choices == expected, "a trial is missing"
    assert value["champion"]["digest"] == whole["champion"]["digest"], (value["champion"], whole["champion"])


if __name__ == "__main__":
    main()
