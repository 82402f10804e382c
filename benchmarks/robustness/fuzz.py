"""Reads damaged files with every reader there is, and counts what must not happen.

    python benchmarks/robustness/fuzz.py --inputs 100000 --jobs 2
    python benchmarks/robustness/fuzz.py --minutes 120 --reader "npz data" --reader image
    python benchmarks/robustness/fuzz.py --show "npz data" 4711      # one input again, with its traceback

A child process reads the inputs of one reader, one after the other; input N of a reader is the same in every run. The
parent watches it: an input that takes longer than 30 s, a child (with its workers) above 2 GiB, a child that died, an
exception that is not ours, and a file written, a program started or an address asked outside the work folder are
findings. Each is kept in `build/fuzz` with its input; a mended one goes to `tests/fuzz_corpus`.

The damage is made here and not by a coverage-guided fuzzer (`docs/decisions/0021-fuzzing.md`).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "e2e")]

HANG_S = 30.0
_BUSY = 10
MEMORY_BYTES = 2 * 2**30
BATCH = 500
FINDINGS = ("traceback", "hang", "memory", "crash", "outside")


# The child


class Outside:
    """Notes what a reader does besides reading: Python tells of every file, program and address before it acts."""

    WRITES = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "shutil.rmtree")
    STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect", "ctypes.dlopen")

    def __init__(self, folder: Path, allowed: tuple[str, ...]) -> None:
        self.folder = str(folder)
        self.seen: list[str] = []
        self.watching = False
        self._allowed = allowed
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.watching:
            return
        started = event in self.STARTS and not any(word in str(args) for word in self._allowed)
        if started or (event in self.WRITES and self._writes(event, args)):
            self.seen.append(f"{event} {str(args)[:200]}")

    def _writes(self, event: str, args: tuple[Any, ...]) -> bool:
        if event == "open":
            path, mode, flags = args
            if isinstance(path, int) or not ((isinstance(mode, str) and set(mode) & set("wax+")) or self._flags(flags)):
                return False
            return not self._inside(path)
        return not all(self._inside(path) for path in args if isinstance(path, str | bytes | os.PathLike))

    @staticmethod
    def _flags(flags: object) -> bool:
        return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))

    def _inside(self, path: Any) -> bool:
        text = str(Path(os.fsdecode(path)).absolute())
        return text.startswith(self.folder) or text == os.devnull or "winml-worker-" in text or "__pycache__" in text


def child(name: str, first: int, count: int, folder: Path) -> None:
    """Read so many inputs; a line per input before it is read, a line per finding."""
    import fuzz_readers

    # A worker is started for models, by the reader and by nobody else.
    outside = Outside(folder, ("winml",) if name == "model" else ())
    counts: Counter[str] = Counter()
    progress = (folder.parent / f"{folder.name}.progress").open("w")
    work = folder / "work"
    for number in range(first, first + count):
        progress.seek(0)
        progress.write(f"{number:12d}\n")
        progress.flush()
        data = fuzz_readers.make(name, number)
        work.mkdir(exist_ok=True)
        finding = None
        outside.watching = True
        try:
            counts[fuzz_readers.answer(name, work, data)] += 1
        except Exception:  # noqa: BLE001 - this is what is looked for
            finding = ("traceback", traceback.format_exc())
        outside.watching = False
        if outside.seen:
            finding = ("outside", "\n".join(outside.seen))
            outside.seen.clear()
        if finding is not None:
            counts[finding[0]] += 1
            print(json.dumps({"finding": finding[0], "number": number, "text": finding[1]}), flush=True)
        shutil.rmtree(work)
    fuzz_readers.close()
    print(json.dumps({"counts": counts}), flush=True)


# The parent


class Batch:
    """A child process and what it has come to."""

    def __init__(self, name: str, first: int, count: int, root: Path) -> None:
        self.name, self.first, self.count = name, first, count
        self.folder = Path(tempfile.mkdtemp(dir=root))
        self._progress = self.folder.parent / f"{self.folder.name}.progress"
        self.output = (root / f"{self.folder.name}.out").open("w+")
        words = ["--child", name, str(first), str(count), str(self.folder)]
        environment = {**os.environ, "WINML_CACHE": str(self.folder / "c"), "WINML_KNOWLEDGE": str(self.folder / "k")}
        environment |= {"TMPDIR": str(self.folder), "HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        self.process = psutil.Popen(
            [sys.executable, "-W", "ignore", __file__, *words], stdout=self.output, stderr=subprocess.STDOUT,
            env=environment, cwd=self.folder,
        )  # fmt: skip
        self._number, self._since, self._cpu = first, time.monotonic(), 0.0

    def _at(self) -> int:
        try:
            return int(self._progress.read_text())
        except (OSError, ValueError):
            return self._number

    def trouble(self) -> str | None:
        """A hang or too much memory, now."""
        number = self._at()
        if number != self._number:
            self._number, self._since, self._cpu = number, time.monotonic(), self._worked()
        # A machine that is busy with other things is no hang of ours.
        if self._worked() - self._cpu > HANG_S or time.monotonic() - self._since > _BUSY * HANG_S:
            return "hang"
        return "memory" if self._memory() > MEMORY_BYTES else None

    def _worked(self) -> float:
        """Seconds of CPU time so far, with those of workers."""
        total = 0.0
        with contextlib.suppress(psutil.Error):
            for process in (self.process, *self.process.children(recursive=True)):
                times = process.cpu_times()
                total += times.user + times.system
        return total

    def _memory(self) -> int:
        total = 0
        try:
            for process in (self.process, *self.process.children(recursive=True)):
                total += process.memory_info().rss
        except psutil.Error:
            return total
        return total

    def end(self) -> None:
        try:
            for process in (*self.process.children(recursive=True), self.process):
                process.kill()
        except psutil.NoSuchProcess:
            pass
        self.process.wait()

    def finished(self, trouble: str | None) -> tuple[Counter[str], list[dict[str, Any]], int]:
        """Counts, findings, and how many inputs are done with."""
        self.output.seek(0)
        counts: Counter[str] = Counter()
        findings, text = [], []
        done = None
        for line in self.output:
            try:
                value = json.loads(line)
            except ValueError:
                text.append(line)
                continue
            if "counts" in value:
                done = value["counts"]
            elif "finding" in value:
                findings.append(value)
        self.output.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        if done is not None:
            counts.update(done)
            return counts, findings, self.count
        number = self._at()
        kind = trouble or "crash"
        findings.append({"finding": kind, "number": number, "text": "".join(text[-40:])})
        counts.update(value["finding"] for value in findings)
        read = number - self.first + 1
        counts["read or refused"] += read - sum(counts.values())
        return counts, findings, read


class Run:
    """All batches of all readers, so many at a time."""

    def __init__(self, names: list[str], inputs: int | None, minutes: float | None, jobs: int) -> None:
        self.names, self.jobs = names, jobs
        self.share = None if inputs is None else max(1, -(-inputs // len(names)))
        self.until = None if minutes is None else time.monotonic() + 60 * minutes
        self.next = dict.fromkeys(names, 0)
        self.counts: dict[str, Counter[str]] = {name: Counter() for name in names}
        self.kept = ROOT / "build" / "fuzz"
        self.findings = 0

    def _batches(self) -> Iterator[tuple[str, int, int]]:
        while True:
            started = False
            for name in self.names:
                left = BATCH if self.share is None else min(BATCH, self.share - self.next[name])
                if left > 0 and not (self.until and time.monotonic() > self.until):
                    started = True
                    first = self.next[name]
                    self.next[name] += left
                    yield name, first, left
            if not started:
                return

    def go(self) -> None:
        # Most of the time goes into files; memory is the fastest disk.
        memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
        with tempfile.TemporaryDirectory(prefix="winml-fuzz-", dir=memory) as root:
            waiting, running = self._batches(), list[Batch]()
            rest: list[tuple[str, int, int]] = []
            while True:
                while len(running) < self.jobs:
                    wanted = rest.pop() if rest else next(waiting, None)
                    if wanted is None:
                        break
                    running.append(Batch(*wanted, Path(root)))
                if not running:
                    return
                time.sleep(0.2)
                for batch in list(running):
                    trouble = None if batch.process.poll() is not None else batch.trouble()
                    if trouble:
                        batch.end()
                    if batch.process.poll() is not None:
                        running.remove(batch)
                        rest += self._end(batch, trouble)

    def _end(self, batch: Batch, trouble: str | None) -> list[tuple[str, int, int]]:
        counts, findings, read = batch.finished(trouble)
        self.counts[batch.name].update(counts)
        for finding in findings:
            self._keep(batch.name, finding)
        left = batch.count - read
        return [(batch.name, batch.first + read, left)] if left > 0 else []

    def _keep(self, name: str, finding: dict[str, Any]) -> None:
        import fuzz_readers

        self.findings += 1
        self.kept.mkdir(parents=True, exist_ok=True)
        stem = f"{name.replace(' ', '-')}-{finding['number']}-{finding['finding']}"
        (self.kept / f"{stem}.input").write_bytes(fuzz_readers.make(name, finding["number"]))
        (self.kept / f"{stem}.txt").write_text(finding["text"], encoding="utf-8")
        last = finding["text"].strip().splitlines()[-1:] or [""]
        print(f"{finding['finding']}: {name} {finding['number']}: {last[0][:160]}", flush=True)

    def report(self, seconds: float) -> dict[str, Any]:
        total: Counter[str] = Counter()
        for counts in self.counts.values():
            total.update(counts)
        print(f"{'reader':24} {'inputs':>8} {'read':>8} {'refused':>8} " + " ".join(f"{f:>9}" for f in FINDINGS))
        for name, counts in [*self.counts.items(), ("all", total)]:
            row = [sum(counts.values()), counts["read"], counts["refused"], *(counts[f] for f in FINDINGS)]
            print(f"{name:24} " + " ".join(f"{n:>8}" for n in row[:3]) + " " + " ".join(f"{n:>9}" for n in row[3:]))
        found = {finding: total[finding] for finding in FINDINGS}
        print(f"{sum(total.values())} inputs in {seconds:.0f} s, {sum(found.values())} findings")
        return {"inputs": sum(total.values()), "seconds": round(seconds), **found}


def show(name: str, number: int) -> None:
    """Read one input again here, with its traceback."""
    import fuzz_readers

    data = fuzz_readers.make(name, number)
    print(f"{len(data)} bytes: {data[:300]!r}")
    with tempfile.TemporaryDirectory() as folder:
        print(fuzz_readers.answer(name, Path(folder), data))
    fuzz_readers.close()


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        name, first, count, folder = sys.argv[2:]
        child(name, int(first), int(count), Path(folder))
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, help="inputs in all, shared by the readers")
    parser.add_argument("--minutes", type=float, help="how long to go on (default 3 when no number of inputs is given)")
    parser.add_argument("--reader", action="append", help="only this reader; may be given several times")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--result", type=Path, help="append the counts to a JSON lines file")
    parser.add_argument("--show", nargs=2, metavar=("READER", "NUMBER"), help="read one input again")
    given = parser.parse_args()
    if given.show:
        show(given.show[0], int(given.show[1]))
        return 0
    import fuzz_readers

    names = given.reader or list(fuzz_readers.readers())
    minutes = 3.0 if given.inputs is None and given.minutes is None else given.minutes
    run = Run(names, given.inputs, minutes, given.jobs)
    started = time.monotonic()
    run.go()
    counts = run.report(time.monotonic() - started)
    if given.result:
        with given.result.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(counts) + "\n")
    return 1 if run.findings else 0


if __name__ == "__main__":
    sys.exit(main())
