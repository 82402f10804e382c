"""Programs that stay, for `run.py --warm`: what a step imports is imported once, which halves the time of a model.

    python benchmarks/walk/warm.py winml     answers every request with `winml` in this process; workers are forked
    python benchmarks/walk/warm.py check     answers every request with `check.py` in a process that it forks

A request is a line of JSON with the words and the files for standard output and standard error; the answer is a line
with the exit code. A program that crashes or takes too long is ended with all it started, and the next request starts
another. Linux only, as forks are.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

HERE = Path(__file__).resolve().parent
MOST_REQUESTS = 300
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
        self, words: Sequence[str], *, stdout: Path, stderr: Path, cwd: Path, budget: Any, stop: threading.Event
    ) -> int | None:
        """The exit code, or None when the time of `budget` was over or `stop` was set."""
        if self._tree is None or self._requests >= MOST_REQUESTS:
            self.end()
            self._start()
        self._requests += 1
        request = {"words": [*words], "stdout": str(stdout), "stderr": str(stderr), "cwd": str(cwd)}
        self._tree.process.stdin.write(json.dumps(request).encode() + b"\n")
        self._tree.process.stdin.flush()
        while not budget.is_spent(self._tree.pid) and not stop.is_set():
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


WORKER_MODULES = (
    "numpy",
    "onnx",
    "onnxruntime",
    "winml.modelkit.building.analysis.ask",
    "winml.modelkit.building.analysis.prepare",
    "winml.modelkit.building.compile.running",
    "winml.modelkit.building.optimize.stage",
    "winml.modelkit.building.proof.operations",
    "winml.modelkit.building.quantize.stage",
    "winml.modelkit.graph.describe",
)
"""What workers for ONNX files import. ONNX Runtime has a thread that waits and holds nothing; no session is opened
before a fork."""


class ForkedProcess:
    """A worker's process that was forked and not started; what `ProcessTree` uses of `subprocess.Popen`."""

    def __init__(self, words: Sequence[str], *, held: int, cwd: Path, stderr: Any) -> None:
        their_in, our_in = os.pipe()
        our_out, their_out = os.pipe()
        self.returncode: int | None = None
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            _become_worker(words, (their_in, their_out, stderr.fileno(), held), cwd, parent)
        os.close(their_in)
        os.close(their_out)
        self.stdin, self.stdout = os.fdopen(our_in, "wb", 0), os.fdopen(our_out, "rb", 0)

    def poll(self) -> int | None:
        return self._ask(os.WNOHANG)

    def wait(self, timeout: float | None = None) -> int:
        until = None if timeout is None else time.monotonic() + timeout
        while self._ask(0 if until is None else os.WNOHANG) is None:
            if until is not None and time.monotonic() > until:
                raise subprocess.TimeoutExpired("a forked worker", timeout or 0.0)
            time.sleep(0.005)
        assert self.returncode is not None
        return self.returncode

    def _ask(self, options: int) -> int | None:
        if self.returncode is None:
            found, status = os.waitpid(self.pid, options)
            self.returncode = os.waitstatus_to_exitcode(status) if found else None
        return self.returncode

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def _become_worker(words: Sequence[str], pipes: tuple[int, int, int, int], cwd: Path, parent: int) -> NoReturn:
    """Go on as `worker/program.py` would in a process of its own: with these pipes and nothing else that was open."""
    try:
        os.setsid()
        for number, pipe in enumerate(pipes[:3]):
            os.dup2(pipe, number)
        held = pipes[3]
        os.closerange(3, held)
        os.closerange(held + 1, 4096)
        os.chdir(cwd)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        from winml.modelkit.worker import program
        from winml.modelkit.worker.lifeline import hold

        hold(held, parent)
        program.serve([*words])
    finally:
        os._exit(70)


def fork_workers() -> None:
    """Have workers of this environment forked by this process, which has imported what they need, and not started."""
    from winml.modelkit.worker import client, process_tree

    for name in WORKER_MODULES:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    start = process_tree.ProcessTree._start_on_lifeline

    def fork(self: Any, argv: Any, options: dict[str, Any]) -> None:
        words = argv("") if callable(argv) else []
        if words[:1] != [sys.executable] or str(client.PROGRAM) not in words or options["env"] is not None:
            start(self, argv, options)
            return
        held, self._lifeline = os.pipe()
        preload = words[words.index(str(client.PROGRAM)) + 4 :]
        try:
            self.process = ForkedProcess(preload, held=held, cwd=options["cwd"], stderr=options["stderr"])
        finally:
            os.close(held)

    process_tree.ProcessTree._start_on_lifeline = fork  # type: ignore[method-assign]


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

    fork_workers()
    with warm_exports():
        serve(lambda request: run_words(run, request))


if __name__ == "__main__":
    main()
