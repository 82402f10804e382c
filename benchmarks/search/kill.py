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
KNOBS = {"quantize.scheme": ["int8", "u8u8"], "quantize.op_types": ["Conv"]}


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
        self._env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "WINML_CACHE": str(folder / "cache")}

    def start(self, name: str) -> subprocess.Popen[str]:
        resume = ["--resume"] if (self.folder / name / "journal.jsonl").is_file() else []
        return subprocess.Popen(
            [*self._argv, str(self.folder / name), *resume], env=self._env, stdout=subprocess.PIPE,
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
        took = time.monotonic() - started
        print(f"uninterrupted: {whole['champion']['label']} in {took:.0f} s, {len(whole['trials'])} trials", flush=True)
        before: list[dict] = []
        for kill in range(given.kills):
            process = search.start("killed")
            try:
                process.wait(timeout=rng.uniform(0.5, max(2.0, took / 2)))
                print("it ended before the kill", flush=True)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            after = search.records("killed")
            assert after[: len(before)] == before, "a record was lost"
            print(f"kill {kill + 1}: {len(after)} records", flush=True)
            before = after
        value = search.finish("killed")
    choices = [json.dumps(trial["choice"], sort_keys=True) for trial in value["trials"]]
    assert len(choices) == len(set(choices)), "a trial was made twice"
    assert sorted(choices) == sorted(json.dumps(t["choice"], sort_keys=True) for t in whole["trials"])
    assert value["champion"]["digest"] == whole["champion"]["digest"], (value["champion"], whole["champion"])
    label = value["champion"]["label"]
    print(f"{given.kills} kills: same champion ({label}), {len(choices)} trials, none lost or doubled")


if __name__ == "__main__":
    main()
