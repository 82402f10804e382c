"""Names and versions of what is published: pure functions of model, task, target and run stamp."""

from __future__ import annotations

import hashlib
import re

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.file_names import unfit_name
from winml.modelkit.core.target import DEVICES
from winml.modelkit.ep import catalog

VERSION_LIMIT = 127
"""Azure wants versions under 128 characters; a tag of an OCI registry may have 128."""
PACKAGE_LIMIT = 100
_PACKAGE_MAX = 255
_HASH = 8
_CORE = "0.0.0"
_LARGEST = 2147483647
_SEPARATORS = re.compile(r"[\s/\\._:-]+")
_LOST = re.compile(r"[^a-z0-9-]+")
_STAMP = re.compile(r"[0-9a-z]{1,32}")
_PACKAGE = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:-([0-9a-z-]+(?:\.[0-9a-z-]+)*))?", re.ASCII)
_REVISION = re.compile(r"(.+)\.([2-9]|[1-9][0-9]{1,5})")
_EP_NAMES = frozenset(re.sub(r"[^a-z0-9]", "", name) for info in catalog.TABLE for name in (info.name, *info.aliases))


@dataclass(frozen=True)
class VersionParts:
    """The parts of one of our versions; `ep` and `device` are None when it was published for no target."""

    stamp: str
    slug: str
    ep: str | None = None
    device: str | None = None
    revision: int = 1
    """Counts the contents published under one stamp for one target."""

    @property
    def folder(self) -> str:
        """Its folder below the folder of its model: `qnn_npu`, or empty without a target."""
        return "" if self.ep is None else f"{self.ep}_{self.device}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]


def cut(text: str, limit: int) -> str:
    """The text itself, or its start and a hash of the whole, so that two long names stay different."""
    if len(text) <= limit:
        return text
    return f"{text[: limit - _HASH - 1].rstrip('-')}-{_hash(text)}"


def slug(model: str, task: str | None = None) -> str:
    """A model and its task in lower-case letters, digits and single hyphens.

    Separators become hyphens; a name with other characters gets a hash of the original.
    """
    text = "-".join(part for part in (model, task) if part).lower()
    plain = _SEPARATORS.sub("-", text)
    kept = re.sub("-+", "-", _LOST.sub("-", plain)).strip("-")
    if _LOST.search(plain) or not kept:
        kept = f"{kept}-{_hash(text)}".lstrip("-")
    return kept


def package(model: str, task: str | None = None) -> str:
    """The package of a model: one per model and task, because a feed may limit the versions of a package."""
    name = cut(slug(model, task), PACKAGE_LIMIT)
    # It is also the name of a folder, of builds and of feeds.
    return f"{name}-{_hash(name)}" if unfit_name(name) else name


def version(stamp: str, model_slug: str, *, ep: str | None = None, device: str | None = None, revision: int = 1) -> str:
    """`0.0.0-<run-stamp>-<ep>-<device>-<slug>`; without a target `0.0.0-<run-stamp>-<slug>`.

    The second and later contents under one stamp get a number: `.2`.
    """
    start = [_CORE, check_stamp(stamp)]
    if ep is not None and device is not None:
        start += [re.sub(r"[^a-z0-9]", "", ep.lower()), device.lower()]
    head = "-".join(start) + "-"
    tail = "" if revision == 1 else f".{revision}"
    return check_version(head + cut(model_slug, VERSION_LIMIT - len(head) - len(tail)) + tail)


def parse_version(text: str) -> VersionParts | None:
    """The parts of one of our versions; None for a version in another format."""
    counted = _REVISION.fullmatch(text)
    text, revision = (counted[1], int(counted[2])) if counted else (text, 1)
    core, _, rest = text.partition("-")
    stamp, _, tail = rest.partition("-")
    if core != _CORE or not _STAMP.fullmatch(stamp) or not tail:
        return None
    ep, _, after = tail.partition("-")
    device, _, model_slug = after.partition("-")
    if ep in _EP_NAMES and device in DEVICES and model_slug:
        return VersionParts(stamp, model_slug, ep, device, revision)
    return VersionParts(stamp, tail, revision=revision)


def check_stamp(stamp: str) -> str:
    """Return the run stamp; raises when it cannot be part of a version."""
    if not _STAMP.fullmatch(stamp):
        raise RequestError(
            f"run stamp must be 1 to 32 lower-case letters and digits but got `{stamp[:60]}`",
            hint="for example `--run-stamp 20260609`",
        )
    return stamp


def check_package(name: str) -> str:
    """Return the package name; raises when some feed would refuse it."""
    if not _PACKAGE.fullmatch(name) or len(name) > _PACKAGE_MAX:
        raise RequestError(
            f"invalid package name: `{name[:80]}`",
            hint="lower-case letters and digits, with single `-`, `_` or `.` between them, at most 255 characters",
        )
    return name


def check_version(text: str) -> str:
    """Return the version; raises when some feed would refuse it."""
    found = _VERSION.fullmatch(text)
    identifiers = (found[4] or "").split(".") if found else []
    numbers = [*found.groups()[:3], *(i for i in identifiers if i.isdecimal())] if found else []
    padded = any(len(n) > 1 and n.startswith("0") for n in numbers)
    large = any(int(n) > _LARGEST for n in numbers[:3])
    if not found or padded or large or len(text) > VERSION_LIMIT:
        raise RequestError(
            f"invalid version: `{text[:140]}`",
            hint="a lower-case SemVer version without build metadata, under 128 characters: `0.0.0-20260609-cpu-cpu-m`",
        )
    return text
