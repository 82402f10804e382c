"""Calls into ONNX Runtime's quantizers, which raise whatever comes up on a graph they do not expect."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator

import onnxruntime

from winml.modelkit.core.errors import ModelkitError, RunFailedError


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Turn any exception of a quantizer into an error that names it; the traceback goes into the details."""
    try:
        yield
    except ModelkitError:
        raise
    except Exception as error:
        first = str(error).strip().splitlines() or [""]
        raise RunFailedError(
            f"the quantizer of onnxruntime {onnxruntime.__version__} cannot take this model: "
            f"{type(error).__name__}: {first[0][:200]}",
            hint="leave out what it trips over with `--exclude-op-types` or `--exclude-nodes`; a model that was fused "
            "before is better quantized first",
            details={"traceback": traceback.format_exc()},
        ) from error
