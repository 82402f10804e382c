"""The OCI feed against a real docker-registry, and what an independent client makes of it."""

from __future__ import annotations

import base64
import http.server
import json
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from feed_zoo import PASSWORD_HASH, RegistryServer, contents, filled, once, quiet, skopeo
from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.core.events import Event
from winml.modelkit.feed.base import (
    AlreadyThere,
    Conflict,
    FileMoved,
    NamingVersion,
    Published,
    Unavailable,
    VersionNamed,
)
from winml.modelkit.feed.content import PULLING, FeedDamaged, FileEntry, Tree, scan
from winml.modelkit.feed.credentials import Credentials, credentials_for
from winml.modelkit.feed.oci import OCIFeed, SeenBlobs, content_of, manifest_of
from winml.modelkit.feed.registry import Registry
from winml.modelkit.store import digest

pytestmark = [pytest.mark.usefixtures("no_logins"), pytest.mark.registry]
VERSION = "0.0.0-1-m"


@pytest.fixture
def feed(registry: RegistryServer) -> Iterator[OCIFeed]:
    """A part of the registry that nobody else uses."""
    with closing(OCIFeed.at(f"{registry.address}/{secrets.token_hex(4)}")) as opened:
        yield opened


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return scan(filled(tmp_path / "source", model=secrets.token_bytes(200_000), sub__data=secrets.token_bytes(3000)))


def _other(tmp_path: Path) -> Tree:
    return scan(filled(tmp_path / "other", model=secrets.token_bytes(100)))


def test_files_that_are_there_are_not_sent_again(feed: OCIFeed, tree: Tree) -> None:
    first = feed.publish("m", VERSION, tree, quiet)
    assert isinstance(first, Published)
    assert first.sent_bytes == tree.content.bytes + len("{}")
    second = feed.publish("m", "0.0.0-2-m", tree, quiet)
    assert isinstance(second, Published)
    assert second.sent_bytes == 0
    assert second.reference != first.reference


def test_files_of_another_package_are_mounted(feed: OCIFeed, tree: Tree, registry: RegistryServer) -> None:
    feed.publish("m", VERSION, tree, quiet)
    mounted = feed.publish("n", VERSION, tree, quiet)
    assert isinstance(mounted, Published)
    assert mounted.sent_bytes == 0
    stored = feed.find("n", VERSION)
    assert stored is not None
    assert feed.verify(stored, quiet).damaged == ()


def test_a_wrong_memory_of_where_files_are_costs_only_bytes(
    feed: OCIFeed, tree: Tree, registry: RegistryServer
) -> None:
    for entry in tree.content.files.values():
        SeenBlobs(registry.host).remember(entry.digest, "models/nowhere")
    outcome = feed.publish("m", VERSION, tree, quiet)
    assert isinstance(outcome, Published)
    assert outcome.sent_bytes == tree.content.bytes + len("{}")


def test_a_cache_that_cannot_be_written_does_not_stop_a_push(feed: OCIFeed, tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "feeds").touch()
    assert isinstance(feed.publish("m", VERSION, tree, quiet), Published)


def test_a_tag_that_another_writer_took_first_is_a_conflict(feed: OCIFeed, tree: Tree, tmp_path: Path) -> None:
    other = _other(tmp_path)
    overtaken = once(NamingVersion, lambda: feed.publish("m", VERSION, other, quiet))
    outcome = feed.publish("m", VERSION, tree, overtaken)
    assert isinstance(outcome, Conflict)
    assert outcome.digest == other.content.digest


def test_a_tag_that_another_writer_moved_is_a_conflict(feed: OCIFeed, tree: Tree, tmp_path: Path) -> None:
    other = _other(tmp_path)
    feed.publish("m", "0.0.0-9-m", other, quiet)

    def move() -> None:
        raw = manifest_of(other.content, VERSION)
        feed._registry.put_manifest(feed._of("m"), VERSION, raw)

    outcome = feed.publish("m", VERSION, tree, once(VersionNamed, move))
    assert isinstance(outcome, Conflict)
    assert "moved by another writer" in outcome.reason
    assert outcome.digest == other.content.digest


