"""A client of the OCI distribution protocol: requests, logins, blobs as streams, manifests, tags.

Registries do not always do what the protocol says; comments note what docker-registry 2.8.2 was seen to do.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urljoin, urlsplit

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import UnavailableError
from winml.modelkit.core.json_text import parse_json
from winml.modelkit.feed.base import FeedRefused
from winml.modelkit.feed.content import FeedDamaged, FileEntry
from winml.modelkit.feed.credentials import Credentials, missing_login_hint
from winml.modelkit.feed.landing import CHUNK, Delivery
from winml.modelkit.store import digest

if TYPE_CHECKING:
    import httpx

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
PAGE = 1000
_MANIFEST_LIMIT = 4 << 20
_ATTEMPTS = 4
ANSWER_S = 60.0
"""How long a small answer may take from its first byte to its last."""
LISTING_S = 300.0
MOST_NAMES = 1_000_000
STALL_S, STALL_BYTES = 60.0, 60 * 1024
"""A download slower than this counts as stalled."""
_WAIT_S = 0.25
_BUSY = (429, 500, 502, 503, 504)
_CHALLENGE = re.compile(r'([A-Za-z]+)="([^"]*)"')
_NEXT = re.compile(r"<([^>]+)>\s*;[^,]*\brel=\"?next\"?", re.IGNORECASE)

Body = Callable[[], Iterator[bytes]]
T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    """A small response, read to its end; names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    raw: bytes


class _Busy(UnavailableError):
    """The registry did not answer, or is busy; trying again may help."""

    code = "feed-busy"


def is_loopback(host: str) -> bool:
    name = urlsplit(f"//{host}").hostname or ""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def pull_scope(repository: str) -> str:
    return f"repository:{repository}:pull"


def push_scope(repository: str) -> str:
    return f"repository:{repository}:pull,push"


