"""The dashboard as a browser meets it, and as somebody who attacks it does: a real server, real requests."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from ctrl_c import press_ctrl_c, start
from dashboard_site import BEFORE, HOSTILE, PERF, TOKEN, Site
from winml.modelkit.cli import main
from winml.modelkit.core.errors import UnavailableError
from winml.modelkit.render.pages.page import Figure, Page, Text
from winml.modelkit.reporting import dashboard as dashboards
from winml.modelkit.reporting import web_server
from winml.modelkit.reporting.index import Index
from winml.modelkit.reporting.runs import Run
from winml.modelkit.reporting.web_server import LocalServer, open_server

SECRET = "what lies outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with two measurements, beside one that nobody may see."""
    (tmp_path / "secret.txt").write_text(SECRET, encoding="utf-8")
    folder = tmp_path / "root"
    (folder / "nightly").mkdir(parents=True)
    (folder / "perf.json").write_text(PERF, encoding="utf-8")
    (folder / "nightly" / "other.json").write_text(
        PERF.replace('"tiny.onnx"', '"resnet50.onnx"').replace('"target": "cpu"', '"target": "qnn/npu"'),
        encoding="utf-8",
    )
    return folder


@pytest.fixture
def site(root: Path) -> Iterator[Site]:
    started = Site(root)
    yield started
    started.close()


