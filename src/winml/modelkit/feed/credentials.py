"""User name and password for a registry: from the environment, or from the file where other tools store them."""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
from pathlib import Path

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.core.json_text import parse_json
from winml.modelkit.core.location import home

USER = "WINML_FEED_USER"
PASSWORD = "WINML_FEED_PASSWORD"  # noqa: S105 - the name of the variable


@dataclass(frozen=True)
class Credentials:
    """A login; the password is never shown in messages."""

    user: str
    password: str

    def __repr__(self) -> str:
        return f"Credentials({self.user!r}, …)"

    @property
    def basic(self) -> str:
        """The value of an `Authorization` header."""
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()


def credential_files() -> list[Path]:
    """Where docker, podman and skopeo store logins, the most specific first."""
    named = os.environ.get("REGISTRY_AUTH_FILE")
    docker = os.environ.get("DOCKER_CONFIG")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    files = [Path(named)] if named else []
    files += [Path(runtime) / "containers" / "auth.json"] if runtime else []
    with contextlib.suppress(UnavailableError):  # without a home folder there is no login in it
        files.append((Path(docker) if docker else home() / ".docker") / "config.json")
    return files


def credentials_for(host: str) -> Credentials | None:
    """The login for a registry; None when there is none."""
    user, password = os.environ.get(USER), os.environ.get(PASSWORD)
    if (user is None) != (password is None):
        raise RequestError(f"set both `{USER}` and `{PASSWORD}`, or neither")
    if user is not None and password is not None:
        return Credentials(user, password)
    for path in credential_files():
        found = _in_file(path, host)
        if found is not None:
            return found
    return None


def _in_file(path: Path, host: str) -> Credentials | None:
    try:
        raw = path.read_bytes()
    except OSError:
        return None  # no such file, or not readable: no login there
    try:
        entry = parse_json(raw, lenient=True).get("auths", {}).get(host) or {}
        if not entry.get("auth"):
            return None
        user, _, password = base64.b64decode(entry["auth"], validate=True).decode().partition(":")
    except (ValueError, AttributeError, TypeError, binascii.Error) as error:
        raise RequestError(f"the logins in `{path}` cannot be read: {error}") from error
    return Credentials(user, password)


def missing_login_hint() -> str:
    return f"set `{USER}` and `{PASSWORD}`, or log in with `docker login`, `podman login` or `skopeo login`"
