"""A web server for one person on this machine: it listens on 127.0.0.1, answers GET and HEAD, and checks who asks.

Pages of other sites, other users of the machine and whoever made the files that are shown are not trusted. Why the
standard library suffices: docs/decisions/0027-dashboard-server.md.
"""

from __future__ import annotations

import contextlib
import hmac
import io
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, BinaryIO
from urllib.parse import parse_qsl, quote, unquote, urlencode

from winml.modelkit import __version__
from winml.modelkit.core import plain_text
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import UnavailableError

ADDRESS = "127.0.0.1"
MOST_HEAD = 16 * 2**10
"""Bytes of a request: its line and its headers."""
MOST_CLIENTS = 32
"""Connections at once; a browser uses six."""
_HEAD_S = 10.0
"""How long a client may take to ask."""
_ANSWER_S = 30.0
"""How long a client may take to read a piece of an answer."""
_MOST_FIELDS = 300
_MOST_LINES = 200
"""Lines of the log; whoever floods us does not flood the terminal."""
_DRAIN_S = 1.0
_MOST_DRAINED = 2**20
PLAIN = "text/plain; charset=utf-8"
NO_CONTENT_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


@dataclass(frozen=True)
class Request:
    """A request that was allowed."""

    path: str
    """As it was sent, not decoded."""
    query: Mapping[str, tuple[str, ...]]
    etag: str | None = None
    """What the client has (`If-None-Match`)."""

    def get(self, name: str, default: str = "") -> str:
        """The first value of a name."""
        return self.query.get(name, (default,))[0]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What is sent back."""

    status: HTTPStatus = HTTPStatus.OK
    kind: str = PLAIN
    body: bytes = b""
    file: BinaryIO | None = None
    """Sent instead of a body, up to `length` bytes."""
    length: int = 0
    policy: str = NO_CONTENT_POLICY
    headers: Mapping[str, str] = field(default_factory=dict)


def plain_answer(status: HTTPStatus, text: str, **headers: str) -> Answer:
    """A sentence."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, body=(plain_text.one_line(text) + "\n").encode("utf-8", "replace"), headers=named)