class _Seen(HTMLParser):
    """What a page holds, by a parser that is not ours."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data

    def links(self) -> list[str]:
        return [attributes.get("href") or "" for tag, attributes in self.tags if tag == "a"]

    def count(self, wanted: str) -> int:
        return sum(tag == wanted for tag, _ in self.tags)


def _listed(text: str) -> list[str]:
    """The names of the runs in a list, in order."""
    return [re.sub("<.*?>", "", name) for name in re.findall(r'<td class="run"><a [^>]*>(.*?)</a>', text)]


# Pages


def test_the_list_shows_what_is_there_and_what_it_says(site: Site) -> None:
    got = site.ask("/")
    assert got.status == 200
    assert sorted(_listed(got.text)) == ["nightly/other.json", "perf.json"]
    seen = _Seen(got.text)
    assert f"/run/{site.id('perf.json')}" in seen.links()
    assert "A run takes 0.0847 ms" in seen.words
    assert "2 runs." in seen.words


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("q=RESNET", ["nightly/other.json"]),
        ("q=night+json", ["nightly/other.json"]),
        ("q=nothing-like-it", []),
        ("kind=perf&target=cpu", ["perf.json"]),
        ("kind=eval", []),
        ("state=failed", []),
        ("sort=name&order=up", ["nightly/other.json", "perf.json"]),
        ("sort=name&order=down", ["perf.json", "nightly/other.json"]),
        ("sort=model", ["nightly/other.json", "perf.json"]),
        ("sort=size&order=up", ["perf.json", "nightly/other.json"]),
        ("page=99&sort=name", ["nightly/other.json", "perf.json"]),
        ("q=&kind=&target=&state=&sort=name", ["nightly/other.json", "perf.json"]),
        ("page=-1&sort=nonsense&order=x&inside=7&with=..%2F..&q=%ff%00", []),
    ],
)
def test_the_list_is_searched_filtered_and_sorted_by_its_address(query: str, names: list[str], site: Site) -> None:
    got = site.ask(f"/?{query}")
    assert got.status == 200
    assert _listed(got.text) == names


def test_a_run_has_its_report_with_the_way_back_and_its_files(site: Site, root: Path) -> None:
    (root / "perf_op_trace.json").write_text("{}", encoding="utf-8")
    (root / "perf_op_trace").mkdir()
    (root / "perf_op_trace" / "raw.csv").write_text("1,2", encoding="utf-8")
    (root / "perfect.json").write_text("{}", encoding="utf-8")
    run = site.id("perf.json")
    got = site.ask(f"/run/{run}")
    seen = _Seen(got.text)
    assert "tiny.onnx on cpu" in seen.words
    files = [link for link in seen.links() if link.startswith("/file/")]
    names = ["perf.json", "perf_op_trace.json", "perf_op_trace/raw.csv"]
    assert files == [f"/file/{run}/{name}" for name in names]
    assert "/" in seen.links()
    for name, link in zip(names, files, strict=True):
        assert site.ask(link).body == (root / name).read_bytes()


def test_two_runs_stand_side_by_side(site: Site) -> None:
    a, b = site.id("perf.json"), site.id("nightly/other.json")
    for address in (f"/compare?a={a}&b={b}", f"/compare?run={a}&run={b}"):
        got = site.ask(address)
        assert got.status == 200
        assert "perf.json and other.json" in _Seen(got.text).words
    choice = site.ask(f"/?kind=perf&with={a}").text
    assert f"/compare?a={a}&b={b}" in _Seen(choice).links()
    assert _listed(choice) == ["nightly/other.json"]


def test_what_cannot_be_compared_is_said(site: Site, root: Path) -> None:
    shutil.copy(BEFORE / "eval.json", root)
    a = site.id("perf.json")
    assert site.ask("/compare").status == 400
    assert site.ask(f"/compare?run={a}").status == 400
    assert site.ask(f"/compare?a={a}&b={a}").status == 400
    assert site.ask(f"/compare?a={a}&b={'0' * 20}").status == 404


def test_runs_of_different_kinds_are_not_compared(site: Site, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(BEFORE / "eval.json", root)
    monkeypatch.setattr(dashboards, "make_page", lambda run: Page(run.kind, "t", "a", ()))
    got = site.ask(f"/compare?a={site.id('perf.json')}&b={site.id('eval.json')}")
    assert got.status == 422
    assert "is a run of perf and" in _Seen(got.text).words


def test_models_are_listed_with_their_runs(site: Site, root: Path) -> None:
    (root / "again.json").write_text(PERF, encoding="utf-8")
    got = site.ask("/models")
    words = " ".join(_Seen(got.text).words.split())
    assert "2 models in 3 runs." in words
    assert "/?q=tiny.onnx&inside=1" in _Seen(got.text).links()
    assert _listed(site.ask("/?q=tiny.onnx&inside=1").text) == ["again.json", "perf.json"]


def test_findings_are_those_of_the_knowledge_base(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def page(run: Run) -> Page:
        made.append(run.kind)
        return Page("kb", "Findings", f"{len(run.value.entries)} findings", ())

    monkeypatch.setattr(dashboards, "make_page", page)
    got = site.ask("/findings")
    assert (got.status, made) == (200, ["kb"])
    assert int(re.findall(r"(\d+) findings", got.text)[0]) > 5


def test_parts_of_a_matrix_are_shown_on_its_page_and_when_they_are_wanted(site: Site, root: Path) -> None:
    shutil.copytree(BEFORE / "matrix", root / "matrix")
    assert "matrix/tiny/mlas_cpu" not in _listed(site.ask("/").text)
    assert "matrix/tiny/mlas_cpu" in _listed(site.ask("/?inside=1").text)
    assert f"/run/{site.id('matrix/tiny/mlas_cpu')}" in _Seen(site.ask(f"/run/{site.id('matrix')}").text).links()


@pytest.mark.parametrize(
    "path", ["/nothing", "/run/", "/run/xyz", f"/run/{'0' * 20}", f"/live/{'0' * 20}", "/run/../x"]
)
def test_what_is_not_there_is_said(path: str, site: Site) -> None:
    got = site.ask(path)
    assert got.status == 404
    assert "There is no such" in got.text


# Bad runs


def test_bad_runs_have_a_sentence_and_the_others_a_report(site: Site, root: Path) -> None:
    (root / "cut.json").write_text(PERF[:9000], encoding="utf-8")
    (root / "newer.json").write_text(PERF.replace("winml/perf/1", "winml/perf/7"), encoding="utf-8")
    (root / "odd.json").write_text('{"schema": "winml/perf/1", "ok": true, "model": "m"}', encoding="utf-8")
    words = _Seen(site.ask("/").text).words
    assert "it is cut off, or being written" in words
    assert "It cannot be read: " in words
    assert "5 runs: 3 cannot be read." in _Seen(site.ask("/").text).words
    for name in ("cut", "newer", "odd"):
        got = site.ask(f"/run/{site.id(f'{name}.json')}")
        assert got.status == 200
        assert "Traceback" not in got.text


def test_a_bug_in_a_page_is_one_line_of_the_log(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(run: Run) -> Page:
        raise ZeroDivisionError("a\x1b[31m\nb")

    monkeypatch.setattr(dashboards, "make_page", fail)
    got = site.ask(f"/run/{site.id('perf.json')}")
    assert got.status == 200
    assert "a bug in winml" in got.text
    assert "ZeroDivisionError" not in got.text
    got = site.ask("/findings")
    assert (got.status, got.text) == (500, "this page cannot be made: a bug in winml\n")
    assert site.lines[-1] == r"`/findings` ended in ZeroDivisionError: a\x1b[31m\nb"


def test_hostile_values_are_inert(site: Site, root: Path) -> None:
    content = json.loads(PERF)
    content |= {"model": HOSTILE, "warnings": [HOSTILE]}
    (root / "evil.json").write_text(json.dumps(content), encoding="utf-8")
    failed = {"schema": "winml/perf/1", "ok": False, "error": {"message": HOSTILE}}
    (root / "failed.json").write_text(json.dumps(failed), encoding="utf-8")
    for path in ("/", f"/run/{site.id('evil.json')}", f"/run/{site.id('failed.json')}", "/models",
                 f"/?q={quote(HOSTILE)}&kind={quote(HOSTILE)}&target={quote(HOSTILE)}"):  # fmt: skip
        got = site.ask(path)
        seen = _Seen(got.text)
        assert got.status == 200
        assert seen.count("script") == 1, path
        assert seen.count("img") == 0, path
        assert "\u202e" not in got.text
        assert "\x1b" not in got.text
        assert not [link for link in seen.links() if not link.startswith(("/", "#"))]


@pytest.mark.posix("Windows has none of these names")
def test_hostile_names_are_inert_and_their_files_are_served(site: Site, root: Path) -> None:
    name = "<script>alert(1)<a href='x'>\"\u202e\n\r.json"
    (root / name).write_text(PERF, encoding="utf-8")
    if sys.platform == "linux":
        Path(os.fsdecode(os.fsencode(root) + b"/\xff.json")).write_text(PERF, encoding="utf-8")
    for path in ("/", f"/run/{site.id(name)}"):
        text = site.ask(path).text
        assert _Seen(text).count("script") == 1
        assert "\u202e" not in text
    for link in (
        link for one in (name, "\udcff.json") for link in _Seen(site.ask(f"/run/{site.id(one)}").text).links()
    ):
        if link.startswith("/file/"):
            got = site.ask(link)
            assert (got.status, got.text) == (200, PERF)
            assert got.headers["content-disposition"].startswith("attachment; filename*=UTF-8''%")
            assert got.headers["content-disposition"].isascii()


# Files


def test_a_file_is_a_download_that_no_browser_opens(site: Site, root: Path) -> None:
    got = site.ask(f"/file/{site.id('perf.json')}/perf.json")
    assert (got.status, got.body) == (200, (root / "perf.json").read_bytes())
    assert got.headers["content-type"] == "application/octet-stream"
    assert got.headers["x-content-type-options"] == "nosniff"
    assert got.headers["content-disposition"] == "attachment; filename*=UTF-8''perf.json"
    head = site.ask(f"/file/{site.id('perf.json')}/perf.json", method="HEAD")
    assert (head.body, head.headers["content-length"]) == (b"", str(len(got.body)))


def _outside(folder: Path) -> list[str]:
    up = folder.parent / "secret.txt"
    return [
        "../secret.txt", "../../secret.txt", "../../../../../../etc/passwd", "..%2fsecret.txt", "%2e%2e/secret.txt",
        "%2e%2e%2fsecret.txt", "..%252fsecret.txt", "..\\secret.txt", "..%5csecret.txt", "....//secret.txt",
        "perf.json/../../secret.txt", "./perf.json", "/perf.json", quote(str(up)), quote(up.as_uri()), str(up),
        "C:/Windows/win.ini", "C:\\Windows\\win.ini", "c%3a%5cwindows%5cwin.ini", "%5c%5c127.0.0.1%5cc$%5cx",
        "//127.0.0.1/c$/x", "con", "nul", "perf.json%00.txt", "perf.json::$DATA", "perf.json.", "perf.json%20",
        "PERF.JSON", "%00", "%", "%ff", "nightly/other.json", "..;/secret.txt", "%c0%ae%c0%ae/secret.txt",
    ]  # fmt: skip


def test_no_name_leads_out_of_a_run(site: Site, root: Path) -> None:
    run = site.id("perf.json")
    for name in _outside(root):
        for path in (f"/file/{run}/{name}", f"/{name}", f"/run/{name}", f"/live/{run}/{name}"):
            got = site.ask(path)
            assert got.status == 404, (path, got.status)
            assert SECRET not in got.text
            assert "root:" not in got.text


def test_names_in_the_folder_of_a_run_do_not_lead_out_either(site: Site, root: Path) -> None:
    shutil.copytree(BEFORE / "search", root / "search")
    run = site.id("search")
    assert site.ask(f"/file/{run}/champion/build_manifest.json").status == 200
    for name in (*_outside(root), "../perf.json", "champion/../../perf.json", "champion", "champion/"):
        assert site.ask(f"/file/{run}/{name}").status == 404, name


@pytest.mark.symlink
def test_no_link_leads_out_of_the_root(site: Site, root: Path) -> None:
    outside = root.parent
    (outside / "p.json").write_text(PERF.replace("tiny.onnx", "hidden.onnx"), encoding="utf-8")
    shutil.copytree(BEFORE / "search", root / "search")
    run = site.id("search")
    (root / "search" / "link.txt").symlink_to(outside / "secret.txt")
    (root / "search" / "folder").symlink_to(outside, target_is_directory=True)
    (root / "link.json").symlink_to(outside / "p.json")
    (root / "perf_op_trace").symlink_to(outside, target_is_directory=True)
    for path in (
        f"/file/{run}/link.txt", f"/file/{run}/folder/secret.txt", f"/run/{site.id('link.json')}",
        f"/file/{site.id('perf.json')}/perf_op_trace/secret.txt",
    ):  # fmt: skip
        assert site.ask(path).status == 404, path
    assert "link.json" not in site.ask("/").text
    assert "secret.txt" not in site.ask(f"/run/{site.id('perf.json')}").text


@pytest.mark.symlink
def test_what_becomes_a_link_after_it_was_found_is_not_followed(site: Site, root: Path) -> None:
    outside = root.parent
    hidden = PERF.replace("tiny.onnx", "hidden.onnx")
    (outside / "p.json").write_text(hidden, encoding="utf-8")
    shutil.copytree(BEFORE / "search", outside / "search")
    (outside / "search" / "secret.txt").write_text(SECRET, encoding="utf-8")
    shutil.copytree(BEFORE / "search", root / "search")
    assert len(_listed(site.ask("/").text)) == 3
    site.dashboard.index._pause_s = site.dashboard.index._due = 1e9  # the list is not made again
    (root / "perf.json").unlink()
    (root / "perf.json").symlink_to(outside / "p.json")
    shutil.rmtree(root / "search")
    (root / "search").symlink_to(outside / "search", target_is_directory=True)
    for path in (f"/run/{site.id('perf.json')}", f"/run/{site.id('search')}", f"/live/{site.id('search')}"):
        got = site.ask(path)
        assert "is a link, which is not followed" in got.text, path
        assert "hidden.onnx" not in got.text
    assert site.ask(f"/file/{site.id('search')}/secret.txt").status in (403, 404)
    assert SECRET not in site.ask(f"/file/{site.id('search')}/secret.txt").text


# Who may ask


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", "[::1]:{port}",
     "127.0.0.1:{port}.evil.example", "", "0.0.0.0:{port}", "127.0.0.1:{port}, evil.example"],
)  # fmt: skip
def test_another_host_is_refused(host: str, site: Site) -> None:
    got = site.ask("/", Host=host.format(port=site.server.port))
    assert got.status == 421
    assert "perf.json" not in got.text


def test_no_host_or_two_are_refused_and_localhost_is_us(site: Site) -> None:
    port = site.server.port
    for head in (
        "GET / HTTP/1.0\r\n\r\n",
        f"GET / HTTP/1.1\r\nHost: localhost:{port}\r\nHost: localhost:{port}\r\n\r\n",
    ):
        assert _raw(site, head.encode()).startswith(b"HTTP/1.0 421")
    assert site.ask("/", Host=f"localhost:{port}").status == 200


def _raw(site: Site, sent: bytes) -> bytes:
    """What the server answers to bytes, until it closes the connection."""
    with socket.create_connection(("127.0.0.1", site.server.port), timeout=60) as connection:
        connection.sendall(sent)
        found = b""
        while piece := connection.recv(65536):
            found += piece
        return found


def test_without_the_token_nothing_is_shown(site: Site) -> None:
    run = site.id("perf.json")
    for path in ("/", f"/run/{run}", f"/live/{run}", f"/file/{run}/perf.json", "/answers", "/nothing", "/?token=",
                 "/?token=wrong", f"/?token={TOKEN}x", f"/?token={TOKEN}&token=x", "/?token=%ff%00"):  # fmt: skip
        got = site.ask(path, entered=False)
        assert got.status == 403, path
        assert got.text.count("\n") == 1
        assert "perf.json" not in got.text
        assert "set-cookie" not in got.headers
    for cookie in (f"{site.server.cookie}=wrong", f"other={TOKEN}", TOKEN, f"{site.server.cookie}=", ";;=;"):
        assert site.ask("/", entered=False, Cookie=cookie).status == 403, cookie


def test_the_token_is_exchanged_for_a_cookie_and_leaves_the_address(site: Site) -> None:
    parts = urlsplit(site.server.address)
    got = site.ask(f"{parts.path}?{parts.query}", entered=False)
    assert (got.status, got.headers["location"]) == (303, "/")
    cookie = got.headers["set-cookie"]
    assert cookie == f"{site.server.cookie}={TOKEN}; Path=/; HttpOnly; SameSite=Strict"
    assert site.ask("/", entered=False, Cookie=f"a=b; {cookie.partition(';')[0]}").status == 200
    deep = site.ask(f"/models?x=1&token={TOKEN}", entered=False)
    assert deep.headers["location"] == "/models?x=1"
    for path in ("//evil.example/", "/%2fevil.example/", "/%5c%5Cevil.example/", "/%2F%5c/evil.example/"):
        assert site.ask(f"{path}?token={TOKEN}", entered=False).headers["location"] == "/evil.example/", path


def test_a_ticket_for_a_browser_works_once(site: Site) -> None:
    parts = urlsplit(site.server.make_ticket())
    assert TOKEN not in parts.query
    assert (
        site.ask(f"/?{parts.query}", entered=False).headers["set-cookie"].startswith(f"{site.server.cookie}={TOKEN};")
    )
    assert site.ask(f"/?{parts.query}", entered=False).status == 403


def test_without_a_token_by_choice_everybody_here_may_look(root: Path) -> None:
    site = Site(root, token=None)
    try:
        assert site.server.address == f"http://127.0.0.1:{site.server.port}/"
        assert site.ask("/", entered=False).status == 200
        assert site.ask("/", entered=False, Host="evil.example").status == 421
    finally:
        site.close()


def test_pages_of_others_may_link_here_and_nothing_else(site: Site) -> None:
    for place in ("cross-site", "same-site"):
        asked = {"Sec_Fetch_Site": place, "Sec_Fetch_Mode": "no-cors"}
        assert site.ask("/", **asked).status == 403
        assert site.ask("/", **{**asked, "Sec_Fetch_Mode": "navigate"}).status == 200
    assert site.ask("/", Sec_Fetch_Site="same-origin", Sec_Fetch_Mode="cors").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "PROPFIND", "get"])
def test_nothing_but_reading_is_possible(method: str, site: Site) -> None:
    got = site.ask("/", method=method, body=b"x" * 200_000)
    assert (got.status, got.headers["allow"]) == (405, "GET, HEAD")


def test_what_was_refused_is_said_once_and_in_one_line(site: Site) -> None:
    for _ in range(3):
        site.ask("/", entered=False, Host="evil.example\x1b[31m")
    assert site.lines == ["refused a request for another host: evil.example\\x1b[31m"]
    for number in range(300):
        site.ask("/", Host=f"evil-{number}.example")
    assert len(site.lines) == 200


# What every answer has


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/", {}), ("/run/{run}", {}), ("/live/{run}", {}), ("/file/{run}/perf.json", {}), ("/models", {}),
        ("/answers?run={run}", {}), ("/nothing", {}), ("/favicon.ico", {}), ("/", {"method": "POST"}),
        ("/", {"entered": False}), ("/", {"Host": "evil.example"}), ("/?token=a-token", {}),
        ("http://evil.example/", {}),
    ],
)  # fmt: skip
def test_every_answer_has_the_headers(path: str, asked: dict[str, Any], site: Site) -> None:
    headers = site.ask(path.format(run=site.id("perf.json")), **asked).headers
    policy = dict(part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


def test_the_policy_allows_this_server_and_the_script_of_the_page(site: Site) -> None:
    from winml.modelkit.render.pages.assets import source_of

    got = site.ask("/")
    policy = got.headers["content-security-policy"]
    assert "connect-src 'self'" in policy
    assert "form-action 'self'" in policy
    script = got.text.rpartition("<script>")[2].partition("</script>")[0]
    style = got.text.partition("<style>")[2].partition("</style>")[0]
    assert source_of(script) in policy
    assert source_of(style) in policy
    assert "style=" not in got.text.replace(style, "").replace(script, "")


# Clients that do not behave


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 30_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 30_000 + b" HTTP/1.1\r\n\r\n",
        b"".join([b"GET / HTTP/1.1\r\n", *(b"X%d: a\r\n" % n for n in range(3000)), b"\r\n"]),
    ],
    ids=["header", "line", "headers"],
)
def test_long_requests_are_refused(sent: bytes, site: Site) -> None:
    assert _raw(site, sent).startswith(b"HTTP/1.0 431")


@pytest.mark.parametrize(
    "sent",
    [b"\r\n\r\n", b"nonsense\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / FTP/1.0\r\n\r\n", b"\x00\xff\xfe\r\n\r\n",
     b"GET / HTTP/1.1\r\nno colon\r\n\r\n", b"GET  /  HTTP/1.1 x\r\n\r\n", b"\x16\x03\x01\x02\x00\r\n\r\n",
     b"GET /\xff\x1b[31m HTTP/1.1\r\nHost: x\r\n\r\n"],
)  # fmt: skip
def test_what_is_no_request_is_refused(sent: bytes, site: Site) -> None:
    got = _raw(site, sent)
    assert got == b"" or re.match(rb"HTTP/1.0 (400|421|505) ", got), got
    assert b"Traceback" not in got
    assert all(line.isprintable() for line in site.lines)
    assert site.ask("/").status == 200


def test_slow_clients_are_left(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "_HEAD_S", 0.3)
    with socket.create_connection(("127.0.0.1", site.server.port), timeout=60) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n")
        assert connection.recv(100) == b""


def test_only_so_many_clients_are_served_at_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = [
        socket.create_connection(("127.0.0.1", site.server.port), timeout=60) for _ in range(web_server.MOST_CLIENTS)
    ]
    try:
        assert _raw(site, b"").startswith(b"HTTP/1.0 503")
    finally:
        for connection in waiting:
            connection.close()
    deadline = time.monotonic() + 60
    while site.ask("/").status == 503:
        assert time.monotonic() < deadline
    assert site.ask("/").status == 200


# A run that grows

_SEARCH = (BEFORE / "search" / "journal.jsonl").read_bytes().splitlines(keepends=True)


def _trials_page(run: Run) -> Page:
    """A page of a search that says how many trials there are, whatever the real one looks like."""
    count = len(run.value.trials)
    figure = Figure("f", "Picture", "It shows.", lambda width: f'<svg class="wk-figure" aria-label="{count}"></svg>')
    return Page("autoconfig", "search", f"{count} trials so far.", (figure, Text("text")))


@pytest.fixture
def live(site: Site, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The journal of a search that is running."""
    monkeypatch.setattr(dashboards, "make_page", _trials_page)
    monkeypatch.setattr(dashboards, "_SHARE", 1.0)
    (root / "search").mkdir()
    (root / "search" / "journal.jsonl").write_bytes(b"".join(_SEARCH[:3]))
    return root / "search" / "journal.jsonl"


