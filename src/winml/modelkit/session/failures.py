"""What ONNX Runtime's exceptions mean, as our errors.

The runtime has a class per status code, but one code covers many causes; the text tells them apart.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from winml.modelkit.core.errors import (
    DataError,
    EPUnavailableError,
    ModelFileError,
    ModelkitError,
    PlacementError,
    SessionError,
    UnavailableError,
)


class _Rule(NamedTuple):
    pattern: str
    error: type[ModelkitError]
    message: str
    hint: str | None


_NEWER = "update onnxruntime, or save the model for an older version"
_OPEN_RULES: tuple[_Rule, ...] = (
    _Rule(r"Permission denied", UnavailableError, "model file cannot be read: {path}", None),
    _Rule(r"NO_SUCHFILE", ModelFileError, "model file not found: {path}", None),
    _Rule(
        r"External data path (?:does not exist|validation failed).*?\"(?P<what>[^\"]+)\"",
        ModelFileError,
        "external data of {path} is missing: {what}",
        "copy the data file beside the model",
    ),
    _Rule(
        r"External data path|External initializer|external data",
        ModelFileError,
        "external data of {path} cannot be used: {text}",
        "the data file is missing, shorter than the model says, or outside the model's folder",
    ),
    _Rule(
        r"INVALID_PROTOBUF|No graph was found|ModelProto does not have a graph",
        ModelFileError,
        "{path} is not an ONNX model, or it is truncated",
        "check that the download or export finished",
    ),
    _Rule(
        r"(?i)unsupported model IR version: (?P<what>\d+), max supported IR version: (?P<limit>\d+)",
        ModelFileError,
        "{path} has IR version {what}; this onnxruntime reads up to {limit}",
        _NEWER,
    ),
    _Rule(
        r"ONNX Runtime only \*guarantees\* support for models stamped with official released onnx opset versions"
        r".*?Opset (?P<what>\d+) is under development.*?till opset (?P<limit>\d+)",
        ModelFileError,
        "{path} needs opset {what}; this onnxruntime reads up to {limit}",
        _NEWER,
    ),
    _Rule(
        r"No Op registered for (?P<what>\S+) with domain_version of (?P<limit>\d+)",
        ModelFileError,
        "{path} uses operator `{what}`, which does not exist in version {limit} of its domain",
        "check the opset of the model and, for custom operators, that their library is loaded",
    ),
    _Rule(
        r"Failed to load from EpContext model\.?\s*(?P<what>.*)",
        SessionError,
        "the compiled part of {path} does not load here: {what}",
        "it was made for another device or by another version, or it is shared by several models, which the simulator "
        "cannot load",
    ),
    _Rule(r"INVALID_GRAPH", ModelFileError, "{path} is not a valid model: {text}", None),
    _Rule(
        r"NOT_IMPLEMENTED", SessionError, "the runtime cannot run {path}: {text}",
        "no kernel here takes this operator with these types",
    ),
    _Rule(
        r"Failed to allocate memory|bad_alloc", SessionError, "opening {path} ran out of memory: {text}", None
    ),
    _Rule(
        r"QNN_COMMON_ERROR_MEM_ALLOC|error 1002|code: 1002",
        SessionError,
        "the NPU cannot take {path}: {text}",
        "QNN calls this memory allocation (MEM_ALLOC, 1002); on this provider the cause is usually an operator or type "
        "that the target cannot run, and seldom memory: set `--ep-options soc_model=N`, or quantize the model; `winml "
        "analyze` names the operators",
    ),
    _Rule(
        r"Failed to get a WebGPU adapter: (?P<what>[^\n]+)",
        EPUnavailableError,
        "WebGPU finds no GPU here: {what}",
        "it needs a graphics driver with Vulkan, Direct3D 12 or Metal",
    ),
    _Rule(r"EP_FAIL", SessionError, "the execution provider refused {path}: {text}", None),
)  # fmt: skip

_COMPILE_RULES: tuple[_Rule, ...] = (
    _Rule(
        r"Unable to compile any nodes",
        PlacementError,
        "the execution provider compiled none of the nodes of {path}",
        "check the provider options (an unknown `soc_model` does this) and the operator types; `winml perf` on this "
        "target names the nodes that stay on the CPU",
    ),
    _Rule(
        r"returned a NULL EPContext node",
        ModelFileError,
        "{path} is compiled already",
        "compile the model that it was made from",
    ),
)

_RUN_RULES: tuple[_Rule, ...] = (
    _Rule(
        r"Failed to allocate memory|bad_alloc",
        SessionError,
        "running {path} ran out of memory: {text}",
        "use a smaller batch or input",
    ),
    _Rule(
        r"indices element out of data bounds, idx=(?P<what>-?\d+)",
        DataError,
        "running {path}: index {what} is out of bounds",
        "an integer input holds values the model does not accept; see `--int-range` and `--input-data`",
    ),
)


def plain(text: str) -> str:
    """The runtime's message without its status prefix, source files and signatures."""
    text = re.sub(r"\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ", "", text)
    text = re.sub(r"/onnxruntime_src/\S+ [^\n]*?\) (?=[A-Z])", "", text)
    return " ".join(text.split())[:500]


def _match(rules: tuple[_Rule, ...], error: Exception, path: Path) -> ModelkitError | None:
    text = str(error)
    for rule in rules:
        found = re.search(rule.pattern, text, re.DOTALL)
        if found:
            named = {k: v for k, v in found.groupdict().items() if v is not None}
            return rule.error(rule.message.format(path=f"`{path}`", text=plain(text), **named), hint=rule.hint)
    return None


def opening(error: Exception, path: Path) -> ModelkitError:
    """Why a session could not be opened."""
    return _match(_OPEN_RULES, error, path) or SessionError(f"the runtime refused `{path}`: {plain(str(error))}")


def compiling(error: Exception, path: Path) -> ModelkitError:
    """Why a model could not be compiled."""
    return _match(_COMPILE_RULES, error, path) or opening(error, path)


def running(error: Exception, path: Path) -> ModelkitError:
    """Why a run failed."""
    return _match(_RUN_RULES, error, path) or SessionError(f"running `{path}`: {plain(str(error))}")
