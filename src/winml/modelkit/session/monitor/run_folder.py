"""The folder an EP writes its traces into."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from pathlib import Path

from winml.modelkit.core.errors import UnavailableError, of_system

log = logging.getLogger(__name__)


class RunFolder:
    """A folder the caller named, or a temporary one that stays until `cleanup()`, so that it can be looked at."""

    def __init__(self, given: str | os.PathLike[str] | None, prefix: str) -> None:
        self.temporary = given is None
        self.path = Path(tempfile.mkdtemp(prefix=prefix) if given is None else given).absolute()
        if self.temporary:
            log.info("traces are written to %s; it is kept until cleanup()", self.path)

    def prepare(self) -> None:
        """Make sure that files can be written there."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.path):
                pass
        except OSError as error:
            found = of_system(error, self.path, writing=True)
            raise (UnavailableError if found is None else type(found))(
                f"traces cannot be written to `{self.path}`: {error.strerror or error}",
                hint="name another folder, or free space in this one",
            ) from error

    def cleanup(self) -> None:
        """Remove the folder where it is a temporary one; a folder the caller named is the caller's."""
        if self.temporary:
            shutil.rmtree(self.path, ignore_errors=True)