def _append(journal: Path, content: bytes) -> None:
    with journal.open("ab") as stream:
        stream.write(content)


def test_a_journal_that_grows_is_seen(site: Site, live: Path) -> None:
    run = site.id("search")
    page = site.ask(f"/run/{run}")
    assert "1 trials so far." in page.text
    etag = _Seen(page.text).tags[[tag for tag, _ in _Seen(page.text).tags].index("p")][1]["data-etag"]
    assert etag
    assert site.ask(f"/live/{run}", If_None_Match=etag).status == 304
    _append(live, _SEARCH[3])
    got = site.ask(f"/live/{run}", If_None_Match=etag)
    assert (got.status, got.headers["content-type"]) == (200, "application/json")
    assert got.headers["etag"] != etag
    content = json.loads(got.body)
    assert content["finished"] is False
    assert "2 trials so far." in content["html"]
    assert site.ask(f"/live/{run}", If_None_Match=got.headers["etag"]).status == 304


def test_nothing_is_read_while_nothing_changed(site: Site, live: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = site.id("search")
    etag = site.ask(f"/live/{run}").headers["etag"]

    def refuse(*_: object) -> None:
        raise AssertionError("it was read")

    for name in ("read_run", "make_page", "find_link"):
        monkeypatch.setattr(dashboards, name, refuse)
    monkeypatch.setattr(Index, "_walk", refuse)
    for _ in range(3):
        got = site.ask(f"/live/{run}", If_None_Match=etag)
        assert (got.status, got.body) == (304, b"")
    assert site.ask(f"/live/{run}").headers["etag"] == etag  # another page that was just opened
    assert site.lines == []


def test_pages_of_a_run_that_grows_take_a_small_part_of_the_time(
    site: Site, live: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(dashboards, "_SHARE", 0.05)
    monkeypatch.setattr(dashboards.time, "monotonic", lambda: now[0])

    def slow(run: Run) -> Page:
        now[0] += 1.0
        return _trials_page(run)

    monkeypatch.setattr(dashboards, "make_page", slow)
    followed = site.dashboard
    run = followed.index.find(site.id("search"))
    assert run is not None
    first = followed._make_followed(run)
    _append(live, _SEARCH[3])
    now[0] += 18.0
    assert followed._make_followed(run) is first
    assert followed._follow(run, first.etag).status == 304
    now[0] += 1.1
    assert "2 trials" in followed._make_followed(run).html


def test_a_torn_line_and_damage_are_no_error(site: Site, live: Path) -> None:
    run = site.id("search")
    first = site.ask(f"/live/{run}")
    _append(live, _SEARCH[3][:500])
    torn = site.ask(f"/live/{run}")
    assert torn.headers["etag"] != first.headers["etag"]
    assert "1 trials so far." in json.loads(torn.body)["html"]
    live.write_bytes(_SEARCH[0] + b"garbage\n" + _SEARCH[1])
    content = json.loads(site.ask(f"/live/{run}").body)
    assert "damaged in line 2" in content["html"]
    assert content["finished"] is False
    live.unlink()
    assert "no longer" in json.loads(site.ask(f"/live/{run}").body)["html"] or site.ask(f"/run/{run}").status == 200


def test_the_end_of_a_run_is_seen(site: Site, live: Path) -> None:
    run = site.id("search")
    assert json.loads(site.ask(f"/live/{run}").body)["finished"] is False
    assert 'id="live"' in site.ask(f"/run/{run}").text
    shutil.copy(BEFORE / "search" / "autoconfig.json", live.parent)
    assert json.loads(site.ask(f"/live/{run}").body)["finished"] is True
    assert 'id="live"' not in site.ask(f"/run/{run}").text


# Many runs


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """10,000 runs."""
    folder = tmp_path_factory.mktemp("many")
    for number in range(100):
        (folder / f"{number:03}").mkdir()
    for number in range(10_000):
        text = f'{{"schema": "winml/perf/1", "ok": true, "model": "m{number % 7}.onnx", "target": "cpu"}}'
        (folder / f"{number % 100:03}" / f"run-{number:05}.json").write_text(text, encoding="utf-8")
    return folder


def test_ten_thousand_runs_are_listed_by_the_page(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboards, "_ANSWERS_S", 0.0)
    site = Site(many)
    site.dashboard.index = Index(many, pause_s=600)
    try:
        first = site.ask("/?sort=name")
        assert len(first.body) < 200_000
        assert _listed(first.text)[0] == "000/run-00000.json"
        seen, path = [], "/?sort=name&q=m3.onnx"
        while path:
            text = site.ask(path).text
            rows = _listed(text)
            assert len(rows) <= 100
            seen += rows
            following = re.search(r'<a rel="next" href="([^"]+)"', text)
            path = following[1].replace("&amp;", "&") if following else ""
        assert len(seen) == len(set(seen)) == sum(number % 7 == 3 for number in range(10_000))
        assert seen == sorted(seen)
        last = site.ask("/?sort=name&page=100").text
        assert _listed(last)[-1] == "099/run-09999.json"
        assert "page 100 of 100" in last
        assert "Large" not in last
    finally:
        site.close()


def test_answers_that_were_not_there_in_time_are_asked_for(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboards, "_ANSWERS_S", 0.0)
    run = site.id("perf.json")
    assert f'data-run="{run}"' in site.ask("/").text
    told = json.loads(site.ask(f"/answers?run={run}&run={'0' * 20}&run=..%2F").body)
    assert list(told) == [run]
    assert told[run].startswith("A run takes 0.0847 ms")
    assert f'data-run="{run}"' not in site.ask("/").text, "it is known now"


# The command


def _ports() -> Iterator[socket.socket]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody else listens on."""
    for one in _ports():
        yield one.getsockname()[1]


def test_a_taken_port_is_an_error_when_it_was_asked_for(taken: int) -> None:
    with pytest.raises(UnavailableError, match=f"port {taken} of 127.0.0.1 cannot be used") as failed:
        open_server(taken, lambda request: web_server.Answer(), token=None, log=print, usual=1)
    assert "`--port`" in (failed.value.hint or "")


def test_a_usual_port_that_is_taken_is_replaced(taken: int) -> None:
    with open_server(None, lambda request: web_server.Answer(), token=None, log=print, usual=taken) as server:
        assert server.port != taken
        assert server.socket.getsockname()[0] == "127.0.0.1"


def test_the_command_refuses_what_is_no_folder(tmp_path: Path, taken: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["dashboard", str(tmp_path / "missing"), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["message"].startswith("folder not found")
    assert main.run(["dashboard", str(tmp_path), "--port", str(taken), "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "unavailable"


def test_ctrl_c_ends_the_command(root: Path) -> None:
    process = start([sys.executable, "-m", "winml.modelkit", "dashboard", str(root), "--port", "0", "--json"])
    try:
        assert process.stdout is not None
        text = ""
        while not text.endswith("}\n"):
            line = process.stdout.readline()
            assert line, process.communicate()
            text += line
        ready = json.loads(text)
        assert {**ready, "address": ""} == {
            "schema": "winml/dashboard/1", "ok": True, "address": "", "root": str(root.resolve()), "runs": 2,
        }  # fmt: skip
        parts = urlsplit(ready["address"])
        connection = HTTPConnection(parts.netloc, timeout=60)
        connection.request("GET", f"/?{parts.query}")
        assert connection.getresponse().status == 303
        connection.close()
        press_ctrl_c(process)
        out, errors = process.communicate(timeout=120)
        assert (process.returncode, out) == (0, "")
        assert "Traceback" not in errors
        assert "press Ctrl-C to stop" in errors
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", parts.port or 0), timeout=10)
    finally:
        process.kill()


def test_the_page_is_opened_by_a_ticket(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import webbrowser

    opened: list[str] = []
    ready: list[dashboards.DashboardReady] = []

    def stop(address: str) -> bool:
        opened.append(address)
        was_opened.set()
        return True

    was_opened = threading.Event()
    monkeypatch.setattr(webbrowser, "open", stop)
    monkeypatch.setattr(dashboards, "_give_way", lambda: None)

    def serve_forever(self: LocalServer, poll_interval: float = 0.5) -> None:
        assert was_opened.wait(60)

    monkeypatch.setattr(LocalServer, "serve_forever", serve_forever)
    dashboards.serve(dashboards.DashboardRequest(str(root), 0, browse=True), ready.append, print)
    assert opened[0].startswith(f"http://127.0.0.1:{urlsplit(ready[0].address).port}/?token=")
    assert opened[0] != ready[0].address
    assert replace(ready[0], address="").runs == 2
