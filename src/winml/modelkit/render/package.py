"""Texts of `winml package`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from winml.modelkit.render.units import counted, size

if TYPE_CHECKING:
    from winml.modelkit.packaging.command import JudgedBuild, KeyResult, LoaderCopy, PackageResult, PackageVerification


def judged_text(builds: Sequence[JudgedBuild], *, written: bool = True) -> str:
    """What the gates said of every build; `written` says whether there is a package."""
    lines = []
    words = ("packaged", "not packaged") if written else ("passed", "not passed")
    for one in builds:
        simulated = " (simulated)" if one.target.simulated else ""
        lines.append(f"{one.target}{simulated} {one.precision}  {words[not one.packaged]}")
        for answer in one.gates:
            accepted = f" ({answer.accepted})" if answer.accepted else ""
            lines.append(f"  {answer.gate:<8}  {answer.answer:<9}{accepted}  {answer.reason}")
    return "\n".join(lines)


def package_text(result: PackageResult) -> str:
    """The gates, and what was written."""
    shared = f", {size(result.shared_bytes)} shared" if result.shared_bytes else ""
    signed = "not signed" if result.signed_with is None else f"signed, public key {result.signed_with}"
    return "\n".join(
        [
            judged_text(result.builds),
            f"{result.name}: {counted(result.files, 'file')}, {size(result.bytes)}{shared}, {signed}",
        ]
    )


def verification_text(result: PackageVerification) -> str:
    """What was verified."""
    signature = {
        "fits": f"signature fits: {result.comment}",
        "not checked": "signature not checked",
        "none": "not signed",
    }
    files = f"{counted(result.files, 'file')}, {size(result.bytes)}"
    return f"{result.name}: {files}, all as listed; {signature[result.signature]}\n  {' > '.join(result.targets)}"


def key_text(result: KeyResult) -> str:
    return f"secret  {result.secret}\npublic  {result.public}  {result.public_key}"


def loader_text(result: LoaderCopy) -> str:
    return f"{result.file}  {size(result.bytes)}"
