"""What compiling buys and costs, as ratios taken in one run with alternating processes.

    python benchmarks/compile/run.py [--pairs 15] [--json FILE]

- opening: seconds to open a compiled model over seconds to open its source on the same target, each in a fresh process
  that has opened another model before, so that loading the EP's library is in neither;
- sharing: bytes of one binary for a net at two input sizes, against two binaries;
- the cache: `winml compile` of the same model a second time over the first.

Times on the QNN simulator are those of the device's compiler and loader on this machine's CPU; the compiler is the same
code as for a device, the loader is not.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "verdicts")]

import models  # noqa: E402 - found by the line above
import record  # noqa: E402
import startup  # noqa: E402
from intervals import interval_of_median  # noqa: E402

import model_zoo  # noqa: E402

OPEN = """
import sys, time
from winml.modelkit.core.target import Target
from winml.modelkit.session.session import WinMLSession
target = Target("qnn", "npu", simulated=True)
with WinMLSession(sys.argv[1], target=target):
    started = time.perf_counter()
    WinMLSession(sys.argv[2], target=target).close()
    print(time.perf_counter() - started, file=sys.stderr)
"""


def opening_s(warm: Path, model: Path) -> float:
    """Seconds to open a model in a fresh process, after another one."""
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(warm), str(model)], capture_output=True, text=True, check=True
    )
    return float(done.stderr.split()[-1])


def compile_models(folder: Path, cache: Path, *words: str | Path) -> dict[str, object]:
    """The result of `winml compile` into a folder."""
    command = [*startup.WINML, "compile", "--target", "qnn/npu", "--output-dir", str(folder), "--json", "--overwrite"]
    environment = {**os.environ, "WINML_CACHE": str(cache)}
    done = subprocess.run([*command, *map(str, words)], capture_output=True, text=True, env=environment, check=True)
    value: dict[str, object] = json.loads(done.stdout)
    return value


def openings(folder: Path, pairs: int) -> Iterator[tuple[str, list[float]]]:
    warm = model_zoo.saved(model_zoo.conv_net(), folder / "warm.onnx")
    sources = {kind: models.saved(kind, 0, folder) for kind in ("cnn", "encoder")}
    sources["wide cnn"] = model_zoo.saved(model_zoo.conv_net(channels=384, size=32), folder / "wide.onnx")
    for name, source in sources.items():
        for way in ("separate", "embed"):
            out = folder / f"{source.stem}_{way}"
            compile_models(out, folder / "cache", "-m", source, *(["--embed"] if way == "embed" else []))
            compiled = out / f"{source.stem}_ctx.onnx"
            found = startup.ratios(lambda c=compiled: opening_s(warm, c), lambda s=source: opening_s(warm, s), pairs)
            yield f"opening {name}, compiled ({way}) / source", found


def shared_bytes(folder: Path) -> Iterator[tuple[str, list[float]]]:
    for channels in (64, 192, 384):
        words: list[str | Path] = []
        for size in (16, 32):
            path = model_zoo.saved(
                model_zoo.conv_net(channels=channels, size=size), folder / f"c{channels}_{size}.onnx"
            )
            words += ["-m", path]
        for compiler in ("ort", "ort_jit"):
            value = compile_models(folder / f"{channels}{compiler}", folder / "cache", *words, "--compiler", compiler)
            found = value["sharing"]
            assert isinstance(found, dict)
            name = f"bytes shared / alone, {channels} channels at 16 and 32 px, {compiler}"
            yield name, [found["bytes"] / found["bytes_alone"]]


def cached(folder: Path, pairs: int) -> Iterator[tuple[str, list[float]]]:
    source = models.saved("encoder", 0, folder)
    command = [*startup.WINML, "compile", "--target", "qnn/npu", "--overwrite", "-m", str(source)]
    os.environ["WINML_CACHE"] = str(folder / "cache")
    found = startup.ratios(
        lambda: startup.cost([*command, "--output-dir", str(folder / "hit")])["wall"],
        lambda: startup.cost([*command, "--output-dir", str(folder / "miss"), "--rebuild"])["wall"],
        max(5, pairs // 3),
    )
    yield "winml compile encoder, cache hit / compiled and validated", found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    command = f"python benchmarks/compile/run.py --pairs {options.pairs}"
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for rows in (openings(folder, options.pairs), shared_bytes(folder), cached(folder, options.pairs)):
            for label, values in rows:
                middle, low, high = interval_of_median(values)
                spread = f"  ({low:.3f} … {high:.3f}, n={len(values)})" if len(values) > 1 else ""
                print(f"{label:65s} {middle:7.3f}{spread}", flush=True)
                results.append((label, values))
                if options.json:  # after every row: a run takes long, and what is measured should not be lost
                    record.write_results(options.json, command, results, conditions={"device": "simulated"})
    print(f"load average {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