class LocalServer(ThreadingHTTPServer):
    """Listens on a port of 127.0.0.1 and lets `answer` answer what is allowed."""

    # On Windows the option lets another process take the port while it is in use.
    allow_reuse_address = sys.platform != "win32"
    allow_reuse_port = False
    daemon_threads = True
    request_queue_size = MOST_CLIENTS

    def __init__(
        self,
        port: int,
        answer: Callable[[Request], Answer],
        *,
        token: str | None = None,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.answer = answer
        self.token = token
        self._write_line = log
        self._said: set[str] = set()
        self._tickets: set[str] = set()
        self._places = threading.BoundedSemaphore(MOST_CLIENTS)
        super().__init__((ADDRESS, port), _Handler)

    def log(self, line: str) -> None:
        """Say something once: a page that was left open asks again and again."""
        shown = plain_text.one_line(line)
        if shown not in self._said and len(self._said) < _MOST_LINES:
            self._said.add(shown)
            self._write_line(shown)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def address(self) -> str:
        """The address of the first page, for people: with the token."""
        return self._with_token(self.token)

    @property
    def cookie(self) -> str:
        """The name of the cookie; cookies know no ports, so that two dashboards need two names."""
        return f"winml_dashboard_{self.port}"

    def make_ticket(self) -> str:
        """An address that works once: the command line of a browser can be seen by other users of the machine."""
        if self.token is None:
            return self.address
        ticket = secrets.token_urlsafe(24)
        self._tickets.add(ticket)
        return self._with_token(ticket)

    def admits(self, given: str) -> bool:
        """Whether a token is that of this server, or a ticket that was not used yet."""
        if self.token is None or same_secret(given, self.token):
            return True
        used = next((ticket for ticket in tuple(self._tickets) if same_secret(given, ticket)), None)
        self._tickets.discard(used or "")
        return used is not None

    def _with_token(self, token: str | None) -> str:
        end = "" if token is None else f"?{urlencode({'token': token})}"
        return f"http://{ADDRESS}:{self.port}/{end}"

    def server_bind(self) -> None:
        """Without looking up the name of this machine, which would ask a name server."""
        if sys.platform == "win32":
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, self.port

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._places.acquire(blocking=False):
            with contextlib.suppress(OSError):
                request.sendall(b"HTTP/1.0 503 Service Unavailable\r\nConnection: close\r\n\r\n")
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no problem; anything else is one line of the log, never a traceback."""
        error = sys.exception()
        if not isinstance(error, OSError):
            self.log(f"a request ended in {type(error).__name__}: {error}")


def same_secret(given: str, wanted: str) -> bool:
    """Whether two texts are the same, in a time that tells nothing about them."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())


def open_server(
    port: int | None,
    answer: Callable[[Request], Answer],
    *,
    token: str | None,
    log: Callable[[str], None],
    usual: int,
) -> LocalServer:
    """A server on a port that was asked for, or on the usual one, or on a free one where that is taken."""
    try:
        return LocalServer(usual if port is None else port, answer, token=token, log=log)
    except OSError as error:
        if port is not None:
            raise UnavailableError(
                f"port {port} of {ADDRESS} cannot be used: {error.strerror or error}",
                hint="name another one with `--port`, or omit it to get a free one",
            ) from error
    return LocalServer(0, answer, token=token, log=log)


class _Handler(BaseHTTPRequestHandler):
    """One request on one connection, which is then closed."""

    server: LocalServer
    server_version = f"winml/{__version__}"
    sys_version = ""
    # Of a request that could not be read.
    command: str | None = None  # type: ignore[assignment]
    requestline = ""
    request_version = "HTTP/1.0"

    def handle(self) -> None:
        head = self._read_head()
        if head is None:
            return
        self.rfile.close()
        self.rfile = io.BufferedReader(io.BytesIO(head))
        self.raw_requestline = self.rfile.readline(MOST_HEAD + 1)
        self.connection.settimeout(_ANSWER_S)
        if len(head) > MOST_HEAD:
            self._send(plain_answer(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the request is too long"))
        elif self.parse_request():
            self._send(self._answer())
        else:
            return  # `send_error` has said why
        self._drain()

    def _read_head(self) -> bytes | None:
        """The request with its empty line, or more bytes than allowed; None where nothing comes in time."""
        head = bytearray()
        deadline = time.monotonic() + _HEAD_S
        while len(head) <= MOST_HEAD:
            if b"\r\n\r\n" in head or b"\n\n" in head:
                return bytes(head)
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self.connection.settimeout(left)
            try:
                piece = self.connection.recv(4096)
            except OSError:
                return None
            if not piece:
                return None
            head += piece
        return bytes(head)

    def _drain(self) -> None:
        """Read what a client still sends: closing a connection with unread bytes would take our answer away from it."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(_DRAIN_S)
            deadline, drained = time.monotonic() + _DRAIN_S, 0
            while drained < _MOST_DRAINED and time.monotonic() < deadline:
                piece = self.connection.recv(65536)
                if not piece:
                    return
                drained += len(piece)

    def _answer(self) -> Answer:
        refused = self._refuse()
        if refused is not None:
            return refused
        path, _, words = self.path.partition("?")
        query = _parse_query(words)
        if "token" in query:
            return self._enter(path, query)
        if not self._is_known():
            return self._refuse_entry("this dashboard needs the address that `winml dashboard` printed, with its token")
        given = self.headers.get("If-None-Match")
        try:
            return self.server.answer(Request(path, query, given))
        except Exception as error:  # noqa: BLE001 - a bug in one page must neither show its traceback nor end the others
            self._log(f"`{self.path}` ended in {type(error).__name__}: {error}")
            return plain_answer(HTTPStatus.INTERNAL_SERVER_ERROR, "this page cannot be made: a bug in winml")

    def _refuse(self) -> Answer | None:
        """What is wrong with a request before its address is looked at."""
        hosts = self.headers.get_all("Host", [])
        port = self.server.port
        if len(hosts) != 1 or hosts[0].strip().lower() not in (f"{ADDRESS}:{port}", f"localhost:{port}"):
            # A name that somebody has pointed to this machine (DNS rebinding) is not ours.
            self._log(f"refused a request for another host: {', '.join(hosts)[:200]}")
            return plain_answer(HTTPStatus.MISDIRECTED_REQUEST, f"this is {ADDRESS}:{port}; use that address")
        if self.command not in ("GET", "HEAD"):
            return plain_answer(
                HTTPStatus.METHOD_NOT_ALLOWED, "this dashboard only shows things: GET and HEAD", Allow="GET, HEAD"
            )
        if not self.path.startswith("/"):
            return plain_answer(HTTPStatus.BAD_REQUEST, "the address has to begin with /")
        site, mode = self.headers.get("Sec-Fetch-Site", "none"), self.headers.get("Sec-Fetch-Mode", "navigate")
        if site not in ("none", "same-origin") and mode != "navigate":
            # Pages of other ports of this machine get our cookie sent: a link to us is fine, anything else is not.
            return self._refuse_entry("this dashboard does not answer pages of others")
        return None

    def _refuse_entry(self, text: str) -> Answer:
        self._log(f"refused `{self.path.partition('?')[0][:200]}`: {text}")
        return plain_answer(HTTPStatus.FORBIDDEN, text)

    def _is_known(self) -> bool:
        if self.server.token is None:
            return True
        start = f"{self.server.cookie}="
        given = [part.strip() for header in self.headers.get_all("Cookie", []) for part in header.split(";")]
        return any(same_secret(one.removeprefix(start), self.server.token) for one in given if one.startswith(start))

    def _enter(self, path: str, query: Mapping[str, tuple[str, ...]]) -> Answer:
        """Let a browser with the token in, by a cookie, and send it to the address without the token."""
        if len(query["token"]) != 1 or not self.server.admits(query["token"][0]):
            return self._refuse_entry(
                "the token in this address is not that of this dashboard; it changes at each start"
            )
        rest = urlencode([(name, value) for name, found in query.items() if name != "token" for value in found])
        # One slash: `//name` would lead to another host.
        place = "/" + quote(unquote(path).lstrip("/\\"), safe="/")
        headers = {"Location": place + (f"?{rest}" if rest else "")}
        if self.server.token is not None:
            headers["Set-Cookie"] = f"{self.server.cookie}={self.server.token}; Path=/; HttpOnly; SameSite=Strict"
        return plain_answer(HTTPStatus.SEE_OTHER, "go on without the token", **headers)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Of a request that the standard library could not read."""
        status = HTTPStatus(code)
        self._send(plain_answer(status, f"{status.value} {status.phrase}"))
        self._drain()

    def _send(self, answer: Answer) -> None:
        length = len(answer.body) if answer.file is None else answer.length
        self.request_version = "HTTP/1.0"  # headers also for what did not say its version
        try:
            self.send_response_only(answer.status)
            headers = {
                "Content-Type": answer.kind,
                "Content-Length": str(length),
                "Content-Security-Policy": answer.policy,
                "X-Content-Type-Options": "nosniff",
                "X-Frame-Options": "DENY",
                "Referrer-Policy": "no-referrer",
                "Cache-Control": "no-store",
                "Cross-Origin-Resource-Policy": "same-origin",
                "Cross-Origin-Opener-Policy": "same-origin",
                **answer.headers,
                "Connection": "close",
            }
            if answer.status is HTTPStatus.NOT_MODIFIED:
                del headers["Content-Type"], headers["Content-Length"]
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)
                if answer.file is not None:
                    _copy(answer.file, self.wfile, answer.length)
            self.wfile.flush()
        finally:
            if answer.file is not None:
                answer.file.close()

    def _log(self, line: str) -> None:
        self.server.log(line)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the standard library
        """Nothing for every request: a page that follows a run asks each second."""


def _parse_query(words: str) -> dict[str, tuple[str, ...]]:
    """The values of every name; too many, or what is no query, are none."""
    found: dict[str, tuple[str, ...]] = {}
    with contextlib.suppress(ValueError):
        for name, value in parse_qsl(words, keep_blank_values=True, errors="replace", max_num_fields=_MOST_FIELDS):
            found[name] = (*found.get(name, ()), value)
    return found


def _copy(source: BinaryIO, sink: Any, length: int) -> None:
    """As many bytes as were announced, or fewer where a file got shorter meanwhile."""
    left = length
    while left > 0 and (piece := source.read(min(left, 2**18))):
        sink.write(piece)
        left -= len(piece)
