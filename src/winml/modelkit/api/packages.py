"""Packages for applications: made, verified and opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from winml.modelkit.api.arguments import path_of
from winml.modelkit.api.call import calling
from winml.modelkit.core.errors import RequestError

if TYPE_CHECKING:
    from winml.modelkit.api.arguments import PathLike
    from winml.modelkit.packaging.command import PackageResult, PackageVerification
    from winml.modelkit.packaging.loader import LoadedPackage


def package(
    builds: PathLike | Sequence[PathLike],
    *,
    output: PathLike,
    evidence: Sequence[PathLike] = (),
    max_drop: float | None = None,
    min_metric: float | None = None,
    metric: str | None = None,
    max_bytes: int | None = None,
    accept_unknown: Sequence[str] = (),
    leave_out_failed: bool = False,
    licenses: Sequence[PathLike] = (),
    name: str | None = None,
    key: PathLike | None = None,
    key_password: str | None = None,
    overwrite: bool = False,
) -> PackageResult:
    """Write a package of the build folders that pass the gates: a folder, or an archive where `output` ends in `.zip`.

    `evidence` are files that `evaluate`, `compare` and `perf` wrote, `TARGET=FILE` for one of another machine. A build
    that does not pass raises `CheckFailed` unless `leave_out_failed`.
    """
    from winml.modelkit.packaging.command import PackageRequest, create
    from winml.modelkit.packaging.gates import Limits

    with calling():
        given = [builds] if isinstance(builds, str) or not isinstance(builds, Sequence) else list(builds)
        if not given:
            raise RequestError("`builds` names no build folder")
        if unknown := [gate for gate in accept_unknown if gate != "latency"]:
            raise RequestError(f"`{unknown[0]}` must be known; only `latency` may be accepted unknown")
        return create(
            PackageRequest(
                builds=tuple(path_of(one, "builds") for one in given),
                output=path_of(output, "output"),
                evidence=tuple(path_of(one, "evidence") for one in evidence),
                limits=Limits(max_drop=max_drop, min_metric=min_metric, metric=metric, max_bytes=max_bytes),
                accept_unknown=tuple(accept_unknown),
                leave_out_failed=leave_out_failed,
                licenses=tuple(path_of(one, "licenses") for one in licenses),
                name=name,
                key=None if key is None else path_of(key, "key"),
                key_password=key_password,
                overwrite=overwrite,
            )
        )


def verify_package(path: PathLike, *, public_key: str | None = None) -> PackageVerification:
    """Check every file of a package, and its signature where a public key (a file, or the key itself) is given."""
    from winml.modelkit.packaging.command import verify

    with calling():
        return verify(path_of(path, "path"), public_key)


def load_package(
    path: PathLike,
    *,
    public_key: str | None = None,
    target: str | None = None,
    allow_simulated: bool = False,
    libraries: Mapping[str, str] | None = None,
) -> LoadedPackage:
    """Open the first artifact of a package that works here; `skipped` says why not those before it.

    Everything is verified first, with the signature where a public key is given. `target` restricts the choice; a
    simulated device is used only with `allow_simulated`; `libraries` are plugins by the full name of their provider.
    """
    from winml.modelkit.packaging.command import load, read_public_key

    with calling():
        return load(
            path_of(path, "path"),
            public_key=None if public_key is None else read_public_key(public_key),
            target=target,
            allow_simulated=allow_simulated,
            libraries=libraries,
        )
