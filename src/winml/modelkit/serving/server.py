"""The server: connections, limits and routes. The model is in processes of its own (`pool.py`)."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import itertools
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from winml.modelkit import __version__
from winml.modelkit.core import plain_text
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import ModelkitError, RequestError, UnavailableError, WorkerTimeout
from winml.modelkit.core.values import read, to_json
from winml.modelkit.serving.http_messages import (
    JSON,
    MOST_HEAD,
    NPZ,
    Refused,
    Request,
    Response,
    json_response,
    parse_head,
    write_chunk,
    write_event,
    write_head,
    write_response,
)
from winml.modelkit.serving.metrics import KIND as METRICS_KIND
from winml.modelkit.serving.metrics import Metrics
from winml.modelkit.serving.openai_form import Answering, Asked, arguments_json, read_request
from winml.modelkit.serving.pool import Job, ModelPool
from winml.modelkit.serving.prediction import BodyKind, GeneratedText, OpenedModel
from winml.modelkit.worker.client import WorkerBug
from winml.modelkit.worker.memory import memory_of

ADDRESS = "127.0.0.1"
_HEAD_S = 30.0
"""How long a client may take to send a request, from its first byte to its last."""
_IDLE_S = 75.0
"""How long a connection may wait for its next request."""
_WRITE_S = 30.0
"""How long a client may take to read a piece of an answer."""
_LINGER_S = 0.2
"""How long late requests are still refused by an answer, after the last answer of a server that stops."""
_INLINE = 64 * 1024
"""Bodies up to here go to the process in the message, larger ones in a file."""
_MOST_DRAINED = 2**20
_DRAIN_S = 1.0
_MOST_LINES = 200
_KINDS: dict[str, BodyKind] = {
    JSON: "json",
    NPZ: "npz",
    "application/zip": "npz",
    "image/bmp": "image",
    "image/gif": "image",
    "image/jpeg": "image",
    "image/png": "image",
    "image/tiff": "image",
    "image/webp": "image",
    "audio/wav": "audio",
    "audio/x-wav": "audio",
    "audio/vnd.wave": "audio",
    "text/plain": "text",
}


@dataclass(frozen=True)
class Limits:
    """What a server takes on."""

    body_bytes: int = 16 * 2**20
    running: int = 1
    """Requests that are answered at the same time: one for each process."""
    queue: int = 64
    """Requests that wait for those."""
    timeout_s: float = 60.0
    """For one answer, without waiting."""
    grace_s: float = 10.0
    """For answers that were begun when the server is stopped."""
    connections: int = 512


class ModelServer:
    """Answers requests on one port of this machine with one model."""

    def __init__(
        self,
        pool: ModelPool,
        opened: OpenedModel,
        *,
        name: str,
        facts: dict[str, Any],
        token: str | None,
        limits: Limits,
        folder: Path,
        log: Callable[[str], None],
    ) -> None:
        self._pool, self._opened, self._name, self._facts = pool, opened, name, facts
        self._token, self.limits, self._folder, self._write_line = token, limits, folder, log
        self.metrics = Metrics()
        self._said: set[str] = set()
        self._admitted = 0
        """Requests that wait or are answered."""
        self._talking = 0
        """Requests whose head was read and whose answer is not whole yet."""
        self._connections: set[asyncio.StreamWriter] = set()
        self._numbers = itertools.count()
        self._is_stopping = False
        self._quiet: asyncio.Event = asyncio.Event()
        self._quiet.set()
        self.port = 0

    def log(self, line: str) -> None:
        """Say something once: whoever floods us does not flood the terminal."""
        shown = plain_text.one_line(line)
        if shown not in self._said and len(self._said) < _MOST_LINES:
            self._said.add(shown)
            self._write_line(shown)

    async def serve(self, listening: socket.socket, stop: asyncio.Event) -> bool:
        """Answer until `stop`, then finish what was begun; whether everything was finished in time."""
        self.port = listening.getsockname()[1]
        server = await asyncio.start_server(self._talk, sock=listening, limit=MOST_HEAD)
        await stop.wait()
        self._is_stopping = True
        server.close()
        finished = True
        try:
            async with asyncio.timeout(self.limits.grace_s):
                await self._quiet.wait()
        except TimeoutError:
            finished = False
        if finished and self._connections:
            await asyncio.sleep(_LINGER_S)
        for writer in list(self._connections):
            writer.close()
        await asyncio.sleep(0)
        return finished

    # Connections

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= self.limits.connections:
            refused = Refused(503, "too-many-connections", f"there are {len(self._connections)} connections already")
            writer.write(write_response(json_response(refused.body(), 503), close=True))
            writer.close()
            return
        self._connections.add(writer)
        with contextlib.suppress(OSError):
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while await self._talk_once(reader, writer):
                pass
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # the client went away, or is too slow to be waited for
        finally:
            self._connections.discard(writer)
            writer.close()

    async def _talk_once(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether another may follow."""
        try:
            async with asyncio.timeout(_IDLE_S):
                head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            await self._refuse_unread(
                reader, writer, Refused(431, "head-too-large", f"the head is longer than {MOST_HEAD} bytes")
            )
            return False
        started = time.perf_counter()
        self._talking += 1
        self._quiet.clear()
        try:
            return await self._answer(head, reader, writer, started)
        finally:
            self._talking -= 1
            if not self._talking:
                self._quiet.set()

    async def _answer(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, started: float
    ) -> bool:
        route = "other"
        try:
            request = parse_head(head)
            self._check(request)
            route = request.path if request.path in _ROUTES else "other"
            handle = self._find(request)
            if request.length > self.limits.body_bytes:
                raise Refused(
                    413,
                    "body-too-large",
                    f"the body has {request.length} bytes, more than {self.limits.body_bytes}",
                    "`winml serve --max-body SIZE` takes more",
                )
            if request.length > _INLINE:
                self._check_room()  # many large bodies are not held in memory to be refused afterwards
        except Refused as refused:
            self.metrics.count(route, refused.status, time.perf_counter() - started)
            await self._refuse_unread(reader, writer, refused)
            return False
        if request.get("expect").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        async with asyncio.timeout(_HEAD_S):
            body = await reader.readexactly(request.length) if request.length else b""
        close = not request.keeps_alive or self._is_stopping
        try:
            response = await handle(request, body, writer)
        except Refused as refused:
            response = json_response(refused.body(), refused.status, refused.headers)
        except ConnectionError:
            self.metrics.count(route, 499, time.perf_counter() - started)
            return False
        if response is None:  # a stream, which was sent
            self.metrics.count(route, 200, time.perf_counter() - started)
            return not close
        close = close or self._is_stopping
        writer.write(write_response(response, close=close, head_only=request.method == "HEAD"))
        async with asyncio.timeout(_WRITE_S):
            await writer.drain()
        self.metrics.count(route, response.status, time.perf_counter() - started)
        return not close

    async def _refuse_unread(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, refused: Refused
    ) -> None:
        """Answer a request whose body is not read, and read what comes: closing would take the answer away from it."""
        writer.write(write_response(json_response(refused.body(), refused.status, refused.headers), close=True))
        with contextlib.suppress(OSError, TimeoutError, RuntimeError):
            async with asyncio.timeout(_DRAIN_S):
                await writer.drain()
                writer.write_eof()
                drained = 0
                while drained < _MOST_DRAINED and (piece := await reader.read(65536)):
                    drained += len(piece)

    def _check(self, request: Request) -> None:
        """Refuse what is not for us, or not from somebody who may ask."""
        host = request.get("host").lower()
        if host not in (f"{ADDRESS}:{self.port}", f"localhost:{self.port}"):
            # A name that somebody has pointed to this machine (DNS rebinding) is not ours.
            self.log(f"refused a request for another host: {host[:200]}")
            raise Refused(421, "other-host", f"this is {ADDRESS}:{self.port}", "use that address")
        own = (f"http://{ADDRESS}:{self.port}", f"http://localhost:{self.port}")
        site = request.get("sec-fetch-site", "none")
        if request.get("origin", own[0]) not in own or site not in ("none", "same-origin"):
            self.log("refused a request of a page in a browser")
            raise Refused(403, "other-origin", "pages of others are not answered")
        if self._is_stopping:
            raise Refused(503, "stopping", "the server is being stopped", headers={"Retry-After": "5"})
        if self._token is None or request.path == "/health":
            return
        kind, _, given = request.get("authorization").partition(" ")
        wanted = self._token.encode()
        if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode("utf-8", "replace"), wanted):
            self.log(f"refused `{request.path[:100]}` without the token")
            raise Refused(
                401,
                "token-needed",
                "the token is missing or is another one",
                "send `Authorization: Bearer TOKEN` with the token that `winml serve` printed",
                {"WWW-Authenticate": "Bearer"},
            )

    def _find(self, request: Request) -> Callable[..., Any]:
        row = _ROUTES.get(request.path)
        if row is None:
            raise Refused(404, "no-such-address", "there is nothing at this address", f"known: {', '.join(_ROUTES)}")
        method, handle = row
        if request.method != method and not (method == "GET" and request.method == "HEAD"):
            raise Refused(405, "other-method", f"this address takes {method}", headers={"Allow": method})
        found: Callable[..., Any] = getattr(self, handle)
        return found

    # Routes

    async def _health(self, request: Request, body: bytes, writer: asyncio.StreamWriter) -> Response:
        health = "stopping" if self._is_stopping else self._pool.health
        return json_response({"status": health}, 200 if health == "ready" else 503)

    async def _metadata(self, request: Request, body: bytes, writer: asyncio.StreamWriter) -> Response:
        limits = {name: getattr(self.limits, name) for name in Limits.__annotations__}
        found = {
            "schema": "winml/serve-metadata/1",
            "winml": __version__,
            "model": self._name,
            **self._facts,
            **to_json(self._opened),
            "limits": limits,
        }
        return json_response(found)

    async def _models(self, request: Request, body: bytes, writer: asyncio.StreamWriter) -> Response:
        entry = {"id": self._name, "object": "model", "created": 0, "owned_by": "winml"}
        return json_response({"object": "list", "data": [entry]})

    async def _metrics(self, request: Request, body: bytes, writer: asyncio.StreamWriter) -> Response:
        waiting = max(0, self._admitted - self.limits.running)
        memory = [found["rss_bytes"] for pid in self._pool.pids if (found := memory_of(pid)) is not None]
        mine = memory_of(os.getpid())
        self.metrics.restarts = self._pool.restarts
        gauges = {
            "winml_ready": ("Whether the model is open.", float(self._pool.health == "ready")),
            "winml_requests_running": ("Requests that are answered now.", float(self._admitted - waiting)),
            "winml_requests_waiting": ("Requests in the queue.", float(waiting)),
            "winml_connections": ("Open connections.", float(len(self._connections))),
            "winml_worker_memory_bytes": (
                "Resident memory of the processes with the model.",
                float(sum(memory)) if memory else None,
            ),
            "winml_server_memory_bytes": (
                "Resident memory of the server.",
                None if mine is None else float(mine["rss_bytes"]),
            ),
        }
        return Response(self.metrics.write(gauges).encode(), kind=METRICS_KIND)

    async def _predict(self, request: Request, body: bytes, writer: asyncio.StreamWriter) -> Response:
        kind = _KINDS.get(request.kind)
        if kind is None:
            raise Refused(
                415,
                "other-type",
                f"`Content-Type: {request.kind[:100]}` is not taken",
                f"known: {', '.join(_KINDS)}",
            )
        if not body:
            raise Refused(400, "wrong-request", "the body is empty")
        args: dict[str, Any] = {"kind": kind, "values": _read_values(request.query)}
        with contextlib.ExitStack() as stack:
            if kind in ("json", "text") and len(body) <= _INLINE:
                args["body"] = _decode(body)
            else:
                args["file"] = self._new_file(stack, body)
            archive = None
            if NPZ in request.get("accept"):
                archive = args["archive"] = self._new_file(stack)
            found = await self._run("serving.predict", args)
            if archive is not None:
                return Response(Path(archive).read_bytes(), kind=NPZ)
            return Response(found["body"].encode())

    def _new_file(self, stack: contextlib.ExitStack, content: bytes | None = None) -> str:
        path = self._folder / f"{next(self._numbers)}"
        stack.callback(path.unlink, missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        return str(path)

    async def _chat(self, request: Request, body: bytes, writer: asyncio.StreamWriter) -> Response | None:
        return await self._complete(request, body, writer, chat=True)

    async def _completions(self, request: Request, body: bytes, writer: asyncio.StreamWriter) -> Response | None:
        return await self._complete(request, body, writer, chat=False)

    async def _complete(
        self, request: Request, body: bytes, writer: asyncio.StreamWriter, *, chat: bool
    ) -> Response | None:
        runtime = self._opened.runtime
        if runtime is None or runtime.context_length is None:
            raise Refused(404, "no-such-address", "the model does not continue texts", "`POST /predict` asks it")
        if request.kind != JSON:
            raise Refused(415, "other-type", f"the body must be `Content-Type: {JSON}`")
        asked = read_request(body, chat=chat, has_template=runtime.chat)
        answering = Answering(asked, self._name)
        if asked.stream:
            await self._stream(request, asked, answering, writer)
            return None
        answer = read(GeneratedText, await self._run("serving.generate", arguments_json(asked)), "answer")
        self._count_tokens(answer)
        return json_response(answering.whole(answer))

    def _count_tokens(self, answer: GeneratedText) -> None:
        self.metrics.prompt_tokens += answer.prompt_tokens or 0
        self.metrics.generated_tokens += answer.tokens or 0

    async def _stream(self, request: Request, asked: Asked, answering: Answering, writer: asyncio.StreamWriter) -> None:
        """Send text while it is made. An error before the first piece has a status; a later one is an event."""
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def on_event(event: dict[str, Any]) -> None:
            loop.call_soon_threadsafe(pieces.put_nowait, event["text"])

        running = asyncio.create_task(self._run("serving.generate", arguments_json(asked), on_event))
        running.add_done_callback(lambda _: pieces.put_nowait(None))
        try:
            first = await pieces.get()
            if first is None and running.exception() is not None:
                await running  # raises
            headers = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
            close = not request.keeps_alive or self._is_stopping
            writer.write(write_head(200, headers, close=close))
            begin = answering.begin()
            if begin is not None:
                writer.write(write_chunk(write_event(begin)))
            while first is not None:
                writer.write(write_chunk(write_event(answering.piece(first))))
                async with asyncio.timeout(_WRITE_S):
                    await writer.drain()
                first = await pieces.get()
            try:
                answer = read(GeneratedText, await running, "answer")
                self._count_tokens(answer)
                for event in answering.end(answer):
                    writer.write(write_chunk(write_event(event)))
            except Refused as refused:
                writer.write(write_chunk(write_event(refused.body())))
            writer.write(write_chunk(write_event("[DONE]")) + write_chunk(b""))
            async with asyncio.timeout(_WRITE_S):
                await writer.drain()
        finally:
            if not running.done():
                running.cancel()

    # The model

    def _check_room(self) -> None:
        if self._admitted >= self.limits.running + self.limits.queue:
            raise Refused(
                429,
                "too-many-requests",
                f"{self._admitted} requests wait or are answered already",
                "ask again later",
                {"Retry-After": "1"},
            )

    async def _run(
        self, op: str, args: dict[str, Any], on_event: Callable[[dict[str, Any]], None] | None = None
    ) -> Any:
        """The answer of a process; `Refused` where there is none."""
        self._check_room()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def settle(found: Any, error: BaseException | None) -> None:
            if not future.done():
                if error is None:
                    future.set_result(found)
                else:
                    future.set_exception(error)

        def done(found: Any, error: BaseException | None) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(settle, found, error)

        job = Job(op, args, done, on_event)
        self._admitted += 1
        try:
            self._pool.put(job)
            return await future
        except asyncio.CancelledError:
            self._pool.drop(job)
            raise
        except WorkerBug as error:
            self.log(f"a bug in winml: {str(error).strip().splitlines()[-1]}")
            raise Refused(500, "bug", "the request cannot be answered: a bug in winml") from error
        except ModelkitError as error:
            raise self._explain(error) from error
        finally:
            self._admitted -= 1

    def _explain(self, error: ModelkitError) -> Refused:
        status = 500
        if isinstance(error, RequestError):
            status = 400
        elif isinstance(error, UnavailableError):
            status = 503
        elif isinstance(error, WorkerTimeout):
            status = 504
        elif self._pool.failure is not None:
            status = 503
        message = error.message
        for name in (str(self._folder),):
            message = message.replace(f"`{name}{os.sep}", "`").replace(name, "")
        return Refused(status, error.code, message, error.hint)


_ROUTES: dict[str, tuple[str, str]] = {
    "/health": ("GET", "_health"),
    "/metadata": ("GET", "_metadata"),
    "/metrics": ("GET", "_metrics"),
    "/predict": ("POST", "_predict"),
    "/v1/models": ("GET", "_models"),
    "/v1/chat/completions": ("POST", "_chat"),
    "/v1/completions": ("POST", "_completions"),
}
"""THE table of routes: address -> its method, and who answers."""


def _decode(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(400, "wrong-request", f"the body is not UTF-8: {error}") from error


def _read_values(query: str) -> bool | None:
    found = parse_qs(query).get("values", [""])[-1]
    if found not in ("", "true", "false"):
        raise Refused(400, "wrong-request", "`values` must be true or false")
    return None if not found else found == "true"


def listen(port: int | None, usual: int) -> socket.socket:
    """A socket on the port that was asked for, on the usual one, or on a free one where that is taken."""
    if port is None:
        with contextlib.suppress(OSError):
            return _bind(usual)
        return _bind(0)
    try:
        return _bind(port)
    except OSError as error:
        raise UnavailableError(
            f"port {port} of {ADDRESS} cannot be used: {error.strerror or error}",
            hint="name another one with `--port`, or omit it to get a free one",
        ) from error


def _bind(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if sys.platform == "win32":
            # On Windows SO_REUSEADDR lets another process take the port while it is in use.
            made.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((ADDRESS, port))
        made.listen(512)
    except BaseException:
        made.close()
        raise
    return made