def test_a_registry_killed_in_mid_upload_is_unavailable_and_the_next_push_completes(tmp_path: Path) -> None:
    server = RegistryServer(tmp_path)
    try:
        files = {"a_small": secrets.token_bytes(1000), "b_large": secrets.token_bytes(24 << 20)}
        tree = scan(filled(tmp_path / "source", **files))

        def kill(event: Event) -> None:
            if isinstance(event, FileMoved) and event.name == "b_large.bin" and event.done > (8 << 20):
                server.kill()

        with closing(OCIFeed.at(server.address)) as feed:
            outcome = feed.publish("m", VERSION, tree, kill)
            assert isinstance(outcome, Unavailable)
            server.start()
            assert feed.find("m", VERSION) is None
            again = feed.publish("m", VERSION, tree, quiet)
            assert isinstance(again, Published)
            assert again.sent_bytes == (24 << 20) + len("{}")
            stored = feed.find("m", VERSION)
            assert stored is not None
            assert feed.verify(stored, quiet).damaged == ()
    finally:
        server.kill()


def test_a_registry_that_comes_back_soon_is_asked_again(tmp_path: Path, tree: Tree) -> None:
    server = RegistryServer(tmp_path)
    try:
        with closing(OCIFeed.at(server.address)) as feed:
            feed.check()
            server.kill()
            restart = threading.Timer(0.5, server.start)
            restart.start()
            assert isinstance(feed.publish("m", VERSION, tree, quiet), Published)
            restart.join()
    finally:
        server.kill()


PUSH = """
import sys
from pathlib import Path
from winml.modelkit.feed.content import scan
from winml.modelkit.feed.table import open_feed
print("pushing", flush=True)
open_feed(sys.argv[1]).publish("m", sys.argv[3], scan(Path(sys.argv[2])), lambda event: print(event, flush=True))
"""


def test_a_client_killed_at_any_moment_leaves_nothing_that_cannot_go_on(feed: OCIFeed, tmp_path: Path) -> None:
    files = {f"f{n}": secrets.token_bytes(700_000) for n in range(6)}
    tree = scan(filled(tmp_path / "source", **files))
    for lines in (1, 3, 6, 8):
        argv = [sys.executable, "-c", PUSH, feed.address, str(tree.root), VERSION]
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as client:
            assert client.stdout is not None
            for _ in range(lines):
                client.stdout.readline()
            client.send_signal(signal.SIGKILL)
    outcome = feed.publish("m", VERSION, tree, quiet)
    assert isinstance(outcome, Published | AlreadyThere)
    stored = feed.find("m", VERSION)
    assert stored is not None
    assert stored.content == tree.content
    assert feed.verify(stored, quiet).damaged == ()
    assert feed.publish("m", VERSION, tree, quiet) == AlreadyThere(tree.content.digest, stored.reference, 0)


def test_half_a_download_goes_on_where_it_stopped(feed: OCIFeed, tree: Tree, tmp_path: Path) -> None:
    feed.publish("m", VERSION, tree, quiet)
    stored = feed.find("m", VERSION)
    assert stored is not None
    room = tmp_path / "out" / PULLING
    room.mkdir(parents=True)
    name = tree.content.files["model.bin"].digest.removeprefix("sha256:")
    (room / f"{name}.part").write_bytes((tree.root / "model.bin").read_bytes()[:150_000])
    fetched = feed.fetch(stored, tmp_path / "out", only=stored.content, overwrite=False, on_event=quiet)
    assert (fetched.received_bytes, fetched.kept_bytes) == (53_000, 150_000)
    assert contents(tmp_path / "out") == contents(tree.root)


def test_a_blob_that_the_registry_lost_is_named_and_pushing_again_heals_it(
    feed: OCIFeed, tree: Tree, registry: RegistryServer, tmp_path: Path
) -> None:
    feed.publish("m", VERSION, tree, quiet)
    stored = feed.find("m", VERSION)
    assert stored is not None
    registry.blob_file(tree.content.files["sub/data.bin"].digest).unlink()
    assert feed.verify(stored, quiet).damaged == ("sub/data.bin",)
    with pytest.raises(FeedDamaged, match=r"sub/data\.bin"):
        feed.fetch(stored, tmp_path / "out", only=stored.content, overwrite=False, on_event=quiet)
    assert feed.publish("m", VERSION, tree, quiet) == AlreadyThere(tree.content.digest, stored.reference, 3000)
    assert feed.verify(stored, quiet).damaged == ()


@pytest.mark.parametrize("title", ["../evil", "/etc/evil", "a/../../evil", "C:\\evil", ""])
def test_a_manifest_that_leads_out_of_the_folder_is_refused(feed: OCIFeed, tree: Tree, title: str) -> None:
    feed.publish("m", VERSION, tree, quiet)
    value = json.loads(manifest_of(tree.content, VERSION))
    value["layers"][0]["annotations"]["org.opencontainers.image.title"] = title
    feed._registry.put_manifest(feed._of("m"), "evil", json.dumps(value).encode())
    with pytest.raises(FeedDamaged):
        feed.find("m", "evil")


