"""The table of compilers."""

from __future__ import annotations

from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.stages.compile.base import Compiler
from winml.modelkit.stages.compile.ort import ORTCompiler
from winml.modelkit.stages.compile.ort_jit import ORTJitCompiler
from winml.modelkit.stages.compile.qairt import QAIRTCompiler

STAGE_VERSION = 2
"""Raised when the same section gives another result."""

COMPILERS: dict[str, Compiler] = {
    compiler.name: compiler for compiler in (ORTCompiler(), ORTJitCompiler(), QAIRTCompiler())
}
ALIASES = {"ort_session": "ort_jit"}


def find(name: str) -> Compiler:
    """The compiler behind a name or an alias."""
    compiler = COMPILERS.get(ALIASES.get(name, name))
    if compiler is None:
        raise RequestError(f"unknown compiler `{name}`", hint=did_you_mean(name, COMPILERS))
    return compiler
