"""Every error the program raises on purpose, with its exit code.

    ModelkitError                 exit
    ├── RequestError              2   wrong on every machine: arguments, config
    │   ├── ModelFileError        2   missing or invalid model file
    │   └── DataError             2   input, calibration or evaluation data that does not fit
    ├── UnavailableError          3   fine elsewhere: package, permission, disk, login
    │   ├── EPUnavailableError    3   execution provider or its device is not available
    │   │   └── EPNotDownloaded   3   Windows offers it, but it is not downloaded
    │   └── DiskFull              3   no space left
    ├── RunFailedError            1   tried and failed
    │   ├── SessionError          1   the runtime refused the model or the run
    │   │   └── CompiledElsewhere 2   a compiled model on another execution provider than its own
    │   ├── PlacementError        1   the requested EP took no node
    │   ├── WorkerCrashed         1   the process died
    │   ├── WorkerTimeout         1   the process did not answer in time
    │   ├── WorkerMemory          1   the process used more memory than allowed
    │   └── WorkerAnswerError     1   the process returned an unexpected answer
    ├── TraceEmpty                4   a requested operator trace has no usable data
    ├── CheckFailed               5   a check failed
    ├── PartlyDone                6   some cells or models failed
    └── Interrupted             130   Ctrl-C

A bug is not in this tree: it keeps its traceback and ends with `EXIT_BUG`.
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Any, ClassVar, Self

from winml.modelkit.core.file_names import LONG_PATHS_HINT, too_long

EXIT_BUG = 70


class ModelkitError(Exception):
    """Root of all errors; a message says what and where, a hint says what to do next."""

    exit_code: ClassVar[int] = 1
    code: ClassVar[str] = "error"

    def __init__(
        self, message: str, *, hint: str | None = None, details: dict[str, Any] | None = None, result: object = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details: dict[str, Any] = dict(details or {})
        """Further details: last log lines."""
        self.result = result
        """The command's result so far, a value; its fields stand beside the error in the JSON of a failure."""

    def with_message(self, message: str, *, hint: str | None = None) -> Self:
        """The same error in other words."""
        return type(self)(message, hint=hint or self.hint, details=self.details, result=self.result)

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


class EPNotDownloaded(EPUnavailableError):
    """Windows offers the EP for this machine, and downloads it only on request."""

    code = "ep-not-downloaded"


class DiskFull(UnavailableError):
    code = "disk-full"


class RunFailedError(ModelkitError):
    exit_code = 1
    code = "failed"


class SessionError(RunFailedError):
    code = "session-failed"


class CompiledElsewhere(SessionError):
    """A trial reports that the model does not open; an explicit request for this target is a wrong request."""

    exit_code = 2
    code = "compiled-elsewhere"


class PlacementError(RunFailedError):
    code = "ep-took-no-node"


class WorkerCrashed(RunFailedError):
    code = "worker-crashed"


class WorkerTimeout(RunFailedError):
    code = "worker-timeout"


class WorkerMemory(RunFailedError):
    code = "worker-memory"


class WorkerAnswerError(RunFailedError):
    code = "worker-answer"


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


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FULL_WINDOWS = {39, 112}
_TOO_LONG = 206
"""What Windows answers to a path that is too long, when it does not just say that it is not there."""
_FULL_WORDS = re.compile(r"\d+ requested and \d+ written|no space left on device|not enough space on the disk", re.I)
"""What numpy says instead of a number, and what native libraries hand on."""
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_BROKEN = {errno.EIO, errno.EBUSY, errno.EMFILE, errno.ENFILE, errno.ENODEV, errno.ENXIO, errno.ETXTBSY} | {
    getattr(errno, name) for name in ("ESTALE", "EHOSTDOWN", "EREMOTEIO", "ENOTCONN") if hasattr(errno, name)
}
_NO_PLACE = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL, errno.EEXIST, errno.ENOTSUP}
"""Reading, these mean that something is missing, which readers report themselves; writing, that it cannot be made."""

_FULL_HINT = "free some space (`winml cache gc`) or choose another disk, then run it again"


