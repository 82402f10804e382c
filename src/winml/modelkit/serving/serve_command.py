"""`winml serve`: answers requests with one model over HTTP on this machine, until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.signals import end_on_signals
from winml.modelkit.serving.pool import ModelPool
from winml.modelkit.serving.run_command import PRELOAD, ModelRequest, choose_model
from winml.modelkit.serving.server import ADDRESS, Limits, ModelServer, listen
from winml.modelkit.worker.scratch import ScratchFolder

PORT = 8650
"""The usual port, so that clients find it again; another one where it is taken."""
TOKEN_VARIABLE = "WINML_SERVE_TOKEN"  # noqa: S105 - the name of a variable
"""The variable of the environment that a token may be in: a command line can be seen by other users of a machine."""
_LEAST_TOKEN = 16


@dataclass(frozen=True)
class ServeRequest:
    """Everything the user decided."""

    model: ModelRequest
    port: int | None = None
    """None: the usual one, or a free one where that is taken. 0: a free one."""
    token: bool = True
    limits: Limits = Limits()


@dataclass(frozen=True, kw_only=True, repr=False)
class ServeReady(CommandResult):
    """A server that listens."""

    schema: Literal["winml/serve/1"] = "winml/serve/1"
    ok: Literal[True] = True
    address: str
    token: str | None
    """What requests carry as `Authorization: Bearer`; null where none is needed."""
    model: str
    target: str
    simulated: bool
    built_for: str | None
    task: str | None
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


def choose_token(wanted: bool) -> str | None:
    """The token of the environment, or a new one."""
    if not wanted:
        return None
    given = os.environ.get(TOKEN_VARIABLE, "")
    if not given:
        return secrets.token_urlsafe(24)
    if len(given) < _LEAST_TOKEN or not given.isascii() or not given.isprintable() or " " in given:
        raise RequestError(f"`{TOKEN_VARIABLE}` must be at least {_LEAST_TOKEN} printable characters without spaces")
    return given


class RunningServer:
    """A server with its model open; `run` answers until `stop` is called, from any thread."""

    def __init__(self, request: ServeRequest, on_event: OnEvent, log: Callable[[str], None]) -> None:
        """Open the model and the port; errors are raised here."""
        self._stack = contextlib.ExitStack()
        try:
            self._open(request, on_event, log)
        except BaseException:
            self._stack.close()
            raise

    def _open(self, request: ServeRequest, on_event: OnEvent, log: Callable[[str], None]) -> None:
        token = choose_token(request.token)
        folder: Path = self._stack.enter_context(ScratchFolder("winml-serve-"))
        self._listening = self._stack.enter_context(contextlib.closing(listen(request.port, PORT)))
        chosen = choose_model(request.model, on_event, folder)
        target, name = chosen.resolved.target, Path(request.model.model).name or request.model.model
        self._pool = ModelPool(
            chosen.opening,
            python=chosen.resolved.installed.python,
            preload=PRELOAD,
            workers=request.limits.running,
            timeout_s=request.limits.timeout_s,
            open_timeout_s=None,
            what=f"`{name}` on {target}",
            log=log,
        )
        self._stack.callback(self._pool.close)
        opened = self._pool.open()
        port = self._listening.getsockname()[1]
        facts = {"target": str(target), "simulated": target.simulated, "built_for": chosen.built_for}
        self._parts: dict[str, Any] = {
            "name": name,
            "facts": facts,
            "token": token,
            "limits": request.limits,
            "folder": folder,
            "log": log,
        }
        self._opened = opened
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._asked_to_stop = threading.Event()
        moved = (f"port {PORT} is taken, so it is {port}",) if request.port is None and port != PORT else ()
        self.ready = ServeReady(
            address=f"http://{ADDRESS}:{port}",
            token=token,
            model=request.model.model,
            target=str(target),
            simulated=target.simulated,
            built_for=chosen.built_for,
            task=opened.task,
            notes=(*moved, *opened.notes),
            warnings=(*chosen.notes, *opened.warnings),
        )

    def run(self) -> bool:
        """Answer until `stop`; whether every answer that was begun was finished."""
        try:
            if sys.platform == "win32":
                # Sockets alone are waited for, and few of them: what Wine and old systems do best.
                with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
                    return runner.run(self._serve())
            return asyncio.run(self._serve())
        finally:
            self.close()

    async def _serve(self) -> bool:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        if self._asked_to_stop.is_set():
            self._stop.set()
        server = ModelServer(self._pool, self._opened, **self._parts)
        ticking = asyncio.create_task(_let_signals_in())
        try:
            return await server.serve(self._listening, self._stop)
        finally:
            ticking.cancel()

    def stop(self) -> None:
        """Finish what was begun and end; nothing happens the second time."""
        self._asked_to_stop.set()
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(stop.set)

    def close(self) -> None:
        """End the processes with the model; for a server that was never run, or that `run` has ended."""
        self._stack.close()


async def _let_signals_in() -> None:
    """Windows runs handlers of signals only when Python runs."""
    while sys.platform == "win32":
        await asyncio.sleep(0.2)


def serve(
    request: ServeRequest, on_event: OnEvent, on_ready: Callable[[ServeReady], None], log: Callable[[str], None]
) -> None:
    """Answer requests until Ctrl-C or SIGTERM; `log` gets a line about what went wrong or was refused."""
    server = RunningServer(request, on_event, log)
    with end_on_signals(server.stop):
        on_ready(server.ready)
        if not server.run():
            log("some answers were not finished in time; `--stop-timeout S` gives them more")
