"""The text of `winml feed`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from winml.modelkit.render.table import table
from winml.modelkit.render.units import counted, size

if TYPE_CHECKING:
    from winml.modelkit.feed.feed_command import (
        PackageList,
        PullResult,
        PushResult,
        VerifyAllResult,
        VerifyResult,
        VersionList,
    )


def push_text(result: PushResult) -> str:
    how = "published" if result.outcome == "published" else "already exists"
    if (result.revision or 1) > 1:
        how += f", as revision {result.revision}: this run stamp also has other content"
    sent = "" if result.sent_bytes is None else f", {size(result.sent_bytes)} sent"
    return (
        f"{result.package} {result.version} {how}\n"
        f"  {counted(result.files, 'file')}, {size(result.bytes)}{sent}\n"
        f"  content {result.digest}\n"
        f"  stored as {result.reference}"
    )


def packages_text(result: PackageList) -> str:
    return "\n".join(result.packages) or f"{result.feed} has no packages"


def versions_text(result: VersionList) -> str:
    if not result.versions:
        return f"no matching versions of {result.package} in {result.feed}"
    rows = [("version", "run", "target", "state")]
    rows += [(v.version, v.run_stamp or "-", v.target or "-", v.state) for v in result.versions]
    return table(rows, head=True, drop=(1,))


def pull_text(result: PullResult) -> str:
    return "\n".join(
        f"{v.folder}  {counted(len(v.files), 'file')} of {v.version}, {size(v.received_bytes)} received, "
        f"{size(v.kept_bytes)} already present"
        for v in result.versions
    )


def verify_all_text(result: VerifyAllResult) -> str:
    """Every package with its versions; a feed that holds none says so."""
    lines = []
    for one in result.packages:
        lines.append(one.package)
        lines += [f"  {v.version}  {counted(v.files, 'file')}, {size(v.bytes)}, intact" for v in one.versions]
    return "\n".join(lines) or "the feed holds nothing that was asked for"


def verify_text(result: VerifyResult) -> str:
    return "\n".join(f"{v.version}  {counted(v.files, 'file')}, {size(v.bytes)}, intact" for v in result.versions)
