"""Models of the hub, from a server on this machine that answers as the hub does, and from its cache."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import model_zoo
from winml.modelkit.core.errors import DataError, ModelFileError, UnavailableError
from winml.modelkit.worker.client import Worker

COMMIT = "0123456789abcdef0123456789abcdef01234567"
HEADER = json.dumps({"a": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]}}).encode()
WEIGHTS = struct.pack("<Q", len(HEADER)) + HEADER + bytes(48)
FILES = {
    "config.json": b'{"model_type": "bert"}',
    "model.safetensors": WEIGHTS,
    "pytorch_model.bin": b"the same weights once more",
    "onnx/model.onnx": b"graph",
    "onnx/model.onnx_data": b"external",
    "modeling.py": b"raise SystemExit",
    "tokenizer.json": b"{}",
}
DATA = {"data/test.jsonl": b'{"x": [1, 2, 3, 4]}\n{"x": [0, 0, 0, 1]}\n'}
"""Files of a data set with the name of the model."""


released = threading.Event()
"""Set when the requests that are never answered may end."""


class Handler(BaseHTTPRequestHandler):
    """The part of the hub's protocol that fetching a model uses."""

    def log_message(self, *args: Any) -> None:
        pass

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def _refuse(self, status: int, code: str) -> None:
        self._answer(status, json.dumps({"error": code}).encode(), X_Error_Code=code, X_Error_Message=code)

    def _serve(self) -> None:
        path = self.path.partition("?")[0]
        if "/org/gated" in path:
            return self._refuse(403, "GatedRepo")
        if "/org/private" in path:
            return self._refuse(403, "")
        if "/org/broken" in path:
            return self._refuse(500, "")
        if "/org/silent" in path:
            released.wait(60)
            return None
        if "/org/name" not in path:
            return self._refuse(401, "RepoNotFound")
        if "no-such" in path:
            return self._refuse(404, "RevisionNotFound")
        if path.startswith("/api/"):
            return self._describe(path)
        body = (DATA if path.startswith("/datasets/") else FILES).get(
            path.partition(f"/resolve/{COMMIT}/")[2] or path.partition("/resolve/main/")[2]
        )
        if body is None:
            return self._refuse(404, "EntryNotFound")
        etag = hashlib.sha1(body).hexdigest()
        return self._answer(200, body, ETag=f'"{etag}"', X_Repo_Commit=COMMIT)

    def _describe(self, path: str) -> None:
        if "/tree/" in path:
            rows = [
                {"type": "file", "path": n, "size": len(b), "oid": hashlib.sha1(b).hexdigest()}
                for n, b in FILES.items()
            ]
            return self._answer(200, json.dumps(rows).encode(), Content_Type="application/json")
        info = {"id": "org/name", "sha": COMMIT, "siblings": [{"rfilename": name} for name in FILES]}
        return self._answer(200, json.dumps(info).encode(), Content_Type="application/json")

    do_GET = do_HEAD = _serve  # noqa: N815 - the names http.server calls


@pytest.fixture(scope="module")
def hub() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    released.set()
    server.shutdown()
    server.server_close()


class Fetching:
    """A worker that believes the server to be the hub, with a cache of its own."""

    def __init__(self, endpoint: str, cache: Path) -> None:
        self.endpoint, self.cache = endpoint, cache

    def call(self, operation: str, *, offline: bool = False, told: list[Any] | None = None, **args: Any) -> Any:
        env = {**os.environ, "HF_ENDPOINT": self.endpoint, "HF_HOME": str(self.cache), "HF_HUB_DISABLE_XET": "1"}
        env["HF_HUB_OFFLINE"] = "1" if offline else "0"
        env["HF_HUB_ETAG_TIMEOUT"] = "1"
        on_event = None if told is None else told.append
        with Worker(env=env) as worker:
            return worker.call(operation, {"revision": None, **args}, on_event=on_event)


@pytest.fixture
def fetching(hub: str, tmp_path: Path) -> Fetching:
    return Fetching(hub, tmp_path / "cache")


pytestmark = pytest.mark.hf


def test_a_model_comes_with_one_kind_of_weights_and_without_its_code(fetching: Fetching) -> None:
    answer = fetching.call("data.hub_model", repo="org/name")
    folder = Path(answer["folder"])
    assert answer["revision"] == COMMIT
    assert {p.name for p in folder.iterdir()} == {"config.json", "model.safetensors", "tokenizer.json"}
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    # What was fetched once is found again without the hub.
    assert fetching.call("data.hub_model", repo="org/name", offline=True)["folder"] == str(folder)


