"""What the package takes on disk stays below its limit, measured on a real installation."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def _benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("install_size", ROOT / "benchmarks" / "install_size.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["install_size"] = module
    spec.loader.exec_module(module)
    return module


install_size = _benchmark()


def test_everything_below_a_folder_is_counted(tmp_path: Path) -> None:
    (tmp_path / "package" / "below").mkdir(parents=True)
    (tmp_path / "package" / "below" / "data").write_bytes(b"x" * 3_000_000)
    (tmp_path / "module.py").write_bytes(b"x" * 1_000_000)
    sizes = install_size.measure(tmp_path)
    assert list(sizes) == ["package", "module.py"]
    assert sizes["package"] >= 3_000_000
    assert sizes["module.py"] >= 1_000_000


@pytest.mark.slow
@pytest.mark.package_index
@pytest.mark.timeout(900)
def test_the_core_installs_within_its_limit(tmp_path: Path) -> None:
    packages = install_size.install(tmp_path, install_size.build_wheel(tmp_path))
    sizes = install_size.measure(packages)
    assert {"onnxruntime", "onnx", "numpy", "winml"} <= set(sizes)
    assert not {"sympy", "torch", "transformers"} & set(sizes)
    assert sum(sizes.values()) <= install_size.LIMIT_MB * 2**20, sizes
