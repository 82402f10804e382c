"""The compile section of a build config."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.suggest import did_you_mean


@dataclass(frozen=True)
class CompileSection:
    """How the model becomes an EP context."""

    compiler: str = "ort"
    embed: bool = False
    """Whether the compiled data is inside the ONNX file instead of beside it."""
    provider_options: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"compiler": self.compiler, "embed": self.embed, "provider_options": dict(self.provider_options)}

    @classmethod
    def from_json(cls, value: Any) -> CompileSection:
        """The section as a config holds it; an error names the first key that does not fit."""
        if not isinstance(value, dict):
            raise RequestError(f"`compile` must be an object but got {value!r}")
        known = [f.name for f in fields(cls)]
        for key in value:
            if key not in known:
                raise RequestError(f"unknown key `compile.{key}`", hint=did_you_mean(key, known))
        compiler, embed = value.get("compiler", cls.compiler), value.get("embed", cls.embed)
        if not isinstance(compiler, str):
            raise RequestError(f"`compile.compiler` must be text but got {compiler!r}")
        if not isinstance(embed, bool):
            raise RequestError(f"`compile.embed` must be true or false but got {embed!r}")
        options = value.get("provider_options", {})
        if not isinstance(options, dict) or not all(isinstance(v, str) for v in options.values()):
            raise RequestError(f"`compile.provider_options` must map names to text but got {options!r}")
        return cls(compiler, embed, dict(options))
