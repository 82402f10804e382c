"""A client that meets servers which do not do as the protocol says."""

from __future__ import annotations

import contextlib
import http.server
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from feed_zoo import filled, quiet
from winml.modelkit.core.errors import UnavailableError
from winml.modelkit.feed import registry as module
from winml.modelkit.feed.base import Unavailable
from winml.modelkit.feed.content import FeedDamaged, FileEntry, scan
from winml.modelkit.feed.credentials import Credentials
from winml.modelkit.feed.oci import OCIFeed
from winml.modelkit.feed.registry import Registry

pytestmark = pytest.mark.usefixtures("no_logins")


@dataclass
class Reply:
    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)


Rule = Callable[[str, dict[str, str]], Reply]


class OddServer:
    """Answers by a rule of the test; remembers what it was asked."""

    def __init__(self, rule: Rule) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.is_registry = True
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def _answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                outer.asked.append((self.path, headers))
                reply = Reply() if self.path == "/v2/" and outer.is_registry else rule(self.path, headers)
                self.send_response(reply.status)
                for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(reply.body)

            do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - names of the base class

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.host = f"127.0.0.1:{self._server.server_address[1]}"
        self.base = f"http://{self.host}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def serve() -> Iterator[Callable[[Rule], OddServer]]:
    servers: list[OddServer] = []

    def start(rule: Rule) -> OddServer:
        servers.append(OddServer(rule))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WAIT_S", 0.001)


def _tags(server: OddServer) -> tuple[str, ...] | None:
    with closing(Registry(server.base, None)) as client:
        return client.tags("m")


def _list(names: list[str]) -> bytes:
    return json.dumps({"name": "m", "tags": names}).encode()


NAMES = [f"t{number:03}" for number in range(50)]


def _after(path: str) -> list[str]:
    last = path.partition("last=")[2].partition("&")[0]
    return [name for name in NAMES if name > last]


def test_a_list_that_is_cut_without_a_link_is_asked_on(serve: Callable[[Rule], OddServer]) -> None:
    assert _tags(serve(lambda path, _: Reply(body=_list(_after(path)[:7])))) == tuple(NAMES)


def test_links_are_followed_whatever_page_size_was_asked(serve: Callable[[Rule], OddServer]) -> None:
    def rule(path: str, _: dict[str, str]) -> Reply:
        page = _after(path)[:7]
        link = {"Link": f'</v2/m/tags/list?last={page[-1]}&n=7>; rel="next"'} if len(page) == 7 else {}
        return Reply(body=_list(page), headers=link)

    assert _tags(serve(rule)) == tuple(NAMES)


def test_a_link_that_leads_in_a_circle_ends(serve: Callable[[Rule], OddServer]) -> None:
    link = {"Link": '</v2/m/tags/list?n=1000>; rel="next"'}
    assert _tags(serve(lambda *_: Reply(body=_list(["b", "a"]), headers=link))) == ("a", "b")


def test_absent_and_empty_are_two_answers(serve: Callable[[Rule], OddServer]) -> None:
    assert _tags(serve(lambda *_: Reply(404, b'{"errors": [{"code": "NAME_UNKNOWN"}]}'))) is None
    assert _tags(serve(lambda *_: Reply(body=b'{"name": "m", "tags": null}'))) == ()


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"tags": 7}', b"{}"])
def test_a_list_of_something_else_is_damaged(serve: Callable[[Rule], OddServer], body: bytes) -> None:
    with pytest.raises(FeedDamaged):
        _tags(serve(lambda *_: Reply(body=body)))


def test_json_without_end_is_not_read_to_its_end(serve: Callable[[Rule], OddServer]) -> None:
    with pytest.raises(FeedDamaged, match="more than"):
        _tags(serve(lambda *_: Reply(body=b"[" * (5 << 20))))


def test_without_httpx_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    with pytest.raises(UnavailableError, match="`httpx`") as caught:
        Registry("http://127.0.0.1:9", None)
    assert "winml-modelkit[feeds]" in (caught.value.hint or "")


def test_a_busy_registry_is_asked_again_and_one_that_stays_busy_is_unavailable(
    serve: Callable[[Rule], OddServer],
) -> None:
    answers = iter([Reply(503), Reply(429), Reply(body=_list(["a"])), Reply(body=_list(["a"]))])
    assert _tags(serve(lambda *_: next(answers))) == ("a",)
    server = serve(lambda *_: Reply(500))
    with pytest.raises(UnavailableError, match="answered 500"):
        _tags(server)
    assert len(server.asked) == 4


def test_a_server_that_is_no_registry_is_not_an_empty_feed(serve: Callable[[Rule], OddServer], tmp_path: Path) -> None:
    server = serve(lambda *_: Reply(404))
    server.is_registry = False
    tree = scan(filled(tmp_path / "t", m=b"m"))
    with closing(OCIFeed.at(f"oci://{server.host}/models")) as feed:
        assert isinstance(feed.publish("m", "0.0.0-1-m", tree, quiet), Unavailable)
        with pytest.raises(UnavailableError, match="not an OCI registry"):
            feed.versions("m")


def test_a_manifest_with_another_digest_than_announced_is_damaged(serve: Callable[[Rule], OddServer]) -> None:
    said = {"Docker-Content-Digest": "sha256:" + "0" * 64}
    server = serve(lambda *_: Reply(body=b"{}", headers=said))
    with closing(Registry(server.base, None)) as client, pytest.raises(FeedDamaged, match="instead of"):
        client.manifest("m", "tag")