def of_system(
    error: OSError, path: str | os.PathLike[str] | None = None, *, writing: bool = False
) -> UnavailableError | None:
    """The one translation of errors of the system, which differ from machine to machine; None for any other cause.

    `path` is what the user knows of, `error.filename` by default. `writing` says that it was being made.
    """
    name = error.filename if path is None else path
    where = "" if name is None else f" `{_text(name)}`"
    why = error.strerror or str(error) or "the system refused"
    if error.errno == errno.ENOENT and name is None and _is_deleted_below():
        return UnavailableError("the current folder was deleted", hint="change to another folder, then run it again")
    if is_full(error):
        return DiskFull(f"disk full while writing{where}" if where else "disk full", hint=_FULL_HINT)
    if error.errno in _FORBIDDEN:
        return UnavailableError(f"no permission to {'write' if writing else 'use'}{where}: {why}")
    if error.errno in _NO_PLACE and (length := _excess(error, name)):
        return UnavailableError(f"cannot {'write' if writing else 'use'}{where}: {length}", hint=LONG_PATHS_HINT)
    if error.errno in _BROKEN or (writing and error.errno in _NO_PLACE and _concerns(error, path)):
        hint = "choose another place" if writing else None
        return UnavailableError(f"cannot {'write' if writing else 'use'}{where}: {why}", hint=hint)
    return None


def _is_deleted_below() -> bool:
    """Whether the folder that this process works in is gone."""
    try:
        os.getcwd()  # noqa: PTH109 - `Path` would ask the same
    except FileNotFoundError:
        return True
    return False


def _excess(error: OSError, path: Any) -> str | None:
    """Why a path is too long for Windows, which says of one only that something is not there."""
    is_certain = getattr(error, "winerror", None) == _TOO_LONG
    for name in (path, error.filename, error.filename2):
        if isinstance(name, str | bytes | os.PathLike):
            folder = Path(_text(name)).parent
            why = too_long(_text(name), folder=is_certain) or too_long(folder, folder=True)
            if why is not None:
                return why
    return None


def is_full(error: BaseException) -> bool:
    """Whether a disk has no space left, as a number or, from native libraries, as a text."""
    if isinstance(error, OSError) and (error.errno in _FULL or getattr(error, "winerror", None) in _FULL_WINDOWS):
        return True
    return getattr(error, "errno", None) is None and bool(_FULL_WORDS.search(str(error)))


def _text(path: Any) -> str:
    return os.fsdecode(path) if isinstance(path, bytes | os.PathLike) else str(path)


def _concerns(error: OSError, path: str | os.PathLike[str] | None) -> bool:
    """Whether an error is about the path that was being written, a folder above it or a file beside or below it."""
    if path is None or error.filename is None:
        return True
    wanted, named = Path(os.path.abspath(_text(path))), Path(os.path.abspath(_text(error.filename)))  # noqa: PTH100
    return wanted.is_relative_to(named) or named.is_relative_to(wanted.parent)


def of_name(error: UnicodeEncodeError) -> RequestError | None:
    """A name of a file that is no UTF-8, which Python carries as half characters; None for any other cause.

    Texts that are read here never hold such halves (`core/json_text`), so a name is where they come from.
    """
    if not any("\ud800" <= character <= "\udfff" for character in error.object):
        return None
    shown = error.object[max(0, error.start - 60) : error.end + 60].encode("ascii", "backslashreplace").decode()
    return RequestError(f"a name is not UTF-8: `{shown}`", hint="rename the file or folder")


def _tree(root: type[ModelkitError]) -> dict[str, type[ModelkitError]]:
    found = {root.code: root}
    for child in root.__subclasses__():
        found |= _tree(child)
    return found


BY_CODE: dict[str, type[ModelkitError]] = _tree(ModelkitError)
"""The errors of this module; other packages may refine them with codes of their own."""
EXIT_CODES: tuple[int, ...] = tuple(sorted({error.exit_code for error in BY_CODE.values()}))
"""What a command that ends with an error may exit with; a bug is not among them."""


def from_json(error: dict[str, Any], details: dict[str, Any] | None = None) -> ModelkitError:
    """The error another process reported, as an exception of the same class."""
    return _tree(ModelkitError)[error["code"]](error["message"], hint=error.get("hint"), details=details)
