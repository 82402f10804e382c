"""A dashboard that runs in a thread of the tests, and somebody who asks it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from winml.modelkit.reporting.dashboard import Dashboard
from winml.modelkit.reporting.index import Index, make_id
from winml.modelkit.reporting.web_server import LocalServer

BEFORE = Path(__file__).parent / "goldens" / "before"
PERF = (BEFORE / "perf.json").read_text(encoding="utf-8")
TOKEN = "a-token"
HOSTILE = "<img src=x onerror=alert(1)>\"'><script>window.hit=1</script>\u202egnp.exe\x1b[31m`|[a](javascript:hit)"


@dataclass(frozen=True)
class Got:
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


class Site:
    """A dashboard that runs, and somebody who asks it."""

    def __init__(self, root: Path, token: str | None = TOKEN) -> None:
        self.lines: list[str] = []
        self.dashboard = Dashboard(root, self.lines.append)
        self.dashboard.index = Index(root, pause_s=0)
        self.server = LocalServer(0, self.dashboard.answer, token=token, log=self.lines.append)
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server.port}"

    def ask(self, path: str, *, method: str = "GET", entered: bool = True, body: bytes = b"", **headers: str) -> Got:
        """Ask for a path as it is, which no client changes; with the cookie unless not `entered`."""
        sent = {"Host": self.host, **({"Cookie": f"{self.server.cookie}={TOKEN}"} if entered else {})}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                connection.putheader(name, value)
            if body:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body or None)
            answer = connection.getresponse()
            return Got(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def id(self, name: str) -> str:
        return make_id(name)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()
