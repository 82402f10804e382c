"""A real server with real models, asked over real connections."""

from __future__ import annotations

import base64
import http.client
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import generation_zoo
import model_zoo
import winml.modelkit as wk
from winml.modelkit import sample
from winml.modelkit.core.schemas import FOLDER as SCHEMAS

WAIT_S = 60.0


class Client:
    """Asks one server."""

    def __init__(self, ready: wk.ServeReady) -> None:
        self.port = int(ready.address.rpartition(":")[2])
        self.token = ready.token

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | dict[str, Any] | None = None,
        *,
        token: str | None = "",
        **headers: str,
    ) -> tuple[int, Any]:
        """Status and body; JSON is read."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        given = self.token if token == "" else token
        if given is not None:
            named["Authorization"] = f"Bearer {given}"
        if isinstance(body, dict):
            body, named = json.dumps(body).encode(), {"Content-Type": "application/json", **named}
        try:
            connection.request(method, path, body, named)
            answer = connection.getresponse()
            content = answer.read()
            is_json = (answer.getheader("Content-Type") or "").startswith("application/json")
            return answer.status, json.loads(content) if is_json else content
        finally:
            connection.close()

    def gauge(self, name: str) -> float:
        _, text = self.ask("GET", "/metrics")
        lines = [line for line in text.decode().splitlines() if line.startswith(f"{name} ")]
        return float(lines[0].split()[1])

    def send(self, content: bytes) -> bytes:
        """Raw bytes, and everything that comes back."""
        with socket.create_connection(("127.0.0.1", self.port), WAIT_S) as connection:
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            found = bytearray()
            while piece := connection.recv(65536):
                found += piece
        return bytes(found)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture(scope="module")
def digits() -> Iterator[Client]:
    with wk.serve(sample.MODEL, port=0, target="cpu", task="image-classification", max_body=200_000) as ready:
        yield Client(ready)


@pytest.fixture(scope="module")
def image() -> np.ndarray:
    found: np.ndarray = np.load(sample.TEST)["image"][:1]
    return found


@pytest.fixture(scope="module")
def logits(image: np.ndarray) -> np.ndarray:
    found: np.ndarray = onnxruntime.InferenceSession(str(sample.MODEL)).run(None, {"image": image})[0]
    return found


def npz(**arrays: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]  # names are those of inputs
    return stream.getvalue()


def test_arrays_are_answered_as_json_and_as_a_file(digits: Client, image: np.ndarray, logits: np.ndarray) -> None:
    status, by_json = digits.ask("POST", "/predict", {"inputs": {"image": image.tolist()}})
    assert status == 200
    np.testing.assert_allclose(by_json["values"]["logits"], logits, rtol=1e-5)
    assert by_json["answer"]["labels"][0]["number"] == int(logits.argmax())
    status, by_file = digits.ask("POST", "/predict", npz(image=image), Content_Type="application/x-npz")
    assert (status, by_file["answer"]) == (200, by_json["answer"])
    status, content = digits.ask(
        "POST", "/predict", npz(image=image), Content_Type="application/x-npz", Accept="application/x-npz"
    )
    assert status == 200
    np.testing.assert_allclose(np.load(io.BytesIO(content))["logits"], logits, rtol=1e-5)
    status, short = digits.ask("POST", "/predict?values=false", {"inputs": {"image": image.tolist()}})
    assert status == 200
    assert "values" not in short


def test_an_answer_is_what_its_schema_says(digits: Client, image: np.ndarray) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    _, answer = digits.ask("POST", "/predict", {"inputs": {"image": image.tolist()}})
    jsonschema.validate(answer, json.loads((SCHEMAS / "prediction-1.json").read_text("utf-8")))


def test_health_needs_no_token_and_everything_else_does(digits: Client) -> None:
    assert digits.ask("GET", "/health", token=None) == (200, {"status": "ready"})
    for token in (None, "another-token-of-some-length"):
        status, answer = digits.ask("GET", "/metadata", token=token)
        assert (status, answer["error"]["code"]) == (401, "token-needed")
    status, found = digits.ask("GET", "/metadata")
    assert (status, found["model"], found["target"]) == (200, "digits.onnx", "cpu")
    assert found["placement"]["nodes"] == {"CPUExecutionProvider": 12}


def test_another_host_and_pages_of_others_are_refused(digits: Client) -> None:
    assert digits.ask("GET", "/metadata", Host="example.com")[0] == 421
    assert digits.ask("GET", "/metadata", Origin="https://example.com")[0] == 403
    assert digits.ask("GET", "/metadata", Sec_Fetch_Site="cross-site")[0] == 403


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status", "words"),
    [
        ("GET", "/nothing", None, {}, 404, "nothing at this address"),
        ("GET", "/predict", None, {}, 405, "takes POST"),
        ("POST", "/predict", b"", {"Content-Type": "application/json"}, 400, "empty"),
        ("POST", "/predict", b"{", {"Content-Type": "application/json"}, 400, "not JSON"),
        ("POST", "/predict", b"[1]", {"Content-Type": "application/json"}, 400, "JSON object"),
        ("POST", "/predict", b'{"inputs": {"x": [1]}}', {"Content-Type": "application/json"}, 400, "no input `x`"),
        ("POST", "/predict", b'{"inputs": {"image": [[1], 2]}}', {"Content-Type": "application/json"}, 400, "array"),
        ("POST", "/predict", b'{"inputs": {"image": [1]}}', {"Content-Type": "application/json"}, 400, "shape"),
        ("POST", "/predict", b'{"inputs": {"image": [NaN]}}', {"Content-Type": "application/json"}, 400, "not JSON"),
        ("POST", "/predict", b'{"inputs": {"image": [1e999]}}', {"Content-Type": "application/json"}, 400, "too large"),
        ("POST", "/predict", b"[" * 100_000, {"Content-Type": "application/json"}, 400, "nested too deeply"),
        ("POST", "/predict", b'{"imag": "x"}', {"Content-Type": "application/json"}, 400, "unknown key"),
        ("POST", "/predict", b'{"image": "?"}', {"Content-Type": "application/json"}, 400, "base64"),
        ("POST", "/predict", b"PK\x03\x04", {"Content-Type": "application/x-npz"}, 400, "not an .npz file"),
        ("POST", "/predict", b"x", {"Content-Type": "image/png"}, 400, "image processor"),
        ("POST", "/predict", b"x", {"Content-Type": "video/mp4"}, 415, "not taken"),
        ("POST", "/predict", b"\xff\xfe", {"Content-Type": "text/plain"}, 400, "UTF-8"),
        ("POST", "/predict", b"x" * 200_001, {"Content-Type": "text/plain"}, 413, "more than 200000"),
        ("POST", "/v1/completions", b"{}", {"Content-Type": "application/json"}, 404, "does not continue texts"),
    ],
)
def test_requests_that_are_wrong_are_refused_with_the_reason(
    digits: Client, method: str, path: str, body: bytes | None, headers: dict[str, str], status: int, words: str
) -> None:
    found, answer = digits.ask(method, path, body, **{name.replace("-", "_"): value for name, value in headers.items()})
    assert found == status
    assert answer["ok"] is False
    assert words in answer["error"]["message"]
    assert "winml-serve-" not in answer["error"]["message"]


def test_malformed_heads_are_refused(digits: Client) -> None:
    host = f"Host: 127.0.0.1:{digits.port}\r\n".encode()
    for head, status in (
        (b"nonsense\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\n" + host + host + b"\r\n", 400),
        (b"GET /health HTTP/1.1\r\n" + host + b"bad header\r\n\r\n", 400),
        (b"POST /predict HTTP/1.1\r\n" + host + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST /predict HTTP/1.1\r\n" + host + b"Content-Length: -1\r\n\r\n", 400),
        (b"POST /predict HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n", 411),
        (b"POST /predict HTTP/1.1\r\n" + host + b"Content-Length: 4, 4\r\n\r\n", 400),
        (b"POST /predict HTTP/1.1\r\n" + host + b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (b"POST /predict HTTP/1.1\r\n" + host + b"Transfer-Encoding : chunked\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\n" + host + b"X: 1\r\n Content-Length: 5\r\n\r\n", 400),
        (b"GET http://example.com/health HTTP/1.1\r\n" + host + b"\r\n", 400),
        (b"GET /health HTTP/1.1\r\n" + host + b"X: " + b"x" * 20_000 + b"\r\n\r\n", 431),
        (b"GET /health HTTP/1.1\r\n\r\n", 421),
    ):
        assert digits.send(head).startswith(b"HTTP/1.1 %d " % status), head[:60]
    assert digits.ask("GET", "/health")[0] == 200


def test_a_connection_answers_several_requests(digits: Client) -> None:
    head = f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{digits.port}\r\n\r\n".encode()
    assert digits.send(head * 3).count(b"HTTP/1.1 200 OK") == 3


def test_a_process_that_dies_is_one_failed_answer_and_a_new_process(image: np.ndarray) -> None:
    with wk.serve(sample.MODEL, port=0, target="cpu", task="image-classification") as ready:
        client = Client(ready)
        import psutil

        asked = {"inputs": {"image": image.tolist()}}
        assert client.ask("POST", "/predict", asked)[0] == 200
        workers = [one for one in psutil.Process().children(recursive=True) if "program.py" in " ".join(one.cmdline())]
        newest = max(workers, key=lambda one: one.create_time())
        newest.kill()
        status, answer = client.ask("POST", "/predict", asked)
        assert (status, answer["error"]["code"]) == (500, "worker-crashed")
        assert client.ask("POST", "/predict", asked)[0] == 200
        assert client.gauge("winml_worker_restarts_total") == 1


def slow_model(path: Path) -> Path:
    """Counts as far as it is told, which takes as long as wanted."""
    model = model_zoo.text_model(
        """g (int64 trips, float[1] x) => (float[1] y)
        { cond = Constant <value = bool {1}> ()
          y = Loop (trips, cond, x) <body = b (int64 i, bool keep_in, float[1] v) => (bool keep, float[1] w)
          { keep = Identity (keep_in)  w = Add (v, v) }> }"""
    )
    onnx.checker.check_model(model)
    return model_zoo.saved(model, path)


def count_to(trips: int) -> dict[str, Any]:
    return {"inputs": {"trips": trips, "x": [0.0]}}


def test_too_many_requests_are_refused_and_a_slow_one_ends_in_time(tmp_path: Path) -> None:
    model = slow_model(tmp_path / "slow.onnx")
    with wk.serve(model, port=0, target="cpu", queue=0, timeout=1.0) as ready:
        client, found = Client(ready), []
        thread = threading.Thread(target=lambda: found.append(client.ask("POST", "/predict", count_to(2**50))))
        thread.start()
        wait_for(lambda: client.gauge("winml_requests_running") == 1)
        status, answer = client.ask("POST", "/predict", count_to(1))
        assert (status, answer["error"]["code"]) == (429, "too-many-requests")
        # A large body is refused before it is sent.
        head = f"POST /predict HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nAuthorization: Bearer {ready.token}\r\n"
        assert client.send(f"{head}Content-Length: 1000000\r\n\r\n".encode()).startswith(b"HTTP/1.1 429 ")
        thread.join()
        assert (found[0][0], found[0][1]["error"]["code"]) == (504, "worker-timeout")
        wait_for(lambda: client.ask("GET", "/health")[0] == 200)
        assert client.ask("POST", "/predict", count_to(1))[0] == 200


def test_an_answer_that_was_begun_is_finished_when_the_server_stops(tmp_path: Path) -> None:
    model, found, refused = slow_model(tmp_path / "slow.onnx"), [], []
    with wk.serve(model, port=0, target="cpu", stop_timeout=WAIT_S) as ready:
        client = Client(ready)
        asked = [
            threading.Thread(target=lambda: found.append(client.ask("POST", "/predict", count_to(500_000))))
            for _ in range(3)
        ]
        for thread in asked:
            thread.start()
        wait_for(lambda: client.gauge("winml_requests_waiting") == 2)
    for thread in asked:
        thread.join()
    assert [status for status, _ in found] == [200, 200, 200]
    try:
        refused.append(client.ask("GET", "/health")[0])
    except OSError:
        refused.append(0)
    assert refused == [0]


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    table = generation_zoo.chain(who="wrote", wrote="it", it="did", did="ada", ada="[SEP]")
    folder = generation_zoo.decoder(tmp_path_factory.mktemp("writer") / "writer", table, drift=0.0)
    (folder / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }} {% endfor %}")
    with wk.serve(folder, port=0, target="cpu", runtime="onnxruntime") as ready:
        yield Client(ready)


def read_events(content: bytes) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in content.decode().splitlines() if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_completions_are_those_of_openai(writer: Client) -> None:
    status, answer = writer.ask("POST", "/v1/completions", {"prompt": "who", "max_tokens": 8, "temperature": 0.7})
    assert status == 200
    assert (answer["choices"][0]["text"], answer["choices"][0]["finish_reason"]) == ("wrote it did ada", "stop")
    assert answer["usage"] == {"prompt_tokens": 2, "completion_tokens": 5, "total_tokens": 7}
    assert answer["winml"]["ignored"] == ["temperature"]
    asked = {"messages": [{"role": "user", "content": "who"}], "max_tokens": 2}
    status, answer = writer.ask("POST", "/v1/chat/completions", asked)
    assert (status, answer["choices"][0]["message"]["content"]) == (200, "wrote it")
    assert answer["choices"][0]["finish_reason"] == "length"
    assert writer.ask("GET", "/v1/models")[1]["data"][0]["id"] == "writer"
    status, answer = writer.ask("POST", "/predict", {"prompt": "who"})
    assert (status, answer["answer"]["text"]) == (200, "wrote it did ada")


def test_a_stream_has_the_text_in_pieces(writer: Client) -> None:
    asked = {"prompt": "who", "max_tokens": 8, "stream": True, "stream_options": {"include_usage": True}}
    status, content = writer.ask("POST", "/v1/completions", asked)
    events = read_events(content)
    assert status == 200
    texts = [event["choices"][0]["text"] for event in events[:-1]]
    assert "".join(texts) == "wrote it did ada"
    assert len(texts) == 5
    assert events[-2]["choices"][0]["finish_reason"] == "stop"
    assert events[-1]["usage"]["completion_tokens"] == 5
    chat = {"messages": [{"role": "user", "content": "who"}], "stream": True, "stop": " did"}
    events = read_events(writer.ask("POST", "/v1/chat/completions", chat)[1])
    assert events[0]["choices"][0]["delta"]["role"] == "assistant"
    assert "".join(event["choices"][0]["delta"].get("content", "") for event in events) == "wrote it"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, "`prompt` must be"),
        ({"prompt": "who", "n": 2}, "`n` must be 1"),
        ({"prompt": "who", "logprobs": 3}, "`logprobs` is not supported"),
        ({"prompt": "who", "max_tokens": 0}, "`max_tokens`"),
        ({"prompt": "who", "max_tokens": 10_000}, "more than the model's"),
        ({"prompt": "who", "max_tokens": 10_000, "stream": True}, "more than the model's"),
        ({"prompt": "who", "stop": ["a"] * 5}, "`stop`"),
        ({"prompt": "who", "frobnicate": 1}, "`frobnicate` is not known"),
    ],
)
def test_wrong_prompts_are_refused(writer: Client, asked: dict[str, Any], words: str) -> None:
    status, answer = writer.ask("POST", "/v1/completions", asked)
    assert status == 400
    assert words in answer["error"]["message"]


def test_an_image_of_a_request_is_base64(tmp_path: Path) -> None:
    import task_zoo

    case = task_zoo._object_detection(tmp_path)
    content = (tmp_path / "1.png").read_bytes()
    with wk.serve(case.model, port=0, target="cpu", task="object-detection") as ready:
        client = Client(ready)
        encoded = base64.b64encode(content).decode()
        status, by_json = client.ask("POST", "/predict", {"image": encoded})
        assert status == 200
        status, by_body = client.ask("POST", "/predict", content, Content_Type="image/png")
        assert (status, by_body) == (200, by_json)
        assert by_json["answer"]["kind"] == "boxes"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM that a process could handle")
def test_the_command_ends_by_sigterm_with_0() -> None:
    argv = [sys.executable, "-m", "winml.modelkit", "serve", "--sample", "--target", "cpu", "--port", "0", "--json"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        text = ""
        while "\n}" not in text:
            line = process.stdout.readline()
            assert line, process.stderr and process.stderr.read()
            text += line
        ready = json.loads(text)
        assert ready["schema"] == "winml/serve/1"
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(WAIT_S) == 0
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_a_token_of_the_environment_has_a_least_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINML_SERVE_TOKEN", "short")
    with pytest.raises(wk.ModelkitError, match="at least 16"), wk.serve(sample.MODEL, port=0, target="cpu"):
        pass
