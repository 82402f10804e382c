"""Random kills: nothing acknowledged is lost, nothing half-written is visible. And a disk that fills up."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from winml.modelkit.core.errors import UnavailableError
from winml.modelkit.store import digest
from winml.modelkit.store.cache import Cache
from winml.modelkit.store.journal import Journal, read
from winml.modelkit.store.objects import Objects

# A start takes seconds on Windows.
KILLS = 20 if sys.platform == "win32" else 105 if os.environ.get("WINML_TEST_ALL") == "1" else 35
STORE_WRITER = """
import os, sys, pathlib
from winml.modelkit.store.cache import Cache
from winml.modelkit.store.stage_cache import StageKey
cache = Cache(pathlib.Path(sys.argv[1]))
out = pathlib.Path(sys.argv[2])
print("ready", flush=True)
n = 0
while True:
    n += 1
    source = out / f"source-{os.getpid()}"
    source.write_bytes(os.urandom(300_000))
    entry = cache.stages.store(StageKey("s", n, {"pid": os.getpid()}, None), {"m": source}, {})
    cache.objects.link_out(entry.files["m"], out / "model.onnx")
    print(entry.files["m"], flush=True)
"""
JOURNAL_WRITER = """
import sys, pathlib
from winml.modelkit.store.journal import Journal
journal = Journal(pathlib.Path(sys.argv[1]))
start = len(journal.replay.records)
print("ready", flush=True)
for n in range(start, start + 100_000):
    journal.append({"n": n, "text": "x" * (n % 700)})
    print(n, flush=True)
"""


def _run_and_kill(code: str, args: list[str], rng: random.Random) -> list[str]:
    """What the program acknowledged before it was killed: a while after none, one or two lines, however slow it is."""
    with subprocess.Popen([sys.executable, "-c", code, *args], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        first = [process.stdout.readline().rstrip("\n") for _ in range(rng.randrange(3))]
        time.sleep(rng.uniform(0, 0.03))
        process.kill()
        lines = process.stdout.read().split("\n")
    # The last line may be cut off in the pipe by the kill.
    return [*first, *lines[:-1]]


def test_random_kills_leave_whole_objects_and_every_acknowledged_one(tmp_path: Path) -> None:
    rng = random.Random(1)
    cache = Cache(tmp_path / "cache")
    acknowledged: set[str] = set()
    for _ in range(KILLS):
        acknowledged |= set(_run_and_kill(STORE_WRITER, [str(cache.root), str(tmp_path)], rng))
        out = tmp_path / "model.onnx"
        assert not out.exists() or digest.of_file(out) in cache.objects
    stored = {o.digest: digest.of_file(o.path) for o in cache.objects}
    assert all(name == found for name, found in stored.items())
    assert acknowledged <= stored.keys()
    assert acknowledged <= {d for entry in cache.stages for d in entry.files.values()}
    assert len(acknowledged) > KILLS / 2
    assert cache.verify() == ([], len(stored))


def test_random_kills_lose_no_acknowledged_journal_line(tmp_path: Path) -> None:
    rng = random.Random(2)
    path = tmp_path / "journal.jsonl"
    for _ in range(KILLS):
        acknowledged = [int(n) for n in _run_and_kill(JOURNAL_WRITER, [str(path)], rng)]
        records = read(path).records
        assert [r["n"] for r in records] == list(range(len(records)))
        assert not acknowledged or acknowledged[-1] < len(records)
    assert len(read(path).records) > KILLS


def test_a_full_disk_is_exit_3_and_breaks_nothing(small_disk: Path, tmp_path: Path) -> None:
    objects = Objects(small_disk / "cache" / "objects")
    kept = objects.put_bytes(b"k" * 1000)
    big = tmp_path / "big"
    big.write_bytes(os.urandom(2 << 20))
    with pytest.raises(UnavailableError, match="disk full") as caught:
        objects.put_file(big)
    assert caught.value.exit_code == 3
    assert [o.digest for o in objects] == [kept]
    assert list(objects.temporaries()) == []
    assert objects.open_path(kept).read_bytes() == b"k" * 1000


def test_a_full_disk_stops_a_journal_between_lines(small_disk: Path) -> None:
    path = small_disk / "journal.jsonl"
    with Journal(path) as journal:
        written = 0
        with pytest.raises(UnavailableError, match="disk full"):
            while written < 10_000:
                journal.append({"n": written, "text": "x" * 1000})
                written += 1
        replay = read(path)
        assert len(replay.records) == written > 100
        assert replay.torn is None
        with pytest.raises(UnavailableError):
            journal.append({"text": "x" * 100_000})
    with Journal(path) as again:
        assert len(again.replay.records) == written
