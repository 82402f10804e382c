"""Fixtures of all tests, and the reasons why some cannot run on a machine."""

from __future__ import annotations

import functools
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import chromium
import hypothesis
import pytest

import cluster_zoo
import fake_sdk
import feed_zoo
import hf_zoo
import model_zoo
import sandbox_zoo

# How long an example takes says something about the machine, which is shared, and nothing about the code.
hypothesis.settings.register_profile("shared", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("shared")


# Hundreds of processes that tests start would compile the package each; images for containers often switch it off.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        _use_own_cache(config)
    _heed_ctrl_c()


def _use_own_cache(config: pytest.Config) -> None:
    """Let the cache be one of this run, which its two workers inherit: that of whoever runs the tests is no part."""
    folder = tempfile.mkdtemp(prefix="winml-tests-cache-")
    config.add_cleanup(functools.partial(shutil.rmtree, folder, ignore_errors=True))
    os.environ["WINML_CACHE"] = folder


def _heed_ctrl_c() -> None:
    """Give Ctrl-C its meaning back for us and what tests start, where whoever started us has set it to be ignored.

    nohup, background jobs and many CI systems do so, and a process hands it on to those that it starts.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Name a long value by its size: pytest puts names into an environment variable, which Windows ends at 32 KB."""
    return f"{argname}-of-{len(val)}" if isinstance(val, str | bytes) and len(val) > 1000 else None


def _reason(item: pytest.Item) -> str | None:
    if item.get_closest_marker("npu") and os.environ.get("WINML_TEST_NPU") != "1":
        return "needs a real NPU; set WINML_TEST_NPU=1"
    if item.get_closest_marker("slow") and os.environ.get("WINML_TEST_ALL") != "1":
        return "takes long; `make test-all` runs it"
    if item.get_closest_marker("package_index") and os.environ.get("WINML_TEST_OFFLINE") == "1":
        return "needs a package index; WINML_TEST_OFFLINE=1 is set"
    if item.get_closest_marker("registry") and feed_zoo.docker_registry() is None:
        return "docker-registry is not here and cannot be fetched (apt-get download docker-registry)"
    if item.get_closest_marker("skopeo") and feed_zoo.skopeo() is None:
        return "skopeo is not here and cannot be fetched (apt-get download skopeo)"
    if item.get_closest_marker("chromium") and chromium.find_chromium() is None:
        return "chromium is not here and cannot be installed (apt-get install chromium)"
    if item.get_closest_marker("mkdocs") and not _has_mkdocs():
        return "mkdocs is not installed (`make docs` sets it up)"
    if item.get_closest_marker("git") and shutil.which("git") is None:
        return "git is not installed"
    return _package_reason(item) or _system_reason(item) or _sandbox_reason(item)


def _has_mkdocs() -> bool:
    """Whether mkdocs is here, or in the environment that `make docs` sets up."""
    return find_spec("mkdocs") is not None or (Path(__file__).parents[1] / "build/docs-venv/bin/python").is_file()


def _package_reason(item: pytest.Item) -> str | None:
    if item.get_closest_marker("hf") and (find_spec("torch") is None or find_spec("transformers") is None):
        return "torch or transformers is not installed (pip install '.[hf]')"
    if item.get_closest_marker("qnn") and find_spec("onnxruntime_qnn") is None:
        return "the package onnxruntime-qnn is not installed (pip install '.[qnn]')"
    if item.get_closest_marker("parquet") and find_spec("pyarrow") is None:
        return "the package pyarrow is not installed (pip install '.[parquet]')"
    if item.get_closest_marker("dask") and find_spec("distributed") is None:
        return "the package distributed is not installed (pip install '.[dask]')"
    if item.get_closest_marker("pandas") and find_spec("pandas") is None:
        return "pandas is not installed (pip install pandas)"
    if item.get_closest_marker("notebooks") and (find_spec("nbclient") is None or find_spec("ipykernel") is None):
        return "nbclient or ipykernel is not installed (pip install '.[notebooks]')"
    return None


def _system_reason(item: pytest.Item) -> str | None:
    if item.get_closest_marker("windows") and sys.platform != "win32":
        return "needs Windows"
    if (marker := item.get_closest_marker("posix")) and sys.platform == "win32":
        return f"not on Windows: {marker.args[0]}"
    if (marker := item.get_closest_marker("not_wine")) and _is_wine():
        return f"not under Wine: {marker.args[0]}"
    if item.get_closest_marker("symlink") and not _makes_symlinks():
        return (
            "symbolic links cannot be made: Windows wants a privilege or the developer mode, Wine only says that it did"
        )
    if (marker := item.get_closest_marker("shell")) and shutil.which(marker.args[0]) is None:
        return f"{marker.args[0]} is not installed (apt-get install {marker.args[0]})"
    if item.get_closest_marker("launcher") and "WINML_TEST_LAUNCHER" not in os.environ:
        return "needs the python.exe of a virtual environment on Windows in WINML_TEST_LAUNCHER"
    return None


@functools.cache
def _makes_symlinks() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        link = Path(folder) / "link"
        try:
            link.symlink_to(folder, target_is_directory=True)
        except OSError:
            return False
        return link.is_symlink()


def _is_wine() -> bool:
    if sys.platform != "win32":
        return False
    import ctypes

    return hasattr(ctypes.WinDLL("ntdll"), "wine_get_version")


def _sandbox_reason(item: pytest.Item) -> str | None:
    if item.get_closest_marker("x86_64") and platform.machine() not in ("x86_64", "AMD64"):
        return f"holds what the kernels of an x86-64 processor compute; this is {platform.machine()}"
    if item.get_closest_marker("haswell") and shutil.which("qemu-x86_64") is None:
        return "needs qemu-x86_64 (apt-get install qemu-user), to be a processor without VNNI"
    if item.get_closest_marker("sandbox") and not sandbox_zoo.works("unshare"):
        return "no sandbox works on this machine: user namespaces are switched off"
    if item.get_closest_marker("bubblewrap") and not sandbox_zoo.works("bwrap"):
        return "bubblewrap is not here and cannot be fetched (apt-get download bubblewrap), or does not work"
    if item.get_closest_marker("nobody") and not sandbox_zoo.nobody_can():
        return "needs root, setpriv and /usr/bin/python3 to become a user without rights"
    return None


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what this machine cannot run; the summary says how many and why."""
    reasons = {item: reason for item in items if (reason := _reason(item)) is not None}
    if reasons:
        config.hook.pytest_deselected(items=list(reasons))
        items[:] = [item for item in items if item not in reasons]
        config.stash[_REASONS] = Counter(reasons.values())
    if hasattr(config, "workerinput"):
        _keep_modules_together(items)
        items.sort(key=_place_in_line)


LONG_GROUPS = (
    "measuring", "hf", "support-hf", "e2e/test_matrix.py", "environments", "support", "cluster", "e2e/test_build.py",
    "e2e/test_documentation.py", "goldens/test_goldens.py", "e2e/test_readme.py", "accuracy/test_mend.py",
    "e2e/test_eval.py", "e2e/test_quantize.py", "api/test_functions.py", "compile",
)  # fmt: skip
"""Tests of a group run on one worker, and files; those that take minutes, longest first."""


def _group(item: pytest.Item) -> str | None:
    marker = item.get_closest_marker("xdist_group")
    return None if marker is None else marker.args[0]


def _keep_modules_together(items: list[pytest.Item]) -> None:
    """Run tests that share a fixture of their module on one worker: each of the two would make it again."""
    for item in items:
        fixtures = getattr(item, "_fixtureinfo").name2fixturedefs.values()  # noqa: B009 - not typed
        module = item.nodeid.partition("::")[0]
        if _group(item) is None and any(d.scope == "module" and d.baseid == module for (*_, d) in fixtures):
            item.add_marker(pytest.mark.xdist_group(module.removeprefix("tests/")))


def _place_in_line(item: pytest.Item) -> int:
    """Long work begins first: the last one would run on one worker while the other has nothing left to do."""
    names = (_group(item), item.nodeid.partition("::")[0].removeprefix("tests/"))
    places = [LONG_GROUPS.index(name) for name in names if name in LONG_GROUPS]
    return min(places, default=len(LONG_GROUPS))


_REASONS = pytest.StashKey[Counter[str]]()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for reason, count in sorted(config.stash.get(_REASONS, Counter[str]()).items()):
        terminalreporter.write_line(f"deselected: {count}: {reason}")


@pytest.fixture(scope="session")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every small model, saved once."""
    folder = tmp_path_factory.mktemp("zoo")
    for name, model in {
        "relu": model_zoo.relu(),
        "conv": model_zoo.conv_net(),
        "fused": model_zoo.conv_net(fused=True),
        "split": model_zoo.split_net(),
        "encoder": model_zoo.encoder(),
        "fpe": model_zoo.divides_int_min(),
        "hang": model_zoo.endless_loop(),
        "folded": model_zoo.crashes_when_folded(),
        "huge": model_zoo.huge_allocation(),
        "embedding": model_zoo.embedding(),
    }.items():
        model_zoo.saved(model, folder / f"{name}.onnx")
    return folder


@pytest.fixture(scope="session")
def hf_folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny model of every Hugging Face family, made in another process: torch stays out of ours."""
    folder = tmp_path_factory.mktemp("hf")
    names = [*hf_zoo.FAMILIES, "vit_gpt2", "llama", "mistral"]
    done = subprocess.run(
        [sys.executable, hf_zoo.__file__, folder, *names], capture_output=True, text=True, timeout=500, check=False,
        env={**os.environ, **hf_zoo.ONE_THREAD},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="session")
def conv_w8a8(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return model_zoo.conv_w8a8(tmp_path_factory.mktemp("w8a8") / "conv_w8a8.onnx")


@pytest.fixture(scope="session")
def sdk(tmp_path_factory: pytest.TempPathFactory, zoo: Path) -> Path:
    """A QAIRT SDK whose generator always hands out the conv net, compiled by the QNN EP."""
    import onnx

    from winml.modelkit.core.measurement import SessionSection
    from winml.modelkit.core.target import Target
    from winml.modelkit.session.compiling import compile_to_file

    folder = tmp_path_factory.mktemp("sdk")
    target = Target("qnn", "npu", simulated=True)
    compile_to_file(zoo / "conv.onnx", folder / "m.onnx", target=target, section=SessionSection(), embed=False)
    context = onnx.load(folder / "m.onnx", load_external_data=False).graph.node[0]
    described = fake_sdk.described(
        context.name,
        [fake_sdk.float_tensor(context.input[0], [1, 3, 16, 16])],
        [fake_sdk.float_tensor(context.output[0], [1, 16])],
    )
    return fake_sdk.make_sdk(folder / "qairt", (folder / "m_qnn.bin").read_bytes(), described)


def _mount(folder: Path, size: str) -> bool:
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mount") is None:
        return False
    folder.mkdir()
    return subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]).returncode == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    folder = tmp_path / "small"
    if not _mount(folder, "1m"):
        pytest.skip("mounting a small file system needs root on Linux")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def no_logins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Logins and the cache of whoever runs the tests are no part of them."""
    monkeypatch.setenv("WINML_CACHE", str(tmp_path / "cache"))
    for name in ("WINML_FEED", "WINML_FEED_USER", "WINML_FEED_PASSWORD", "REGISTRY_AUTH_FILE", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", os.devnull)


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[feed_zoo.RegistryServer]:
    """A registry that anybody may use."""
    server = feed_zoo.RegistryServer(tmp_path_factory.mktemp("registry"))
    yield server
    server.kill()


@pytest.fixture(scope="session")
def two_jobs_and_an_npu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[cluster_zoo.ClusterHere]:
    """A cluster of one node that runs two jobs at once and has an NPU."""
    made = cluster_zoo.ClusterHere(tmp_path_factory.mktemp("cluster"))
    try:
        made.join_with("npu-box", 2, {"npu": 1})
        yield made
    finally:
        made.close()


@pytest.fixture
def az(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> feed_zoo.StandInAz:
    """The stand-in for `az`, first on the path."""
    made = feed_zoo.StandInAz(tmp_path / "az")
    for name, value in made.environment().items():
        monkeypatch.setenv(name, value)
    return made
