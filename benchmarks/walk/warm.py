"""Programs that stay, for `run.py --warm`: what a step imports is imported once, which halves the time of a model.

    python benchmarks/walk/warm.py winml     answers every request with `winml` in this process; exports fork a worker
    python benchmarks/walk/warm.py check     answers every request with `check.py` in a process that it forks

A request is a line of JSON with the words and the files for standard output and standard error; the answer is a line
with the exit code. A program that crashes or takes too long is ended with all it started, and the next request starts
another. Linux only, as forks are.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MOST_REQUESTS = 60
"""After as many a program is started anew, so that what it leaves behind stays small."""


class WarmProgram:
    """One of the programs, started at its first request."""

    def __init__(self, kind: str, environment: dict[str, str]) -> None:
        self.kind = kind
        self.environment = environment
        self._tree: Any = None
        self._answers: queue.Queue[bytes] = queue.Queue()
        self._requests = 0

    def run(
        self, words: Sequence[str], *, stdout: Path, stderr: Path, cwd: Path, limit_s: float, stop: threading.Event
    ) -> int | None:
        """The exit code, or None when the time was over or `stop` was set."""
        started = time.monotonic()
        if self._tree is None or self._requests >= MOST_REQUESTS:
            self.end()
            self._start()
        self._requests += 1
        request = {"words": [*words], "stdout": str(stdout), "stderr": str(stderr), "cwd": str(cwd)}
        self._tree.process.stdin.write(json.dumps(request).encode() + b"\n")
        self._tree.process.stdin.flush()
        while time.monotonic() - started < limit_s and not stop.is_set():
            with contextlib.suppress(queue.Empty):
                if answer := self._answers.get(timeout=0.5):
                    return int(json.loads(answer)["code"])
                code = int(self._tree.process.wait())
                self.end()
                return code
        self.end()
        return None

    def _start(self) -> None:
        from winml.modelkit.worker.process_tree import ProcessTree

        argv = [sys.executable, str(HERE / "warm.py"), self.kind]
        with Path(os.devnull).open("wb") as nowhere:
            self._tree = ProcessTree(argv, cwd=HERE, stderr=nowhere, env=self.environment)
        self._answers, self._requests = queue.Queue(), 0
        self._reader = threading.Thread(target=_collect, args=(self._tree.process.stdout, self._answers), daemon=True)
        self._reader.start()

    def end(self) -> None:
        """End the program, with all it started."""
        if self._tree is not None:
            self._tree.end()
            self._reader.join()
            for pipe in (self._tree.process.stdin, self._tree.process.stdout):
                with contextlib.suppress(OSError):  # what was not yet written to a program that has ended
                    pipe.close()
            self._tree = None


def _collect(lines: Any, answers: queue.Queue[bytes]) -> None:
    """Lines of a program as they come; an empty one at its end."""
    for line in lines:
        answers.put(line)
    answers.put(b"")


@contextlib.contextmanager
def redirected(request: dict[str, Any]) -> Iterator[None]:
    """Standard output and standard error go to the files of the request, also those of child processes."""
    kept = [os.dup(1), os.dup(2)]
    try:
        for number, name in ((1, "stdout"), (2, "stderr")):
            file = os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(file, number)
            os.close(file)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, file in zip((1, 2), kept, strict=True):
            os.dup2(file, number)
            os.close(file)


def run_words(run: Callable[[list[str]], int], request: dict[str, Any]) -> int:
    """The exit code that the program would end with."""
    os.chdir(request["cwd"])
    with redirected(request):
        try:
            return run(request["words"])
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:  # noqa: BLE001 - whatever ends the program is its answer
            traceback.print_exc()
            return 1


def run_forked(run: Callable[[list[str]], int], request: dict[str, Any]) -> int:
    child = os.fork()
    if child == 0:
        os._exit(run_words(run, request))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def serve(answer: Callable[[dict[str, Any]], int]) -> None:
    """Answer requests until there are no more."""
    # The words of a program that prints must not reach the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps({"code": answer(json.loads(line))}), file=answers, flush=True)


def main() -> None:
    sys.path.insert(0, str(HERE))
    if sys.argv[1] == "check":
        import check

        check.preload()
        serve(lambda request: run_forked(check.main, request))
        return
    from winml.modelkit.building.export.warm import warm_exports
    from winml.modelkit.cli.main import run

    with warm_exports():
        serve(lambda request: run_words(run, request))


if __name__ == "__main__":
    main()