def test_a_login_is_not_shown_to_the_host_a_download_is_sent_to(serve: Callable[[Rule], OddServer]) -> None:
    storage = serve(lambda *_: Reply(body=b"bytes"))

    def rule(path: str, headers: dict[str, str]) -> Reply:
        if "authorization" not in headers:
            return Reply(401, headers={"WWW-Authenticate": 'Basic realm="r"'})
        return Reply(307, headers={"Location": f"{storage.base}/signed"})

    server = serve(rule)
    known = Registry(server.base, Credentials("somebody", "pw"))
    with closing(known) as client, client.blob("m", "sha256:" + "0" * 64, 0) as delivery:
        assert delivery is not None
        assert b"".join(delivery.chunks) == b"bytes"
    assert "authorization" in server.asked[-1][1]
    assert ["authorization" in headers for _, headers in storage.asked] == [False]


def test_a_login_is_not_sent_unencrypted_to_another_machine(serve: Callable[[Rule], OddServer]) -> None:
    challenge = {"WWW-Authenticate": 'Bearer realm="http://tokens.example.com/t",service="s"'}
    server = serve(lambda *_: Reply(401, headers=challenge))
    known = Registry(server.base, Credentials("somebody", "pw"))
    with closing(known) as client, pytest.raises(UnavailableError, match="not encrypted"):
        client.tags("m")


@pytest.mark.parametrize("body", [b"<html>", b"{}", b"[]"])
def test_a_token_server_without_a_token_is_unavailable(serve: Callable[[Rule], OddServer], body: bytes) -> None:
    tokens = serve(lambda *_: Reply(body=body))
    challenge = {"WWW-Authenticate": f'Bearer realm="{tokens.base}/t"'}
    server = serve(lambda *_: Reply(401, headers=challenge))
    with closing(Registry(server.base, None)) as client, pytest.raises(UnavailableError, match="without a token"):
        client.tags("m")


def test_a_login_of_an_unknown_kind_is_named(serve: Callable[[Rule], OddServer]) -> None:
    server = serve(lambda *_: Reply(401, headers={"WWW-Authenticate": "Negotiate"}))
    known = Registry(server.base, Credentials("somebody", "pw"))
    with closing(known) as client, pytest.raises(UnavailableError, match="`Negotiate`"):
        client.tags("m")


def test_a_host_that_a_download_is_sent_to_cannot_ask_for_the_login(serve: Callable[[Rule], OddServer]) -> None:
    """It answers 401 and names a place for the login of its own: nothing is sent there."""
    thief = serve(lambda *_: Reply(body=b'{"token": "t"}'))
    challenge = {"WWW-Authenticate": f'Bearer realm="{thief.base}/token",service="s"'}
    storage = serve(lambda *_: Reply(401, headers=challenge))

    def rule(path: str, headers: dict[str, str]) -> Reply:
        if "authorization" not in headers:
            return Reply(401, headers={"WWW-Authenticate": 'Basic realm="r"'})
        return Reply(307, headers={"Location": f"{storage.base}/signed"})

    known = Registry(serve(rule).base, Credentials("somebody", "pw"))
    blob = known.blob("m", "sha256:" + "0" * 64, 0)
    with closing(known), pytest.raises(UnavailableError, match="refused the login"), blob:
        pass
    assert thief.asked == []
    assert ["authorization" in headers for _, headers in storage.asked] == [False]


def test_an_upload_that_is_sent_elsewhere_does_not_bring_the_login_there(serve: Callable[[Rule], OddServer]) -> None:
    thief = serve(lambda *_: Reply(body=b'{"token": "t"}'))
    challenge = {"WWW-Authenticate": f'Bearer realm="{thief.base}/token"'}
    storage = serve(lambda *_: Reply(401, headers=challenge))
    server = serve(lambda *_: Reply(202, headers={"Location": f"{storage.base}/upload"}))
    item = FileEntry("sha256:" + "0" * 64, 1)
    known = Registry(server.base, Credentials("somebody", "pw"))
    with closing(known) as client, pytest.raises(UnavailableError, match="refused the login"):
        client.put_blob("m", item, lambda: iter([b"x"]), mount_from=None)
    assert thief.asked == []


def _drip(server: socket.socket) -> None:
    """Answer with a byte now and then, until the other side is gone."""
    with contextlib.suppress(OSError):
        stream, _ = server.accept()
        with stream:
            stream.recv(1 << 16)
            stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
            while True:
                stream.sendall(b"[")
                time.sleep(0.01)


@pytest.mark.parametrize("what", ["answer", "file"])
def test_a_server_that_sends_a_byte_at_a_time_is_given_up(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_S", 0.2)
    monkeypatch.setattr(module, "STALL_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        for _ in range(4):
            threading.Thread(target=_drip, args=(server,), daemon=True).start()
        with closing(Registry(f"http://127.0.0.1:{server.getsockname()[1]}", None)) as client:
            if what == "answer":
                with pytest.raises(UnavailableError, match="did not finish an answer"):
                    client.tags("m")
                return
            blob = client.blob("m", "sha256:" + "0" * 64, 0)
            with pytest.raises(UnavailableError, match="bytes in 0.2 s"), blob as delivery:
                assert delivery is not None
                for _ in delivery.chunks:
                    pass


def test_tags_without_end_are_given_up(serve: Callable[[Rule], OddServer], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_NAMES", 100)
    pages = iter(range(10_000))
    server = serve(lambda *_: Reply(body=_list([f"t{next(pages)}-{n}" for n in range(20)])))
    with pytest.raises(UnavailableError, match="keeps listing names"):
        _tags(server)
    assert len(server.asked) < 10
