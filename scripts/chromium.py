"""A headless Chromium that is talked to through two pipes: no driver, no port, no package."""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
MOST_HEIGHT = 16_000
"""Pixels that a picture may be high: WebP ends at 16,383."""
PATIENCE_S = 120
"""How long an answer may take on a busy machine; only then is the browser taken for dead."""


@functools.cache
def find_chromium() -> str | None:
    """The program; Debian's package is installed where that can be done. None when there is none."""
    if sys.platform == "win32":
        return None
    found = _installed()
    if found is not None or os.environ.get("WINML_TEST_OFFLINE") == "1":
        return found
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return None
    with FileLock(Path(tempfile.gettempdir()) / "winml-test-chromium.lock"):
        if _installed() is None:
            install = ["apt-get", "install", "-y", "--no-install-recommends", "chromium"]
            if _runs(install) or (_runs(["apt-get", "update"]) and _runs(install)):
                return _installed()
    return _installed()


def _installed() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def _runs(words: list[str]) -> bool:
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(words, capture_output=True, timeout=900, env=env).returncode == 0


class Chromium:
    """The process. Commands are those of the Chrome DevTools Protocol, each answered before the next is sent."""

    def __init__(self, program: str, profile: Path) -> None:
        to_it, from_us = os.pipe()
        to_us, from_it = os.pipe()

        def hand_over() -> None:
            # The browser reads commands from 3 and writes answers to 4; a pipe may have one of these numbers already.
            read, write = os.dup(to_it), os.dup(from_it)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self._process = subprocess.Popen(
            [
                program, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-sync", "--mute-audio",
                f"--user-data-dir={profile}", "about:blank",
            ],
            pass_fds=(3, 4),
            preexec_fn=hand_over,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_it)
        os.close(from_it)
        self._out = os.fdopen(from_us, "wb", buffering=0)
        self._in = os.fdopen(to_us, "rb", buffering=0)
        self._buffer = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def send(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """The answer to a command; events that come before it are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        self._out.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def wait_for(self, method: str, session: str) -> dict[str, Any]:
        """The next event of a name, and of a page."""
        while True:
            for number, event in enumerate(self.events):
                if event.get("method") == method and event.get("sessionId") == session:
                    return self.events.pop(number)
            self.events.append(self._receive())

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], PATIENCE_S)
            chunk = self._in.read(1 << 16) if ready else b""
            if not chunk:
                raise AssertionError("the browser has ended, or does not answer")
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def close(self) -> None:
        with contextlib.suppress(AssertionError, OSError):
            self.send("Browser.close")
        self._out.close()
        self._in.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    @contextlib.contextmanager
    def page(self, address: str, *, width: int = 1100, scheme: str = "light", media: str = "screen") -> Iterator[Page]:
        """An open page that has loaded."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.send(f"{domain}.enable")
        page.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        page.send(
            "Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}]
        )
        page.go(address)
        try:
            yield page
        finally:
            self.send("Target.closeTarget", targetId=target)


class Page:
    """A tab."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser = browser
        self._session = session

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.send(method, self._session, **parameters)

    def go(self, address: str) -> None:
        failure = self.send("Page.navigate", url=address).get("errorText")
        assert failure is None, failure
        self._browser.wait_for("Page.loadEventFired", self._session)

    def run(self, script: str) -> Any:
        """The value of a script, which may be a promise."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"]["exception"].get("description", answer))
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """A key, as `Tab` or `ArrowRight`."""
        codes = {"Tab": 9, "Escape": 27, "ArrowRight": 39, "ArrowLeft": 37, "Enter": 13}
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key])

    @property
    def complaints(self) -> list[str]:
        """Errors of the console, refusals of the policy and requests to elsewhere, since the page was opened."""
        self.run("1")  # events that are on their way come first
        found = []
        for event in self._browser.events:
            if event.get("sessionId") != self._session:
                continue
            said = event.get("params", {})
            match event.get("method"):
                case "Log.entryAdded":
                    found.append(said["entry"]["text"])
                case "Runtime.exceptionThrown":
                    found.append(said["exceptionDetails"]["text"])
                case "Runtime.consoleAPICalled" if said["type"] in ("error", "warning", "assert"):
                    found.append(str(said["args"]))
        return found

    @property
    def requests(self) -> list[str]:
        """Addresses that were asked for."""
        return [
            event["params"]["request"]["url"]
            for event in self._browser.events
            if event.get("sessionId") == self._session and event.get("method") == "Network.requestWillBeSent"
        ]

    def screenshot(self, place: Path, height: int | None = None) -> None:
        """The page as WebP, all of it or its first pixels."""
        whole = self.send("Page.getLayoutMetrics")["cssContentSize"]
        shown = min(height or whole["height"], whole["height"], MOST_HEIGHT)
        clip = {"x": 0, "y": 0, "width": whole["width"], "height": shown}
        shot = self.send(
            "Page.captureScreenshot", format="webp", quality=60, captureBeyondViewport=True, clip={**clip, "scale": 1}
        )
        place.write_bytes(base64.b64decode(shot["data"]))


@contextlib.contextmanager
def chromium() -> Iterator[Chromium]:
    """A browser with an empty profile, which is gone afterwards."""
    program = find_chromium()
    assert program is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Chromium(program, Path(profile))
        try:
            yield browser
        finally:
            browser.close()
