"""An error as JSON has it, where it is part of a result."""

from __future__ import annotations

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import ModelkitError, from_json


@dataclass(frozen=True, kw_only=True)
class ErrorObject:
    """Why something failed."""

    code: str
    message: str
    hint: str | None
    exit: int

    @classmethod
    def of(cls, error: ModelkitError) -> ErrorObject:
        return cls(code=error.code, message=error.message, hint=error.hint, exit=error.exit_code)

    def exception(self, result: object = None) -> ModelkitError:
        """The error as an exception of its class, with the result so far."""
        error = from_json({"code": self.code, "message": self.message, "hint": self.hint})
        error.result = result
        return error
