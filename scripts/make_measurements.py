"""Writes the tables of `docs/measurements.md` from the results of benchmarks.

    python scripts/make_measurements.py

A table lies between `<!-- table: NAME -->` and `<!-- end -->`; `TABLES` says which results it is made of. A test makes
the page again and compares: a number that is not in a results file, or not the one there, cannot stay on the page.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"
PAGE = ROOT / "docs" / "measurements.md"
sys.path.insert(0, str(BENCHMARKS))

from intervals import clopper_pearson, interval_of_median  # noqa: E402 - they lie beside the benchmarks

_BLOCK = re.compile(r"<!-- table: (?P<name>[\w-]+) -->\n.*?<!-- end -->", re.DOTALL)


def lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def figure(value: float) -> str:
    """A number with three digits that count, and those before the point."""
    if value == round(value) and abs(value) < 1e6:
        return f"{value:.0f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}" if abs(value) < 0.1 else f"{value:.2f}"


def _link(path: Path) -> str:
    name = path.relative_to(ROOT).as_posix()
    return f"[`{name}`](../{name})"


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows])


def recorded(name: str) -> str:
    """The table of a file that a benchmark wrote with `--json`."""
    path = BENCHMARKS / "results" / f"{name}.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    rows = []
    for row in found["rows"]:
        middle, low, high = interval_of_median(row["values"])
        spread = f"{figure(low)} … {figure(high)}" if len(row["values"]) > 1 else ""
        rows.append([row["name"], figure(middle), spread, str(len(row["values"]))])
    machine, conditions = found["machine"], found["conditions"]
    versions = ", ".join(f"{package} {version}" for package, version in found["versions"].items())
    facts = [
        f"{machine['cores']} cores of {machine['processor']}, {machine['system']}, Python {machine['python']}",
        versions,
        f"load {conditions['load']} on {machine['cores']} cores",
    ]
    if "priority" in conditions:
        facts.append("before other programs" if conditions["priority"] else "at the same priority as other programs")
    if conditions.get("device") == "simulated":
        facts.append("the NPU is simulated")
    return "\n\n".join(
        [
            _table(["what", "median", "spread", "n"], rows),
            f"{'; '.join(facts)}. Again: `{found['command']}`. Values: {_link(path)}.",
        ]
    )


def verdicts() -> str:
    """How often `winml compare` is wrong, of the verdicts that were kept."""
    folder = BENCHMARKS / "verdicts" / "results"
    cases = {
        "aa": "no gain: the base against itself",
        "quiet": "no gain, at a lower load",
        "threads": "no gain, two threads that spin",
        "power_3": "a true gain of about 3 %",
        "power_5": "a true gain of about 5 %",
        "power_-3": "about 3 % slower",
    }
    rows = []
    for name, title in cases.items():
        found = lines(folder / f"{name}.jsonl")
        kept = sum(row["verdict"].startswith(("KEEP", "MARGINAL")) for row in found)
        low, high = clopper_pearson(kept, len(found))
        loads = sorted(row["load"] for row in found)
        rows.append([
            title, f"{kept} of {len(found)}", f"{100 * low:.1f} … {100 * high:.1f} %",
            str(sum(row["verdict"] == "INCONCLUSIVE" for row in found)),
            figure(sum(row["total_s"] for row in found) / len(found)), f"{loads[0]:.1f} … {loads[-1]:.1f}",
            _link(folder / f"{name}.jsonl"),
        ])  # fmt: skip
    head = ["case", "kept", "share, 95 %", "inconclusive", "mean s", "load", "values"]
    return _table(head, rows)


def search() -> str:
    """The search against a sweep of the same space."""
    path = BENCHMARKS / "search" / "results.jsonl"
    rows = []
    for row in lines(path):
        speed, regret = row["speedup_interval"], row["regret_interval_pct"]
        rows.append([
            row["model"], f"{row['builds']} of {row['builds_of_sweep']}",
            f"{figure(row['seconds'])} s, {figure(row['seconds_of_sweep'])} s",
            f"{row['speedup']:.2f}x ({speed[0]:.2f} … {speed[1]:.2f})",
            f"{row['regret_pct']:.2f} % ({regret[0]:.2f} … {regret[1]:.2f})", row["champion"],
        ])  # fmt: skip
    head = ["net", "builds, of sweep", "time, of sweep", "faster than the baseline", "behind the best", "champion"]
    return f"{_table(head, rows)}\n\nValues: {_link(path)}."


def simulation() -> str:
    """Searches in worlds where the best config is known."""
    path = BENCHMARKS / "search" / "simulation.jsonl"
    rows = [
        [row["space"], row["world"], row["strategy"], f"{100 * row['within_1_pct']:.0f} %", figure(row["builds"]),
         figure(row["measuring_s"]), str(row["invalid"])]
        for row in lines(path)
        if row["space"] in ("192 configs", "5184 configs")
        and row["strategy"] in ("ours", "all of them", "TPE, 40 trials")
    ]  # fmt: skip
    head = ["space", "world", "strategy", "within 1 % of the best", "builds", "measuring, s", "invalid champions"]
    return f"{_table(head, rows)}\n\nValues, with smaller spaces and other strategies: {_link(path)}."


def accuracy() -> str:
    """What a precision costs trained weights."""
    path = BENCHMARKS / "accuracy" / "results.jsonl"
    rows = []
    for row in lines(path):
        drop = row["drop_interval"]
        shown = "" if row["variant"] == "fp32" else f"{row['drop']:.4f} ({drop['low']:.4f} … {drop['high']:.4f})"
        rows.append([row["model"], row["data"], row["variant"], row["metric"], f"{row['value']:.4f}", shown])
    head = ["model", "data", "precision", "metric", "value", "drop, 95 %"]
    return f"{_table(head, rows)}\n\nValues: {_link(path)}."


def custom_metrics() -> str:
    """Models of packages, each held to a limit: the metric, the drop, and how the gate ended."""
    path = BENCHMARKS / "results" / "custom_metrics.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    rows = []
    for row in found["rows"]:
        model, metric, variant, limit = row["name"].split(" | ")
        *numbers, code = row["values"]
        value, low, high = numbers[:3]
        drop = "" if len(numbers) == 3 else "{:.4f} ({:.4f} … {:.4f})".format(*numbers[3:])
        rows.append(
            [model, metric, variant, f"{value:.4f} ({low:.4f} … {high:.4f})", drop, f"`{limit}`", f"{code:.0f}"]
        )
    head = ["model", "metric", "variant", "value, 95 %", "drop, 90 %", "limit", "exit"]
    packages = ", ".join(f"`{package}`" for package in found["conditions"]["packages"].values())
    return f"{_table(head, rows)}\n\nPackages: {packages}. Again: `{found['command']}`. Values: {_link(path)}."


def catalog() -> str:
    """Which models build at their real dimensions."""
    path = BENCHMARKS / "catalog" / "results.jsonl"
    found = lines(path)
    rows = []
    for target in sorted({row["target"] for row in found}):
        some = [row for row in found if row["target"] == target]
        built = [row for row in some if row["ok"]]
        whole = sum(not (row.get("placement") or {}).get("left") for row in built)
        worst = max(row["difference"] for row in built)
        simulated = " (simulated)" if target == "qnn/npu" else ""
        rows.append([f"{target}{simulated}", f"{len(built)} of {len(some)}", str(whole), f"{worst:.0e}"])
    head = ["target", "built", "nothing left on the CPU", "largest difference of an export from PyTorch"]
    return f"{_table(head, rows)}\n\nValues: {_link(path)}."


def recipes() -> str:
    """How far the shipped recipes come with tiny models."""
    path = BENCHMARKS / "recipes" / "results.jsonl"
    found = lines(path)
    rows = []
    for target in sorted({row["target"] for row in found}):
        some = [row for row in found if row["target"] == target]
        reached = Counter(row["reached"] or "none" for row in some)
        reviews = Counter(row["review"] or "none" for row in some)
        simulated = " (simulated)" if any(row["simulated"] for row in some) else ""
        rows.append([
            f"{target}{simulated}", str(len(some)), ", ".join(f"{goal}: {n}" for goal, n in sorted(reached.items())),
            ", ".join(f"{verdict}: {n}" for verdict, n in sorted(reviews.items())),
        ])  # fmt: skip
    return f"{_table(['target', 'tried', 'goal reached', 'review'], rows)}\n\nValues: {_link(path)}."


def walk() -> str:
    """How far tiny models of all architectures of transformers come."""
    path = BENCHMARKS / "results" / "walk.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    shares = found["shares"]
    rows = [[name, str(shares["all"][name]), str(shares["named"][name])] for name in shares["all"]]
    versions = ", ".join(f"{package} {version}" for package, version in found["versions"].items())
    head = ["tiny models with random weights", "all architectures", "named families"]
    return f"{_table(head, rows)}\n\n{versions}; the NPU is simulated. Values: {_link(path)}."


def _estimate(entry: dict[str, Any] | None, digits: int = 4) -> str:
    """A value with its interval."""
    if entry is None:
        return "not known"
    if "low" not in entry:
        return f"{entry['value']:.{digits}f}"
    return f"{entry['value']:.{digits}f} ({entry['low']:.{digits}f} … {entry['high']:.{digits}f})"


def trained_decoder() -> str:
    """A build in a row: size, what it costs, and its speed by verdict."""
    path = BENCHMARKS / "results" / "trained_decoder.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    rows = [
        "| build | KiB | perplexity | to fp32's | divergence (nats) | sums solved | time for a token to fp32's |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, row in found["rows"].items():
        judged, sums, verdict = row["perplexity"], row["sums"]["exact_match"], row.get("verdict")
        ratio, lost = judged.get("perplexity_ratio"), judged.get("kl_divergence")
        speed = "1"
        if verdict is not None:
            low, high = (1 - value / 100 for value in reversed(verdict["interval_pct"]))
            speed = f"{1 - verdict['gain_pct'] / 100:.2f} ({low:.2f} … {high:.2f})"
        costs = "1 | 0" if ratio is None else f"{_estimate(ratio)} | {_estimate(lost)}"
        solved = f"{100 * sums['value']:.1f} % ({100 * sums['low']:.1f} … {100 * sums['high']:.1f})"
        size = row["bytes"] / 1024
        rows.append(f"| {name} | {size:.0f} | {_estimate(judged['perplexity'], 3)} | {costs} | {solved} | {speed} |")
    machine = found["machine"]
    end = f"{machine['cores']} cores of {machine['processor']}. Again: `{found['command']}`. Values: {_link(path)}."
    return "\n".join([*rows, "", end])


def generation_families() -> str:
    """A family in a row: tokens against PyTorch, what precisions cost, and the NPU."""
    path = BENCHMARKS / "results" / "generation_families.json"
    found = json.loads(path.read_text(encoding="utf-8"))["families"]
    rows = [
        "| family | exporter | tokens as PyTorch's | equal tokens at fp16, dynamic, int4 | perplexity to fp32's | "
        "nodes on the simulated NPU |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, row in found.items():
        if "refused" in row:
            rows.append(f"| {name} | refused: {row['refused'][:80]} | | | | |")
            continue
        tokens, precisions = row["tokens"], row.get("precisions", {})
        equal = f"{tokens['equal']} of {tokens['prompts'] * tokens['tokens']}"
        shares = [_value(one.get("equal_tokens")) for one in precisions.values()]
        ratios = [_value(one.get("perplexity_ratio")) for one in precisions.values()]
        rows.append(
            f"| {name} | {_exporter(row)} | {equal} | {', '.join(shares) or 'not asked'} | "
            f"{', '.join(ratios) or 'not asked'} | {_placed(row['npu'])} |"
        )
    return "\n".join([*rows, "", f"Values: {_link(path)}."])


def generation_real_layers() -> str:
    """A family in a row: tokens at the layer sizes of a published model against PyTorch's."""
    path = BENCHMARKS / "results" / "generation_real_layers.json"
    found = json.loads(path.read_text(encoding="utf-8"))["families"]
    rows = [
        "| family | layers of | million weights | exporter | batch 1 | batch 2, padded | without past |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, row in found.items():
        start = f"| {name} | {row['layers of']} | {row['weights'] / 1e6:.0f} |"
        if "refused" in row:
            rows.append(f"{start} refused: {row['refused'][:80]} | | | |")
            continue
        cells = [_tokens(row["tokens"].get(kind)) for kind in ("batch 1", "batch 2, padded", "without past")]
        rows.append(f"{start} {_exporter(row)} | {' | '.join(cells)} |")
    return "\n".join([*rows, "", f"Values: {_link(path)}."])


def _exporter(row: dict[str, Any]) -> str:
    """Who exported a model, and why it was not onnxruntime-genai's builder, where that was asked."""
    reason = row.get("because", "")
    reason = (reason.partition("as asked it failed: ")[2] or reason).partition(",")[0]
    return f"{row['exporter']} ({reason})" if reason else str(row["exporter"])


def _tokens(entry: dict[str, Any] | None) -> str:
    if entry is None:
        return "not asked"
    if "refused" in entry:
        return f"refused: {entry['refused'][:80]}"
    tied = f" ({entry['ties']} texts part where PyTorch rates two tokens alike)" if entry["ties"] else ""
    return f"{entry['equal']} of {entry['of']}{tied}"


def _value(entry: dict[str, Any] | None) -> str:
    return "refused" if entry is None else f"{entry['value']:.3f}"


def _placed(npu: dict[str, Any] | None) -> str:
    """How many nodes of every part are on the NPU, and the operators that are not."""
    if npu is None:
        return "not asked"
    if "refused" in npu:
        return f"refused: {npu['refused'][:80]}"
    said = []
    for part, one in npu.items():
        nodes = one["nodes"] or {}
        left = ", ".join(f"{count} {name}" for name, count in (one["on_cpu"] or {}).items())
        placed = f"{part} {nodes.get('QNNExecutionProvider', 0)} of {sum(nodes.values())}"
        said.append(f"{placed} (on the CPU: {left})" if left else placed)
    return ", ".join(said)


def peers() -> str:
    """A tool and a model in a row: the metric, size, time to make it, and what `winml compare` says of its speed."""
    path = BENCHMARKS / "results" / "peers.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    rows = []
    for row in found["conditions"]["rows"]:
        start = [row["model"], row["arm"]]
        if "score" not in row:
            error = row["error"]
            said = error["message"] if isinstance(error, dict) else error
            rows.append([*start, f"no model: {said[:120]}", "", "", f"{row['cpu_seconds']:.0f}", ""])
            continue
        rows.append([
            *start, f"{row['limit_score']:.4f}", f"{row['score']:.4f}", f"{row['bytes'] / 1024:.0f}",
            "" if row["arm"] == "float" else f"{row['cpu_seconds']:.0f}",
            "" if row["arm"] == "float" else _gain(row.get("compare")),
        ])  # fmt: skip
    head = ["model", "tool", "metric where the limit is held", "on other data", "KiB", "CPU s", "speed"]
    processors: dict[str, list[str]] = {}
    for row in found["conditions"]["rows"]:
        processors.setdefault(row.get("processor", found["machine"]["processor"]), []).append(row["model"])
    facts = "; ".join(f"{', '.join(dict.fromkeys(models))}: {name}" for name, models in processors.items())
    end = f"onnxruntime {found['versions']['onnxruntime']}, load {found['conditions']['load']}"
    return f"{_table(head, rows)}\n\n{facts}; {end}. Again: `{found['command']}`. Values: {_link(path)}."


def _gain(compared: dict[str, Any] | None) -> str:
    """A verdict, with how many times as fast as the float model the candidate is."""
    if compared is None:
        return "not compared"
    verdict = compared["verdict"]
    if verdict.get("gain_pct") is None or verdict.get("interval_pct") is None:
        return f"{verdict['verdict']}: {verdict['reason']}"
    fast, slow = sorted(1 / (1 - gain / 100) for gain in verdict["interval_pct"])[::-1]
    return f"{1 / (1 - verdict['gain_pct'] / 100):.2f}x ({slow:.2f} … {fast:.2f}), {verdict['verdict']}"


def sensitivity_cost() -> str:
    """What sensitivity costs, by the size of a model."""
    path = BENCHMARKS / "results" / "sensitivity_cost.json"
    rows = [
        [f"{row['layers']} convolutions, {row['model_mib']:.0f} MiB", str(row["samples"]),
         f"{row['sensitivity_s']:.0f}", f"{row['each_variant_once_s']:.0f}", f"{row['time_ratio']:.2f}",
         f"{row['peak_mib']:.0f}", *_known(row, "one_variant_mib", "memory_ratio", "one_finished_variant_mib"),
         *_known(row, "all_processes_mib")]
        for row in json.loads(path.read_text(encoding="utf-8"))
    ]  # fmt: skip
    head = [
        "model", "samples", "s", "every variant run once, s", "ratio", "largest process, MiB",
        "one variant made and run, MiB", "ratio", "one finished variant run, MiB", "all processes, MiB",
    ]  # fmt: skip
    return f"{_table(head, rows)}\n\nAgain: `python benchmarks/accuracy/cost.py -o WORK`. Values: {_link(path)}."


def _known(row: dict[str, Any], *names: str) -> list[str]:
    return [figure(row[name]) if name in row else "not measured" for name in names]


def npu_accuracy() -> str:
    """Models that quantization spoils on the NPU, before and after."""
    path = BENCHMARKS / "results" / "npu_accuracy.json"
    rows = []
    for row in json.loads(path.read_text(encoding="utf-8")):
        plain = [f"{row[name]:.3f}" if name in row else "" for name in ("plain_on_cpu", "plain_on_target")]
        start = [f"{row['model']} {row['precision']}", *plain]
        if "failed" in row:
            rows.append([*start, "", f"refused: {row['failed'][:100]}", "", ""])
            continue
        changed = [f"{row['raised']} nodes with 16-bit activations"] if row["raised"] else []
        changed += [f"{row['kept']} nodes in float"] if row["kept"] else []
        changed += row.get("mending", [])
        growth = 100 * (row["bytes_after"] / row["bytes_before"] - 1)
        rows.append([*start, f"{row['before']:.3f}", f"{row['after']:.4f}", ", ".join(changed) or "nothing",
                     f"{growth:.1f} %"])  # fmt: skip
    head = [
        "model", "onnxruntime's tool, CPU EP", "the same, qnn/npu", "`winml quantize`, qnn/npu",
        "`--min-agreement 0.99`", "changed", "larger",
    ]  # fmt: skip
    return f"{_table(head, rows)}\n\nMedian cosines of the worst output. Values: {_link(path)}."


TABLES: dict[str, Callable[[], str]] = {
    "verdicts": verdicts,
    "search": search,
    "simulation": simulation,
    "accuracy": accuracy,
    "custom_metrics": custom_metrics,
    "catalog": catalog,
    "recipes": recipes,
    "walk": walk,
    "trained_decoder": trained_decoder,
    "generation_families": generation_families,
    "generation_real_layers": generation_real_layers,
    "peers": peers,
    "sensitivity_cost": sensitivity_cost,
    "npu_accuracy": npu_accuracy,
}
"""Tables of results that have a form of their own; any other name is a file in `benchmarks/results`."""


def make_page(page: str) -> str:
    """A page with its tables made again."""

    def replaced(found: re.Match[str]) -> str:
        name = found["name"]
        table = TABLES[name]() if name in TABLES else recorded(name)
        return f"<!-- table: {name} -->\n{table}\n<!-- end -->"

    return _BLOCK.sub(replaced, page)


def main() -> None:
    PAGE.write_text(make_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
