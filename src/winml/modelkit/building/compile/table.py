"""The table of compilers."""

from __future__ import annotations

from winml.modelkit.building.compile.base import Compiler
from winml.modelkit.building.compile.ort import ORTCompiler
from winml.modelkit.building.compile.ort_jit import ORTJitCompiler
from winml.modelkit.building.compile.qairt import QAIRTCompiler
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.suggest import did_you_mean

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
