"""`winml serve` under load: throughput beside a bare onnxruntime loop, p99, errors and memory.

    python benchmarks/serve.py [--seconds 60] [--concurrency 1,4,16,64] [--json benchmarks/results/serve.json]

Needs `wrk` (Debian: `apt-get install wrk`); all traffic stays on 127.0.0.1. The model is the sample; the server and
the bare loop both run it with one thread. Each concurrency has the whole time, with the bare loop before and after it.
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
import onnxruntime

import winml.modelkit as wk
from winml.modelkit import sample

sys.path.insert(0, str(Path(__file__).parent))
from record import write_results

_LUA = """
wrk.method = "POST"
wrk.headers["Authorization"] = "Bearer {token}"
wrk.headers["Content-Type"] = "application/x-npz"
wrk.headers["Accept"] = "application/json"
local file = io.open("{body}", "rb")
wrk.body = file:read("*all")
file:close()
"""
_UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


def bare_rate(seconds: float, image: np.ndarray) -> float:
    """Runs per second of the model alone, in this process."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(sample.MODEL), options, providers=["CPUExecutionProvider"])
    count, end = 0, time.perf_counter() + seconds
    start = time.perf_counter()
    while time.perf_counter() < end:
        session.run(None, {"image": image})
        count += 1
    return count / (time.perf_counter() - start)


def gauge(ready: wk.ServeReady, name: str) -> float:
    request = urllib.request.Request(f"{ready.address}/metrics", headers={"Authorization": f"Bearer {ready.token}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        text = answer.read().decode()
    return float(next(line for line in text.splitlines() if line.startswith(f"{name} ")).split()[1])


def load(ready: wk.ServeReady, script: Path, connections: int, seconds: int) -> tuple[float, float, int]:
    """Answers per second, p99 in ms and errors, as wrk counts them."""
    argv = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "--latency", "-s", str(script)]
    text = subprocess.run([*argv, f"{ready.address}/predict"], capture_output=True, text=True, check=True).stdout
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1])  # type: ignore[index]  # wrk always says
    number, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", text).groups()  # type: ignore[union-attr]
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    broken = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    errors = (int(bad[1]) if bad else 0) + (sum(map(int, broken.groups())) if broken else 0)
    return rate, float(number) * _UNITS[unit], errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--concurrency", default="1,4,16,64")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("wrk is not installed: `apt-get install wrk`")
    image = np.load(sample.TEST)["image"][:1]
    stream = io.BytesIO()
    np.savez(stream, image=image)
    rows: list[tuple[str, list[float]]] = []
    with (
        tempfile.TemporaryDirectory() as name,
        wk.serve(sample.MODEL, port=0, target="cpu", threads=1, queue=256) as ready,
    ):
        body, script = Path(name) / "body.npz", Path(name) / "post.lua"
        body.write_bytes(stream.getvalue())
        script.write_text(_LUA.format(token=ready.token, body=body))
        load(ready, script, 1, 2)  # warm
        for connections in map(int, given.concurrency.split(",")):
            bare = bare_rate(3, image)
            before = [gauge(ready, f"winml_{one}_memory_bytes") for one in ("worker", "server")]
            rate, p99, errors = load(ready, script, connections, given.seconds)
            bare = (bare + bare_rate(3, image)) / 2
            after = [gauge(ready, f"winml_{one}_memory_bytes") for one in ("worker", "server")]
            grown = (sum(after) - sum(before)) / 2**20
            print(
                f"{connections} connections: {rate:.0f}/s, {rate / bare:.2f} of {bare:.0f}/s bare, p99 {p99:.1f} ms, "
                f"{errors} errors, memory {sum(after) / 2**20:.0f} MiB ({grown:+.1f})",
                flush=True,
            )
            at = f"{connections} connections"
            rows += [
                (f"{at}: answers per second", [rate]),
                (f"{at}: answers per second, ratio to a bare loop", [rate / bare]),
                (f"{at}: p99 ms", [p99]),
                (f"{at}: errors", [errors]),
                (f"{at}: memory grown MiB", [grown]),
            ]
    if given.json is not None:
        command = f"python benchmarks/serve.py --seconds {given.seconds} --concurrency {given.concurrency}"
        write_results(given.json, command, rows)


if __name__ == "__main__":
    main()
