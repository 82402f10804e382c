"""`winml sys`: what this machine has, and for the rest why not."""

from __future__ import annotations

import os
import platform
from typing import Any

from winml.modelkit import __version__
from winml.modelkit.core.errors import EPNotDownloaded, ModelkitError
from winml.modelkit.core.target import Device, Target
from winml.modelkit.ep import catalog
from winml.modelkit.ep import probing as targets
from winml.modelkit.ep.catalog import EPInfo
from winml.modelkit.ep.discovery import Host, Installed, Rejected, candidates, distribution_version, this_host

SCHEMA = "winml/sys/1"


def _probe(found: Installed) -> dict[str, Any]:
    """What the EP's own process says: its devices, or why it does not load."""
    try:
        return targets.probe(found)
    except EPNotDownloaded as error:
        return {"absent": error.message, "hint": error.hint}
    except ModelkitError as error:
        return {"error": error.message}


def _row(target: Target, status: str, reason: str | None, hint: str | None = None) -> dict[str, Any]:
    return {**target.to_json(), "status": status, "reason": reason, "hint": hint}


def _missing_device(info: EPInfo, device: Device, answer: dict[str, Any]) -> str:
    """Why an EP that loads has no such device: another vendor's hardware, or none at all."""
    vendors = sorted({d["vendor"] for d in answer["machine_devices"] or () if d["kind"] == device and d["vendor"]})
    if vendors and info.vendors:
        return f"wrong vendor: this machine's {device} is by {', '.join(vendors)}, it drives {', '.join(info.vendors)}"
    wanted = f"{' or '.join(info.vendors)} {device}" if info.vendors else device
    return f"no device: it loads, and finds no {wanted}"


def _installed_rows(info: EPInfo, found: Installed, answer: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for device in info.devices:
        target = Target(info.name, device, simulated=device in found.simulated)
        if "absent" in answer:
            rows.append(_row(target, "missing", answer["absent"], answer["hint"]))
        elif "error" in answer:
            rows.append(_row(target, "does-not-load", f"library fails to load: {answer['error']}"))
        elif target.simulated:
            rows.append(_row(target, "simulated", "placement, outputs and compiled binaries are real, times are not"))
        elif answer["kinds"] is None:
            rows.append(_row(target, "unknown", "it lists no devices; whether one is there shows when a session opens"))
        elif device in answer["kinds"]:
            rows.append(_row(target, "ready", None))
        else:
            rows.append(_row(target, "no-device", _missing_device(info, device, answer)))
    return rows


def _installation(info: EPInfo, found: Installed) -> dict[str, Any]:
    """One installation of an EP: where it comes from and what it can be used for."""
    answer = _probe(found)
    private = found.environment
    return {
        "package": found.package.distribution,
        "version": private.version if private else distribution_version(found.package),
        "environment": str(private.folder) if private else None,
        "devices": answer.get("devices", []),
        "targets": _installed_rows(info, found, answer),
    }


def _ep(info: EPInfo, host: Host) -> dict[str, Any]:
    found = candidates(info, host)
    common = {"ep": info.name, "full_name": info.full_name, "can_compile": info.can_compile}
    if isinstance(found, Rejected):
        rows = [_row(Target(info.name, d), "missing", found.reason, found.hint) for d in info.devices]
        return {**common, "installations": [], "missing": rows}
    return {**common, "installations": [_installation(info, f) for f in found], "missing": []}


def _memory_bytes() -> int:
    import psutil

    return int(psutil.virtual_memory().total)


def _runtime_version() -> str | None:
    return distribution_version(catalog.BY_NAME["cpu"].packages[0])


def system() -> dict[str, Any]:
    """Machine, runtime and one entry per EP of the table."""
    host = this_host()
    return {
        "schema": SCHEMA,
        "ok": True,
        "machine": {
            "system": host.system,
            "release": platform.release(),
            "architecture": platform.machine(),
            "cores": os.cpu_count(),
            "memory_bytes": _memory_bytes(),
        },
        "winml": __version__,
        "python": platform.python_version(),
        "onnxruntime": _runtime_version(),
        "eps": [_ep(info, host) for info in catalog.TABLE],
    }
