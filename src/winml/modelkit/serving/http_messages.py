"""HTTP/1.1 as `winml serve` speaks it: a strict part of it, read and written here.

A request has one `Host`, at most one `Content-Length` and no `Transfer-Encoding`; whatever else two readers could take
for different things is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import field
from http import HTTPStatus
from typing import Any

from winml.modelkit.core.dataclass import dataclass

JSON = "application/json"
NPZ = "application/x-npz"
MOST_HEAD = 16 * 1024
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ONCE = ("host", "content-length", "content-type", "authorization", "transfer-encoding", "origin", "expect")
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
HEADERS = b"X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n"


class Refused(Exception):
    """A request that is answered by an error."""

    def __init__(
        self, status: int, code: str, message: str, hint: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.hint = status, code, message, hint
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        """The `error` object: ours, with the two keys that clients of OpenAI's form read."""
        error = {"code": self.code, "message": self.message, "hint": self.hint, "type": self.code, "param": None}
        return {"ok": False, "error": error}


@dataclass(frozen=True)
class Request:
    """A request whose head was read; its body comes later."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    """By name in lower case."""
    keeps_alive: bool
    length: int

    def get(self, name: str, default: str = "") -> str:
        return self.headers.get(name, default)

    @property
    def kind(self) -> str:
        """The type of the body without its settings."""
        return self.get("content-type").partition(";")[0].strip().lower()


@dataclass(frozen=True)
class Response:
    """What is sent back."""

    body: bytes
    status: int = 200
    kind: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


def parse_head(head: bytes) -> Request:
    """The request in the bytes up to its empty line; `Refused` says what is wrong with it."""
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or words[2] not in ("HTTP/1.1", "HTTP/1.0") or not _TOKEN.fullmatch(words[0]):
        raise Refused(400, "malformed", "the first line is no request of HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        if not line:
            continue
        name, colon, value = line.partition(":")
        if not colon or not _TOKEN.fullmatch(name) or "\0" in value or "\n" in value or "\r" in value:
            raise Refused(400, "malformed", "a header cannot be read")
        name = name.lower()
        if name in headers and name in _ONCE:
            raise Refused(400, "malformed", f"the header `{name}` is given twice")
        headers[name] = value.strip()
    if "transfer-encoding" in headers:
        raise Refused(
            411, "length-needed", "a body is sent with its `Content-Length`, not in chunks", "send it as a whole"
        )
    length = headers.get("content-length", "0")
    if not length.isascii() or not length.isdecimal() or len(length) > 15:
        raise Refused(400, "malformed", "`Content-Length` is not a number")
    path, _, query = words[1].partition("?")
    if not path.startswith("/"):
        raise Refused(400, "malformed", "the address has to begin with /")
    asked = {word.strip().lower() for word in headers.get("connection", "").split(",")}
    keeps = "close" not in asked and (words[2] == "HTTP/1.1" or "keep-alive" in asked)
    return Request(words[0], path, query, headers, keeps, int(length))


def json_response(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    body = json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    return Response(body, status, JSON, headers or {})


def write_head(status: int, headers: Mapping[str, str], *, close: bool) -> bytes:
    """The first lines of an answer."""
    lines = [f"HTTP/1.1 {status} {_PHRASES.get(status, '')}\r\n"]
    lines += [f"{name}: {value}\r\n" for name, value in headers.items()]
    lines.append("Connection: close\r\n" if close else "Connection: keep-alive\r\n")
    return "".join(lines).encode("latin-1", "replace") + HEADERS + b"\r\n"


def write_response(response: Response, *, close: bool, head_only: bool = False) -> bytes:
    headers = {"Content-Type": response.kind, "Content-Length": str(len(response.body)), **response.headers}
    return write_head(response.status, headers, close=close) + (b"" if head_only else response.body)


def write_event(value: object) -> bytes:
    """An event of a stream, as OpenAI's form has it."""
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), allow_nan=False)
    return f"data: {text}\n\n".encode()


def write_chunk(content: bytes) -> bytes:
    """A piece of a body whose length is not known; an empty one ends it."""
    return f"{len(content):x}\r\n".encode() + content + b"\r\n"
