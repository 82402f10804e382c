"""Clusters on this machine, for tests: real schedulers and nodes in processes of their own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from ctrl_c import OWN_CONSOLE, press_ctrl_c
from winml.modelkit import __version__
from winml.modelkit.core.values import to_json
from winml.modelkit.dispatch.cluster import Cluster, Node

STARTING_S = 120.0

_NODE = """
import json, sys
from pathlib import Path
from winml.modelkit.core.values import read
from winml.modelkit.dispatch.cluster import Cluster, Node
from winml.modelkit.dispatch.dask_node import join
from winml.modelkit.dispatch.events import NodeJoined

def tell(event):
    if isinstance(event, NodeJoined):
        print("joined", file=sys.stderr, flush=True)

join(Cluster.parse(sys.argv[1]), read(Node, json.loads(sys.argv[2])), Path(sys.argv[3]), tell)
"""


def gone(pid: int) -> bool:
    """Whether a process ended, or is a zombie that only waits for its parent."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.05)
    return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Process:
    """A process that says on stderr when it is ready."""

    def __init__(self, argv: list[str], log: Path, env: Mapping[str, str], ready: str) -> None:
        self.log = log
        self._argv, self._env, self._ready = argv, {**os.environ, **env}, ready
        self.start()

    def start(self) -> None:
        with self.log.open("wb") as stream:
            self.process = subprocess.Popen(
                self._argv, env=self._env, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, **OWN_CONSOLE
            )
        self.wait_for(self._ready)

    def wait_for(self, word: str) -> None:
        deadline = time.monotonic() + STARTING_S
        while word not in self.text:
            assert self.process.poll() is None, self.text
            assert time.monotonic() < deadline, self.text
            time.sleep(0.05)

    @property
    def text(self) -> str:
        return self.log.read_text("utf-8", "replace")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """End it politely; its exit code."""
        if sys.platform == "win32":  # there is no signal for it, and `terminate` is a kill
            press_ctrl_c(self.process)
        else:
            self.process.terminate()
        return self.process.wait(60)


class ClusterHere:
    """A scheduler on the loopback interface and nodes, each with a cache and folders of its own."""

    def __init__(self, folder: Path, tls: tuple[str, ...] = ()) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.cluster = Cluster("127.0.0.1", free_port())
        self.tls = tls
        self.nodes: dict[str, Process] = {}
        self.scheduler = self._started("scheduler", self._winml("--scheduler"), {}, "listening at")

    def _winml(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "winml.modelkit", "node", "--cluster", str(self.cluster), *self.tls, *words]

    def _started(self, name: str, argv: list[str], env: Mapping[str, str], ready: str) -> Process:
        return Process(argv, self.folder / f"{name}.log", env, ready)

    def environment(self, name: str) -> dict[str, str]:
        """What keeps a node apart from the others and from whoever runs the tests."""
        own = self.folder / name
        (own / "tmp").mkdir(parents=True, exist_ok=True)
        return {"WINML_CACHE": str(own / "cache"), "TMPDIR": str(own / "tmp")}

    def join(self, name: str, *words: str) -> Process:
        """A node as a user starts it."""
        argv = self._winml("--name", name, *words)
        self.nodes[name] = self._started(name, argv, self.environment(name), "joined")
        return self.nodes[name]

    def join_with(self, name: str, slots: int, has: Mapping[str, int], **about: Any) -> Process:
        """A node with things that no real machine has."""
        node = Node(name, "here", __version__, slots, has, (), {"cores": 2})
        value = json.dumps({**to_json(node), **about})
        argv = [sys.executable, "-c", _NODE, str(self.cluster), value, str(self.folder / name / "notes")]
        started = self._started(name, argv, self.environment(name), "joined")
        self.nodes[name] = started
        return started

    def close(self) -> None:
        for process in (*self.nodes.values(), self.scheduler):
            if process.process.poll() is None:
                process.stop()