def test_parameters_are_known_without_fetching_weights(fetching: Fetching) -> None:
    assert fetching.call("data.hub_weights", repo="org/name") == {"F32": 12}
    assert fetching.call("data.hub_weights", repo="org/name", offline=True) is None


def test_code_is_fetched_for_who_trusts_it(fetching: Fetching) -> None:
    folder = Path(fetching.call("data.hub_model", repo="org/name", code=True, weights=False)["folder"])
    assert {p.name for p in folder.iterdir()} == {"config.json", "modeling.py", "tokenizer.json"}


def test_a_file_comes_with_its_external_data(fetching: Fetching) -> None:
    path = Path(fetching.call("data.hub_file", repo="org/name", file="onnx/model.onnx"))
    assert path.read_bytes() == b"graph"
    assert path.with_name("model.onnx_data").read_bytes() == b"external"


def test_a_file_that_is_not_there_names_those_that_are(fetching: Fetching) -> None:
    with pytest.raises(ModelFileError, match="`org/name` has no file `onnx/other.onnx`") as caught:
        fetching.call("data.hub_file", repo="org/name", file="onnx/other.onnx")
    assert caught.value.hint == "it has `onnx/model.onnx`"


def test_what_the_hub_refuses_is_one_error_each(fetching: Fetching) -> None:
    with pytest.raises(UnavailableError, match="`org/gated` is gated") as gated:
        fetching.call("data.hub_model", repo="org/gated")
    assert "hf auth login" in (gated.value.hint or "")
    with pytest.raises(ModelFileError, match="`org/missing` was not found on this machine or on the hub"):
        fetching.call("data.hub_model", repo="org/missing")
    with pytest.raises(ModelFileError, match="`org/name` has no revision `no-such`"):
        fetching.call("data.hub_model", repo="org/name", revision="no-such")


def test_offline_without_a_cached_model_says_so(fetching: Fetching) -> None:
    with pytest.raises(UnavailableError, match="is not in the hub's cache on this machine") as caught:
        fetching.call("data.hub_model", repo="org/name", offline=True)
    assert "HF_HUB_OFFLINE" in (caught.value.hint or "")


def test_a_file_of_a_data_set_is_data(fetching: Fetching, tmp_path: Path) -> None:
    model = str(model_zoo.saved(model_zoo.relu(), tmp_path / "model.onnx"))

    def described(source: str, **how: Any) -> dict[str, Any]:
        return fetching.call("data.describe", model=model, folder=str(tmp_path), data={"source": source}, **how)

    fetched = described("hf:org/name/data/test.jsonl")
    assert (fetched["samples"], fetched["columns"]) == (2, {"x": "x"})
    assert described("hf:org/name/data/test.jsonl", offline=True)["digest"] == fetched["digest"]
    with pytest.raises(DataError, match="data set `org/name` has no file `other.jsonl`"):
        described("hf:org/name/other.jsonl")
    with pytest.raises(DataError, match="does not name a file"):
        described("hf:org/name")
    with pytest.raises(UnavailableError, match="is not in the hub's cache"):
        described("hf:org/name/more.jsonl", offline=True)


def test_a_hub_that_does_not_answer_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="org/name"):
        Fetching("http://127.0.0.1:9", tmp_path).call("data.hub_model", repo="org/name")


@pytest.mark.parametrize(
    ("repo", "error", "said"),
    [
        ("org/private", UnavailableError, "does not give `org/private` to this user"),
        ("org/gated", UnavailableError, "is gated"),
        ("org/missing", ModelFileError, "was not found"),
        ("org/broken", UnavailableError, "answered with status 500"),
        ("org/silent", UnavailableError, "did not answer within 1 s, 2 times"),
    ],
)
def test_a_hub_that_gives_no_model_is_an_error_that_says_why_and_what_was_awaited(
    fetching: Fetching, repo: str, error: type[Exception], said: str
) -> None:
    told: list[Any] = []
    with pytest.raises(error, match=said) as caught:
        fetching.call("data.hub_model", repo=repo, told=told)
    assert caught.value.hint
    assert {(event["event"], event["repo"], event["endpoint"]) for event in told} == {("hub", repo, fetching.endpoint)}
    assert len(told) <= 2


def test_a_hub_that_is_not_there_is_named_and_offline_nobody_is_asked(tmp_path: Path) -> None:
    told: list[Any] = []
    nowhere = Fetching("http://127.0.0.1:9", tmp_path)
    with pytest.raises(UnavailableError, match="http://127.0.0.1:9 cannot be reached"):
        nowhere.call("data.hub_model", repo="org/name", told=told)
    assert told
    told.clear()
    with pytest.raises(UnavailableError, match="HF_HUB_OFFLINE is set"):
        nowhere.call("data.hub_model", repo="org/name", offline=True, told=told)
    assert not told
