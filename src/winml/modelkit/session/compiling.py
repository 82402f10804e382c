"""Compiles a model for an EP with ONNX Runtime's ModelCompiler."""

from __future__ import annotations

import os
from pathlib import Path

import onnxruntime

from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.model_file import require_model_file
from winml.modelkit.core.target import Target
from winml.modelkit.session import failures
from winml.modelkit.session.selection import EPSelection, select


def compile_to_file(
    model: str | os.PathLike[str],
    output: Path,
    *,
    target: Target,
    section: SessionSection,
    embed: bool,
    distribution: str | None = None,
) -> EPSelection:
    """Write the compiled model as `output`, its binary beside it unless `embed`; returns the EP that was used.

    Raises PlacementError when the EP took nothing. Graph optimizations stay off, the compiler's own default: what they
    would fuse for the CPU would be baked into the file.
    """
    path = require_model_file(model)
    chosen = select(target, section, distribution)
    for provider in chosen.providers or ():
        name, options = (provider, {}) if isinstance(provider, str) else provider
        chosen.options.add_provider(name, options)
    flags = onnxruntime.OrtCompileApiFlags
    try:
        compiler = onnxruntime.ModelCompiler(
            chosen.options,
            str(path),
            embed_compiled_data_into_model=embed,
            flags=flags.ERROR_IF_NO_NODES_COMPILED | flags.ERROR_IF_OUTPUT_FILE_EXISTS,
        )
        compiler.compile_to_file(str(output))
    except Exception as error:
        raise failures.compiling(error, path) from error
    finally:
        chosen.release()
    return chosen
