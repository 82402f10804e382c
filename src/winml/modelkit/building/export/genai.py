"""Decoders built by the model builder of onnxruntime-genai: fused attention with a cache in place, no tracing.

The graph that it writes takes and gives what the part `decoder` does, so that it is compared with PyTorch like any
other export.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

from winml.modelkit.building.export.folder import ModelFolder
from winml.modelkit.core.config import ExportSection, InputSection
from winml.modelkit.core.errors import RequestError, RunFailedError, UnavailableError
from winml.modelkit.core.generation import INSTALL_GENAI, find_genai
from winml.modelkit.worker.scratch import ScratchFolder

EXPORTER = "genai"
OPSET = 22
"""What the builder writes."""

SIZES = {"batch": 1}
"""Attention on the CPU takes several words after a cache for one text only."""

ARCHITECTURES = (
    "Ernie4_5ForCausalLM",
    "GemmaForCausalLM",
    "Gemma2ForCausalLM",
    "Gemma3ForCausalLM",
    "GraniteForCausalLM",
    "LlamaForCausalLM",
    "MistralForCausalLM",
    "NemotronForCausalLM",
    "OlmoForCausalLM",
    "PhiForCausalLM",
    "Phi3ForCausalLM",
    "Qwen2ForCausalLM",
    "Qwen3ForCausalLM",
    "SmolLM3ForCausalLM",
)
"""Classes of decoders of text that the builder has and that are compared with PyTorch here."""


def is_installed() -> bool:
    return find_genai() is not None


def covers(folder: ModelFolder) -> bool:
    """Whether the builder knows the class that saved a model."""
    return folder.architecture in ARCHITECTURES and not folder.remote_code


def fit_inputs(inputs: tuple[InputSection, ...]) -> tuple[InputSection, ...]:
    """The inputs that the builder's graph has: positions follow from the mask, which says how long a text is."""
    kept = (entry for entry in inputs if entry.name != "position_ids")
    return tuple(
        replace(entry, values="random", low=1, high=1) if entry.name == "attention_mask" else entry for entry in kept
    )


def build(folder: Path, section: ExportSection, work: Path) -> tuple[Any, Path | None]:
    """The decoder as an ONNX model in float32; one that is large has its weights in the file that is returned."""
    from winml.modelkit.graph import files

    create_model, config_of = _import()
    said, config = io.StringIO(), config_of(folder)
    with ScratchFolder("winml-genai-") as scratch:
        output = work
        options = {
            "hf_details": {"extra_kwargs": {}, "hf_name": str(folder), "hf_config": config},
            "hf_token": False,
            "hf_remote": False,
        }
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                create_model(None, str(folder), str(output), "fp32", "cpu", str(scratch / "cache"), **options)
        except MemoryError:
            raise
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EACCES):
                raise  # of this machine, not of the model: tracing it instead would not help, and would be kept
            raise _explain(error) from error
        except Exception as error:  # whatever its code raises for a model that it does not expect
            raise _explain(error) from error
    gc.collect()  # the builder's objects refer to one another, and hold the weights
    path = output / "model.onnx"
    data = path.with_name(f"{path.name}.data")
    is_large = data.is_file() and data.stat().st_size >= files.STREAMED_BYTES
    model = files.load(path, weights=not is_large)
    _write_windows(model, config)
    _name_axes(model, section)
    return model, data if is_large else None


def _write_windows(model: Any, config: Any) -> None:
    """How far layers look back, where the builder (0.18) leaves that out: all layers of Mistral and Phi-3 have one.

    Without it a text that is longer than the window is not what PyTorch makes of it, and no comparison of short texts
    finds that.
    """
    window = getattr(config, "sliding_window", None)
    if not window or config.model_type not in ("mistral", "phi3"):
        return
    for node in model.graph.node:
        for attribute in node.attribute if node.op_type == "GroupQueryAttention" else ():
            if attribute.name == "local_window_size" and attribute.i < 0:
                attribute.i = int(window)


def _explain(error: Exception) -> RunFailedError:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return RunFailedError(
        f"onnxruntime-genai's builder raised {type(error).__name__}: {reason[:300]}",
        hint="`--exporter transformers` traces the model instead",
    )


def _import() -> tuple[Any, Any]:
    if not is_installed():
        raise UnavailableError("building by onnxruntime-genai needs the package", hint=INSTALL_GENAI)
    import transformers

    try:
        from onnxruntime_genai.models import builder
    except (ImportError, OSError) as error:  # a library that it needs is missing
        raise _explain(error) from error

    # The tokenizer is copied with the other files of the processor, and a folder may have none. The classes are asked
    # from the builder: it imports them by another name than the one that they have within the package.
    for kind in builder.LlamaModel.__mro__:
        if "save_processing" in vars(kind):
            kind.save_processing = _do_nothing
    return builder.create_model, transformers.AutoConfig.from_pretrained


def _do_nothing(*_: object, **__: object) -> None:
    return None


def _name_axes(model: Any, section: ExportSection) -> None:
    """Write the shapes of the section over those of the builder, which leaves the size of a head open."""
    found = {value.name: value for value in model.graph.input}
    wanted = {entry.name: entry.shape for entry in section.inputs}
    if set(found) != set(wanted):
        different = sorted(set(found) ^ set(wanted))
        raise RequestError(
            f"onnxruntime-genai's builder made other inputs than expected: `{different[0]}`",
            hint="`--exporter transformers` traces the model instead",
        )
    for name, shape in wanted.items():
        for dim, axis in zip(found[name].type.tensor_type.shape.dim, shape, strict=True):
            if isinstance(axis, int):
                dim.dim_value = axis
            else:
                dim.dim_param = axis
    heads = {value.name: value for value in model.graph.output}
    for name, shape in wanted.items():
        present = heads.get(name.replace("past_key_values.", "present."))
        if present is not None:
            present.type.tensor_type.shape.dim[3].dim_value = shape[3]
    outputs = {"batch_size": "batch", "sequence_length": "decoder_sequence", "total_sequence_length": "total"}
    for value in model.graph.output:
        for dim in value.type.tensor_type.shape.dim:
            dim.dim_param = outputs.get(dim.dim_param, dim.dim_param) if dim.dim_param else dim.dim_param