class Registry:
    """One registry, with one connection pool and the logins it requested."""

    def __init__(self, base: str, credentials: Credentials | None) -> None:
        if find_spec("httpx") is None:
            raise UnavailableError(
                "OCI feeds need the Python package `httpx`", hint="install it with `pip install winml-modelkit[feeds]`"
            )
        import httpx

        self.base = base
        self._credentials = credentials
        self._authorization: dict[tuple[str, ...], str] = {}
        self._errors: type[Exception] = httpx.TransportError
        timeout = httpx.Timeout(60.0, connect=10.0)
        self._client = httpx.Client(timeout=timeout, headers={"User-Agent": "winml"})

    def close(self) -> None:
        self._client.close()

    # Requests

    @contextlib.contextmanager
    def exchange(
        self,
        method: str,
        path: str,
        *,
        scopes: tuple[str, ...],
        headers: dict[str, str] | None = None,
        params: dict[str, str] | None = None,
        body: Body | None = None,
    ) -> Iterator[httpx.Response]:
        """A response whose body was not read yet; a login request is answered once.

        The body is a function, because it is sent again after a login.
        """
        url = urljoin(self.base, path)
        response = self._send(method, url, scopes, headers, params, body)
        # A server that a request was redirected to may ask for a login too; it must not get ours.
        if response.status_code == 401 and self._is_ours(str(response.url)):
            response.close()
            self._log_in(response.headers.get("WWW-Authenticate", ""), scopes)
            response = self._send(method, url, scopes, headers, params, body)
        try:
            self._check(response, method, url)
            yield response
        except self._errors as error:
            raise self._make_unreachable_error(error) from error
        finally:
            response.close()

    def _send(
        self,
        method: str,
        url: str,
        scopes: tuple[str, ...],
        headers: dict[str, str] | None,
        params: dict[str, str] | None,
        body: Body | None,
    ) -> httpx.Response:
        sent = dict(headers or {})
        # Uploads and downloads may go to another host, which must not see our login.
        if scopes in self._authorization and self._is_ours(url):
            sent["Authorization"] = self._authorization[scopes]
        content = None if body is None else body()
        request = self._client.build_request(method, url, headers=sent, params=params, content=content)
        try:
            return self._client.send(request, stream=True, follow_redirects=method in ("GET", "HEAD"))
        except self._errors as error:
            raise self._make_unreachable_error(error) from error

    def _is_ours(self, url: str) -> bool:
        """Whether a URL belongs to the registry that the user named."""
        return urlsplit(url)[:2] == urlsplit(self.base)[:2]

    def _make_unreachable_error(self, error: Exception) -> _Busy:
        reason = str(error) or type(error).__name__
        return _Busy(f"registry `{self.base}` is not reachable: {reason}", hint="check the address and the network")

    def _check(self, response: httpx.Response, method: str, url: str) -> None:
        """Turn answers that mean the same for every caller into errors; 404 depends on the request."""
        status = response.status_code
        if status < 400 or status == 404:
            return
        reason = self._reason(response)
        if status in (401, 403):
            raise UnavailableError(
                f"registry `{self.base}` refused the login: {reason}",
                hint=missing_login_hint() if self._credentials is None else "check user name, password and permissions",
            )
        if status in _BUSY:
            raise _Busy(f"registry `{self.base}` answered {status}: {reason}", hint="try again later")
        raise FeedRefused(f"registry `{self.base}` answered {method} {urlsplit(url).path} with {status}: {reason}")

    def _reason(self, response: httpx.Response) -> str:
        raw = self._read_limited(response)
        try:
            first = parse_json(raw)["errors"][0]
            return f"{first['code']} {first.get('message', '')}".strip()
        except (ValueError, KeyError, IndexError, TypeError):
            return response.reason_phrase or "no reason given"

    def _read_limited(self, response: httpx.Response) -> bytes:
        """Read a body that must be small, up to a limit."""
        raw = b""
        ends = time.monotonic() + ANSWER_S
        try:
            for chunk in response.iter_raw():
                raw += chunk
                if time.monotonic() > ends:
                    raise UnavailableError(f"registry `{self.base}` did not finish an answer in {ANSWER_S:g} s")
                if len(raw) > _MANIFEST_LIMIT:
                    raise FeedDamaged(f"registry `{self.base}` sent more than {_MANIFEST_LIMIT} bytes of JSON")
        except self._errors as error:
            raise self._make_unreachable_error(error) from error
        return raw

    def ask(
        self,
        method: str,
        path: str,
        *,
        scopes: tuple[str, ...],
        headers: dict[str, str] | None = None,
        params: dict[str, str] | None = None,
        content: bytes | None = None,
    ) -> Answer:
        """The answer to a small request; retried while the registry is busy."""
        return self.persist(
            lambda: self._ask_once(method, path, scopes=scopes, headers=headers, params=params, content=content)
        )

    def _ask_once(
        self,
        method: str,
        path: str,
        *,
        scopes: tuple[str, ...],
        headers: dict[str, str] | None = None,
        params: dict[str, str] | None = None,
        content: bytes | None = None,
    ) -> Answer:
        given = {"Accept-Encoding": "identity", **(headers or {})}
        body: Body | None = None
        if content is not None:
            given["Content-Length"] = str(len(content))
            body = partial(iter, [content])
        with self.exchange(method, path, scopes=scopes, headers=given, params=params, body=body) as response:
            named = {name.lower(): value for name, value in response.headers.items()}
            return Answer(response.status_code, named, self._read_limited(response))

    @staticmethod
    def persist(work: Callable[[], T]) -> T:
        """Retry while the registry is busy, a few times, with growing pauses."""
        for attempt in range(_ATTEMPTS - 1):
            try:
                return work()
            except _Busy:
                time.sleep(_WAIT_S * 2**attempt)
        return work()

    # Logins

    def _log_in(self, challenge: str, scopes: tuple[str, ...]) -> None:
        kind, _, rest = challenge.partition(" ")
        if kind.lower() == "bearer":
            self._authorization[scopes] = "Bearer " + self._token(dict(_CHALLENGE.findall(rest)), scopes)
        elif self._credentials is None:
            raise UnavailableError(f"registry `{self.base}` requires a login", hint=missing_login_hint())
        elif kind.lower() == "basic":
            self._authorization[scopes] = self._credentials.basic
        else:
            raise UnavailableError(
                f"registry `{self.base}` requires a login of kind `{kind}`, which winml does not support"
            )

    def _token(self, challenge: dict[str, str], scopes: tuple[str, ...]) -> str:
        realm = challenge.get("realm", "")
        where = urlsplit(realm)
        if where.scheme != "https" and not is_loopback(where.netloc):
            raise UnavailableError(f"registry `{self.base}` asks for the login at `{realm}`, which is not encrypted")
        headers = {} if self._credentials is None else {"Authorization": self._credentials.basic}
        params: dict[str, str | tuple[str, ...]] = {"scope": scopes}
        if "service" in challenge:
            params["service"] = challenge["service"]
        try:
            with self._client.stream("GET", realm, params=params, headers=headers) as answer:
                raw = self._read_limited(answer)
        except self._errors as error:
            raise self._make_unreachable_error(error) from error
        if answer.status_code != 200:
            hint = missing_login_hint() if self._credentials is None else "check user name and password"
            raise UnavailableError(
                f"`{realm}` returned no token: {answer.status_code} {answer.reason_phrase}", hint=hint
            )
        try:
            value = parse_json(raw)
            token = value.get("token") or value["access_token"]
        except (ValueError, KeyError, AttributeError) as error:
            raise UnavailableError(f"`{realm}` answered without a token") from error
        return str(token)

    def ping(self) -> None:
        """Raise when the address is not reachable, is not a registry, or refuses the login."""
        status = self._ask_once("GET", "/v2/", scopes=()).status
        if status != 200:
            raise UnavailableError(f"`{self.base}` is not an OCI registry: `/v2/` answered {status}")

    # Blobs

    def has_blob(self, repository: str, name: str) -> bool:
        path = f"/v2/{repository}/blobs/{name}"
        return self.ask("HEAD", path, scopes=(push_scope(repository),)).status == 200

    def put_blob(self, repository: str, item: FileEntry, body: Body, *, mount_from: str | None) -> int:
        """Put a blob into a repository by mounting or sending it; returns the bytes sent.

        The whole blob is one request: registries differ in how they accept pieces, and docker-registry loses an
        upload that was cut within a piece.
        """
        scopes = (push_scope(repository), *([pull_scope(mount_from)] if mount_from else []))
        params = {"mount": item.digest, "from": mount_from} if mount_from else None

        def once() -> int:
            path = f"/v2/{repository}/blobs/uploads/"
            answer = self._ask_once("POST", path, scopes=scopes, params=params, content=b"")
            if answer.status == 201:
                return 0
            if answer.status != 202 or "location" not in answer.headers:
                raise FeedRefused(f"registry `{self.base}` did not start an upload: {answer.status}")
            self._finish_upload(answer.headers["location"], item, body, scopes)
            return item.bytes

        return self.persist(once)

    def _finish_upload(self, location: str, item: FileEntry, body: Body, scopes: tuple[str, ...]) -> None:
        joined = urljoin(self.base, location)
        url = f"{joined}{'&' if urlsplit(joined).query else '?'}digest={item.digest}"
        headers = {"Content-Length": str(item.bytes), "Content-Type": "application/octet-stream"}
        with self.exchange("PUT", url, scopes=scopes, headers=headers, body=body) as response:
            if response.status_code == 404:
                # Restarted during the upload: docker-registry signs uploads with a secret that is new at every start.
                raise _Busy(f"registry `{self.base}` lost an upload", hint="try again")
            if response.status_code != 201:
                raise FeedRefused(f"registry `{self.base}` did not accept a file: {response.status_code}")

    @contextlib.contextmanager
    def blob(self, repository: str, name: str, offset: int) -> Iterator[Delivery | None]:
        """The bytes of a blob; None when the registry does not have it."""
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={offset}-"} if offset else {})
        path = f"/v2/{repository}/blobs/{name}"
        with self.exchange("GET", path, scopes=(pull_scope(repository),), headers=headers) as response:
            if response.status_code == 404:
                yield None
            else:
                start = offset if response.status_code == 206 else 0
                yield Delivery(start, self._read_stream(response))

    def _read_stream(self, response: httpx.Response) -> Iterator[bytes]:
        """The bytes of a body in large chunks; raises when the download stalls."""
        waiting, since, came = bytearray(), time.monotonic(), 0
        for chunk in response.iter_raw():
            waiting += chunk
            came += len(chunk)
            if len(waiting) >= CHUNK:
                yield bytes(waiting)
                waiting.clear()
            now = time.monotonic()
            if now - since > STALL_S:
                if came < STALL_BYTES:
                    raise _Busy(f"registry `{self.base}` sent {came} bytes in {STALL_S:g} s", hint="try again later")
                since, came = now, 0
        yield bytes(waiting)

    # Manifests and tags

    def manifest(self, repository: str, reference: str) -> tuple[str, bytes] | None:
        """A manifest and its digest; None when there is none."""
        path = f"/v2/{repository}/manifests/{reference}"
        answer = self.ask("GET", path, scopes=(pull_scope(repository),), headers={"Accept": MANIFEST_TYPE})
        if answer.status == 404:
            return None
        found = digest.of_bytes(answer.raw)
        said = answer.headers.get("docker-content-digest", found)
        if found != said:
            raise FeedDamaged(f"manifest `{reference}` of `{repository}` came with digest {found} instead of {said}")
        return found, answer.raw

    def put_manifest(self, repository: str, reference: str, raw: bytes) -> None:
        path = f"/v2/{repository}/manifests/{reference}"
        headers = {"Content-Type": MANIFEST_TYPE}
        status = self.ask("PUT", path, scopes=(push_scope(repository),), headers=headers, content=raw).status
        if status != 201:
            raise FeedRefused(f"registry `{self.base}` did not accept the manifest of `{reference}`: {status}")

    def delete_manifest(self, repository: str, name: str) -> int:
        """The status of the answer: a registry may not allow deletion."""
        scope = f"repository:{repository}:delete"
        return self.ask("DELETE", f"/v2/{repository}/manifests/{name}", scopes=(scope,)).status

    def tags(self, repository: str) -> tuple[str, ...] | None:
        """All tags, sorted; None when the registry does not know the repository."""
        return self._pages(f"/v2/{repository}/tags/list", "tags", (pull_scope(repository),))

    def repositories(self) -> tuple[str, ...]:
        found = self._pages("/v2/_catalog", "repositories", ("registry:catalog:*",))
        if found is None:
            raise UnavailableError(f"registry `{self.base}` does not list its repositories", hint="name the package")
        return found

    def _pages(self, path: str, key: str, scopes: tuple[str, ...]) -> tuple[str, ...] | None:
        """Everything a listing has, sorted.

        docker-registry ignores `n` and `last` for tags, sends them unsorted and without a link; others cut a list
        without one. So links are followed, and without one we ask for what comes after the last name until nothing new
        comes.
        """
        found: set[str] = set()
        url, params = path, {"n": str(PAGE)}
        ends = time.monotonic() + LISTING_S
        while True:
            if len(found) > MOST_NAMES or time.monotonic() > ends:
                raise UnavailableError(
                    f"registry `{self.base}` keeps listing names: {len(found)} in `{path}` so far",
                    hint="name the version with `--version`",
                )
            answer = self.ask("GET", url, scopes=scopes, params=params or None)
            if answer.status == 404:
                return None
            names = self._names(answer.raw, key, path)
            if found.issuperset(names):
                return tuple(sorted(found))
            found |= names
            link = _NEXT.search(answer.headers.get("link", ""))
            url, params = (urljoin(url, link[1]), {}) if link else (path, {"n": str(PAGE), "last": max(names)})

    def _names(self, raw: bytes, key: str, path: str) -> set[str]:
        try:
            return set(map(str, parse_json(raw)[key] or ()))
        except (ValueError, KeyError, TypeError) as error:
            raise FeedDamaged(f"registry `{self.base}` did not answer `{path}` with a list of names") from error
