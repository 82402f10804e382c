"""Calls into ONNX Runtime's quantizers, which may raise anything on a graph they do not expect."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Iterator

import onnxruntime

from winml.modelkit.core.errors import ModelkitError, RunFailedError


@contextlib.contextmanager
def _hide_module(module: str) -> Iterator[None]:
    """Make a module that was not imported yet look as if it were not installed."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment]  # what the import system documents for this
    try:
        yield
    finally:
        del sys.modules[module]


# Its package imports torch where that is installed, for a helper of exporters that is not called here.
with _hide_module("torch"):
    from onnxruntime.quantization.execution_providers.qnn import get_qnn_qdq_config as get_qnn_qdq_config


@contextlib.contextmanager
def wrap_errors() -> Iterator[None]:
    """Turn any exception of a quantizer into an error that names it; the traceback goes into the details."""
    try:
        yield
    except ModelkitError:
        raise
    except Exception as error:
        first = str(error).strip().splitlines() or [""]
        raise RunFailedError(
            f"the quantizer of onnxruntime {onnxruntime.__version__} cannot quantize this model: "
            f"{type(error).__name__}: {first[0][:200]}",
            hint="exclude the cause with `--exclude-op-types` or `--exclude-nodes`; a model that was fused "
            "before is better quantized first",
            details={"traceback": traceback.format_exc()},
        ) from error
