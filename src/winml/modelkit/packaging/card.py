"""`README.md` of a package: the model card."""

from __future__ import annotations

from collections.abc import Sequence

from winml.modelkit.core.plain_text import markdown
from winml.modelkit.packaging.manifest import AccuracyFact, LatencyFact, PackagedArtifact, Port


def card_text(
    name: str,
    source: str,
    inputs: Sequence[Port],
    outputs: Sequence[Port],
    artifacts: Sequence[PackagedArtifact],
    licenses: Sequence[str],
    sizes: dict[str, int],
) -> str:
    """What is in the package, how accurate and fast it is, and where that was measured."""
    lines = [
        f"# {markdown(name)}",
        "",
        f"Built by winml from the model with the digest `{source}`.",
        "",
        "## Artifacts",
    ]
    lines += ["", "A loader tries them in this order.", ""]
    lines += ["| target | precision | bytes | accuracy | latency | needs |", "|---|---|---|---|---|---|"]
    lines += [_artifact_row(one, sizes) for one in artifacts]
    lines += ["", "## Inputs and outputs", "", "| name | type | shape |", "|---|---|---|"]
    for kind, ports in (("input", inputs), ("output", outputs)):
        for port in ports:
            shape = " x ".join(map(str, port.shape)) or "scalar"
            lines.append(f"| {markdown(port.name)} ({kind}) | {port.type} | {markdown(shape)} |")
    lines += ["", "## Gates", ""]
    for one in artifacts:
        lines += [f"**{one.target}**", ""]
        for answer in one.gates:
            accepted = f" ({markdown(answer.accepted)})" if answer.accepted else ""
            lines.append(f"- {answer.gate}: {answer.answer}{accepted}: {markdown(answer.reason)}")
        lines.append("")
    licensed = ", ".join(f"[{markdown(name)}]({name})" for name in licenses) or "no licence file was given"
    return "\n".join([*lines, "## Licence", "", licensed, ""])


def _artifact_row(one: PackagedArtifact, sizes: dict[str, int]) -> str:
    target = f"{one.target} (checked on a simulator)" if one.target.simulated else str(one.target)
    needs = [one.conditions.provider, f"onnxruntime {one.conditions.onnxruntime_at_least} or newer"]
    if one.conditions.soc is not None:
        needs.append(f"SoC {one.conditions.soc}")
    if one.conditions.memory_bytes is not None:
        needs.append(f"{one.conditions.memory_bytes / 2**20:.0f} MiB of memory")
    cells = (
        target,
        one.precision,
        str(sum(sizes[name] for name in one.files)),
        "; ".join(_accuracy(fact) for fact in one.accuracy) or "not measured",
        _latency(one.latency),
        ", ".join(needs),
    )
    return f"| {' | '.join(markdown(cell) for cell in cells)} |"


def _accuracy(fact: AccuracyFact) -> str:
    if fact.value is None:
        return f"{fact.metric} not known"
    spread = "" if fact.interval is None else f" ({fact.interval[0]:.4f} … {fact.interval[1]:.4f})"
    drop = "" if fact.drop is None else f", drop {fact.drop:.4f}"
    return f"{fact.metric} {fact.value:.4f}{spread}{drop}, {fact.samples} samples of {fact.data}"


def _latency(fact: LatencyFact | None) -> str:
    if fact is None:
        return "not measured on a device"
    spread = f"no interval: {fact.interval_reason}"
    if fact.interval is not None:
        spread = f"{fact.interval.low:.3f} … {fact.interval.high:.3f} ms, {100 * fact.interval.level:.0f} %"
    return f"p50 {fact.p50_ms:.3f} ms ({spread}), p90 {fact.p90_ms:.3f} ms, on {fact.machine}, {fact.runtime}"