@pytest.mark.parametrize("raw", [b"", b"[]", b'{"layers": [1]}', b'{"layers": [{"digest": "x"}]}', b"{}"])
def test_other_manifests_are_refused(raw: bytes) -> None:
    with pytest.raises(FeedDamaged):
        content_of(raw, source="x")


def test_more_tags_than_a_page_usually_has_are_all_listed_sorted(feed: OCIFeed, tree: Tree) -> None:
    feed.publish("m", VERSION, tree, quiet)
    raw = manifest_of(tree.content, VERSION)
    for number in range(110):
        feed._registry.put_manifest(feed._of("m"), f"t{number}", raw)
    found = [listed.version for listed in feed.versions("m") or ()]
    assert found == sorted([VERSION, *(f"t{number}" for number in range(110))])


# Logins


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[RegistryServer]:
    """A registry that wants a name and a password."""
    (tmp_path / "htpasswd").write_text(f"somebody:{PASSWORD_HASH}\n")
    server = RegistryServer(tmp_path, auth=f"auth:\n  htpasswd:\n    realm: r\n    path: {tmp_path / 'htpasswd'}\n")
    yield server
    server.kill()


def test_no_login_and_a_wrong_one_are_unavailable_and_the_right_one_publishes(
    guarded: RegistryServer, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(OCIFeed.at(guarded.address)) as feed:
        outcome = feed.publish("m", VERSION, tree, quiet)
        assert isinstance(outcome, Unavailable)
        assert "WINML_FEED_USER" in (outcome.hint or "")
    monkeypatch.setenv("WINML_FEED_USER", "somebody")
    monkeypatch.setenv("WINML_FEED_PASSWORD", "wrong-secret")
    with closing(OCIFeed.at(guarded.address)) as feed:
        outcome = feed.publish("m", VERSION, tree, quiet)
        assert isinstance(outcome, Unavailable)
        assert "check user name" in (outcome.hint or "")
        assert "wrong-secret" not in f"{outcome}"
        with pytest.raises(UnavailableError, match="refused the login"):
            feed.versions("m")
    monkeypatch.setenv("WINML_FEED_PASSWORD", "pw")
    with closing(OCIFeed.at(guarded.address)) as feed:
        assert isinstance(feed.publish("m", VERSION, tree, quiet), Published)
        mounted = feed.publish("n", VERSION, tree, quiet)
        assert isinstance(mounted, Published)
        assert mounted.sent_bytes == 0


def test_the_login_of_other_tools_is_used(
    guarded: RegistryServer, tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = base64.b64encode(b"somebody:pw").decode()
    (tmp_path / "auth.json").write_text(json.dumps({"auths": {guarded.host: {"auth": login}}}))
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "auth.json"))
    with closing(OCIFeed.at(guarded.address)) as feed:
        assert isinstance(feed.publish("m", VERSION, tree, quiet), Published)


def test_half_a_login_and_a_broken_file_are_wrong_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINML_FEED_USER", "somebody")
    with pytest.raises(RequestError, match="set both"):
        credentials_for("host")
    monkeypatch.delenv("WINML_FEED_USER")
    (tmp_path / "auth.json").write_text('{"auths": {"host": {"auth": "%%%"}}}')
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "auth.json"))
    with pytest.raises(RequestError, match="cannot be read"):
        credentials_for("host")
    assert credentials_for("other") is None


def test_a_password_shows_neither_in_a_value_nor_in_an_address() -> None:
    assert "hush" not in repr(Credentials("somebody", "hush"))
    with pytest.raises(RequestError) as caught:
        OCIFeed.at("oci://somebody:hush@host/repository")
    assert "hush" not in f"{caught.value.message} {caught.value.hint}"


