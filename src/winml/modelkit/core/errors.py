"""Every error the program raises on purpose, with its exit code.

    ModelkitError                 exit
    ├── RequestError              2   wrong on every machine: arguments, config
    │   ├── ModelFileError        2   missing or invalid model file
    │   └── DataError             2   input, calibration or evaluation data that does not fit
    ├── UnavailableError          3   fine elsewhere: package, permission, disk, login
    │   ├── EPUnavailableError    3   execution provider or its device is not here
    │   └── DiskFull              3   no space left
    ├── RunFailedError            1   tried and failed
    │   ├── SessionError          1   the runtime refused the model or the run
    │   ├── PlacementError        1   the requested EP took no node
    │   ├── WorkerCrashed         1   the process died
    │   ├── WorkerTimeout         1   the process did not answer in time
    │   └── WorkerMemory          1   the process used more memory than it may
    ├── TraceEmpty                4   an operator trace was asked for and has no usable data
    ├── CheckFailed               5   a check was answered with no
    ├── PartlyDone                6   some cells or models failed
    └── Interrupted             130   Ctrl-C

A bug is not in this tree: it keeps its traceback and ends with `EXIT_BUG`.
"""

from __future__ import annotations

import errno
from typing import Any, ClassVar

EXIT_BUG = 70


class ModelkitError(Exception):
    """Root of all errors; a message says what and where, a hint says what to do next."""

    exit_code: ClassVar[int] = 1
    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str | None = None, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details: dict[str, Any] = dict(details or {})
        """What is known besides: last log lines, what was measured before the failure."""

    def to_json(self) -> dict[str, Any]:
        """The `error` object of the contract."""
        return {"code": self.code, "message": self.message, "hint": self.hint, "exit": self.exit_code}


class RequestError(ModelkitError):
    exit_code = 2
    code = "wrong-request"


class ModelFileError(RequestError):
    code = "invalid-model"


class DataError(RequestError):
    code = "invalid-data"


class UnavailableError(ModelkitError):
    exit_code = 3
    code = "unavailable"


class EPUnavailableError(UnavailableError):
    code = "ep-unavailable"


class DiskFull(UnavailableError):
    code = "disk-full"


class RunFailedError(ModelkitError):
    exit_code = 1
    code = "failed"


class SessionError(RunFailedError):
    code = "session-failed"


class PlacementError(RunFailedError):
    code = "ep-took-no-node"


class WorkerCrashed(RunFailedError):
    code = "worker-crashed"


class WorkerTimeout(RunFailedError):
    code = "worker-timeout"


class WorkerMemory(RunFailedError):
    code = "worker-memory"


class TraceEmpty(ModelkitError):
    exit_code = 4
    code = "trace-empty"


class CheckFailed(ModelkitError):
    exit_code = 5
    code = "check-failed"


class PartlyDone(ModelkitError):
    exit_code = 6
    code = "partly-done"


class Interrupted(ModelkitError):
    exit_code = 130
    code = "interrupted"


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says when there is no space left."""
_OF_THE_MACHINE = (errno.EACCES, errno.EPERM, errno.EROFS, *FULL)


def of_system(error: OSError) -> UnavailableError | None:
    """Permission and disk space, which differ from machine to machine; None for any other cause."""
    if error.errno not in _OF_THE_MACHINE:
        return None
    where = f": `{error.filename}`" if error.filename else ""
    kind = DiskFull if error.errno in FULL else UnavailableError
    return kind(f"{(error.strerror or 'the system refused').lower()}{where}")


def _tree(root: type[ModelkitError]) -> dict[str, type[ModelkitError]]:
    found = {root.code: root}
    for child in root.__subclasses__():
        found |= _tree(child)
    return found


BY_CODE: dict[str, type[ModelkitError]] = _tree(ModelkitError)
"""The errors of this module; other packages may refine them with codes of their own."""


def from_json(error: dict[str, Any], details: dict[str, Any] | None = None) -> ModelkitError:
    """The error another process reported, as an exception of the same class."""
    return _tree(ModelkitError)[error["code"]](error["message"], hint=error.get("hint"), details=details)