class TokenServer:
    """Hands out tokens that docker-registry trusts, signed with a key made for the test."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[dict[str, list[str]]] = []
        self._key, certificate = folder / "key.pem", folder / "certificate.pem"
        make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=test"]
        subprocess.run([*make, "-keyout", self._key, "-out", certificate], check=True, capture_output=True)
        self.certificate = certificate
        self._chain = "".join(certificate.read_text().splitlines()[1:-1])
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                query = parse_qs(urlsplit(self.path).query)
                outer.asked.append(query)
                good = self.headers.get("Authorization") == Credentials("somebody", "pw").basic
                body = json.dumps({"token": outer.token(query.get("scope", []))}).encode() if good else b"{}"
                self.send_response(200 if good else 401)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def realm(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/token"

    def token(self, scopes: list[str]) -> str:
        def packed(value: object) -> bytes:
            return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=")

        access = [dict(zip(("type", "name", "actions"), scope.split(":"), strict=True)) for scope in scopes]
        granted = [{**item, "actions": item["actions"].split(",")} for item in access]
        now = int(time.time())
        claims = {"iss": "test", "aud": "registry", "sub": "somebody", "access": granted}
        claims |= {"exp": now + 60, "nbf": now - 10, "iat": now, "jti": secrets.token_hex(4)}
        signed = packed({"typ": "JWT", "alg": "RS256", "x5c": [self._chain]}) + b"." + packed(claims)
        sign = ["openssl", "dgst", "-sha256", "-sign", self._key]
        signature = subprocess.run(sign, input=signed, check=True, capture_output=True).stdout
        return (signed + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def test_a_registry_that_wants_tokens_gets_them_for_what_is_asked(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = TokenServer(tmp_path)
    lines = {"realm": tokens.realm, "service": "registry", "issuer": "test", "rootcertbundle": tokens.certificate}
    auth = "auth:\n  token:\n" + "".join(f"    {name}: {value}\n" for name, value in lines.items())
    server = RegistryServer(tmp_path, auth=auth)
    monkeypatch.setenv("WINML_FEED_USER", "somebody")
    try:
        monkeypatch.setenv("WINML_FEED_PASSWORD", "wrong")
        with closing(OCIFeed.at(server.address)) as feed:
            assert isinstance(feed.publish("m", VERSION, tree, quiet), Unavailable)
        monkeypatch.setenv("WINML_FEED_PASSWORD", "pw")
        with closing(OCIFeed.at(server.address)) as feed:
            assert isinstance(feed.publish("m", VERSION, tree, quiet), Published)
            mounted = feed.publish("n", VERSION, tree, quiet)
            assert isinstance(mounted, Published)
            assert mounted.sent_bytes == 0
            stored = feed.find("m", VERSION)
            assert stored is not None
            assert feed.verify(stored, quiet).damaged == ()
            assert [v.version for v in feed.versions("m") or ()] == [VERSION]
        assert {"repository:models/n:pull,push", "repository:models/m:pull"} <= {
            scope for query in tokens.asked for scope in query.get("scope", [])
        }
    finally:
        server.kill()
        tokens.close()


# Another client


@pytest.mark.skopeo
def test_skopeo_copies_an_artifact_with_every_byte(feed: OCIFeed, tree: Tree, tmp_path: Path) -> None:
    found = skopeo()
    assert found is not None
    program, env = found
    outcome = feed.publish("m", VERSION, tree, quiet)
    assert isinstance(outcome, Published)
    source = f"docker://{feed.address.removeprefix('oci://')}/m:{VERSION}"
    argv = [program, "--insecure-policy", "copy", "--src-tls-verify=false", source, f"dir:{tmp_path / 'copy'}"]
    done = subprocess.run(argv, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    copied = contents(tmp_path / "copy")
    assert digest.of_bytes(copied["manifest.json"]) == outcome.reference
    for path, entry in tree.content.files.items():
        assert copied[entry.digest.removeprefix("sha256:")] == (tree.root / path).read_bytes()


def test_what_a_registry_is_sent_with_a_wrong_digest_is_refused_by_it(registry: RegistryServer) -> None:
    from winml.modelkit.feed.base import FeedRefused

    with closing(Registry(f"http://{registry.host}", None)) as client:
        wrong = FileEntry(digest.of_bytes(b"right"), 5)
        with pytest.raises(FeedRefused, match="DIGEST_INVALID"):
            client.put_blob("models/m", wrong, lambda: iter([b"wrong"]), mount_from=None)


@pytest.mark.parametrize(
    "address",
    [
        "oci://host",
        "oci://host/",
        "oci:///repo",
        "oci://host/Upper",
        "oci://host/a//b",
        "oci://ho st/a",
        "oci://h:99999999/a",
    ],
)
def test_malformed_addresses_are_wrong_requests(address: str) -> None:
    with pytest.raises(RequestError, match="not an address"):
        OCIFeed.at(address)


@pytest.mark.parametrize(
    ("address", "base"),
    [
        ("oci://127.0.0.1:5000/m", "http://127.0.0.1:5000"), ("oci://localhost/m", "http://localhost"),
        ("oci://[::1]:5000/m", "http://[::1]:5000"), ("oci://registry.example.com/m", "https://registry.example.com"),
        ("oci+http://registry.example.com/m", "http://registry.example.com"),
    ],
)  # fmt: skip
def test_only_this_machine_is_reached_without_encryption(address: str, base: str) -> None:
    assert OCIFeed.at(address)._base == base
