"""From the options of `winml autoconfig` to its request."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from winml.modelkit.cli.cluster_options import cluster_of, collect_options
from winml.modelkit.cli.option_values import duration_s, gain_pct, input_settings
from winml.modelkit.cli.options import resolve_model, targets_of, trust_of
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.plain_text import command_line
from winml.modelkit.ep.options import parse_pairs
from winml.modelkit.evaluation.custom_metric import load_metric, names_file
from winml.modelkit.search.cluster import ClusterOptions
from winml.modelkit.search.prepare import AutoconfigRequest
from winml.modelkit.search.strategy import SearchLimits
from winml.modelkit.search.sweep import SweepRequest

_OF_THE_SWEEP = (
    "model_list",
    "output",
    "resume",
    "overwrite",
    "as_json",
    "cluster",
    "staging",
    "no_tls",
    "tls_ca",
    "tls_cert",
    "tls_key",
)
"""Options that are not passed on to the search of one model on a node."""


def autoconfig_request(model: str | None, sample: bool, given: dict[str, Any]) -> AutoconfigRequest:
    """The request for one model; the sample brings its data."""
    if cluster_of(given) is not None:
        raise click.UsageError("`--cluster` needs `--models`: a single search runs on one machine")
    request = _request(resolve_model(model, sample), given)
    if not sample:
        return request
    from winml.modelkit import sample as files

    return replace(
        request,
        data=request.data or DataSection(str(files.TEST)),
        task=request.task or "image-classification",
        calibration=request.calibration or DataSection(str(files.CALIBRATION)),
    )


def sweep_request(models: str, model: str | None, sample: bool, given: dict[str, Any]) -> SweepRequest:
    """The request for a list of models."""
    if model is not None or sample:
        raise click.UsageError("`--models` cannot be combined with `-m` or `--sample`")
    return SweepRequest(models, _request("", given), _cluster_options(given))


def _cluster_options(given: dict[str, Any]) -> ClusterOptions | None:
    """The cluster to search on; None for this machine."""
    cluster = cluster_of(given)
    if cluster is None:
        return None
    if given["metric"] and names_file(given["metric"]):
        raise click.UsageError("a metric of your own runs on this machine only; leave out `--cluster`")
    if given["overwrite"]:
        raise click.UsageError("`--overwrite` cannot be combined with `--cluster`; name a new folder with `-o`")
    if given["staging"] is None:
        raise click.UsageError("`--cluster` needs `--staging FEED`, a feed that all nodes can reach")
    if given["ep"] is not None or given["device"] is not None:
        raise click.UsageError("`--cluster` needs `--target EP/DEVICE` instead of `--ep` and `--device`")
    return ClusterOptions(cluster, given["staging"], collect_options(*_OF_THE_SWEEP))


def _data(source: str | None, given: dict[str, Any], *, limit: int | None) -> DataSection | None:
    if source is None:
        return None
    columns = parse_pairs(given["columns"], option="--column", example="text=sentence")
    return DataSection(
        source,
        limit=limit,
        seed=given["seed"],
        columns=columns,
        processor=given["processor"],
        length=given["length"],
    )


def _request(model: str, given: dict[str, Any]) -> AutoconfigRequest:
    stop_at = given["stop_at"]
    custom = load_metric(given["metric"]) if given["metric"] and names_file(given["metric"]) else None
    return AutoconfigRequest(
        model=model,
        output=given["output"],
        targets=targets_of(given) or (None,),
        ep=given["ep"],
        device=given["device"],
        objective=given["objective"],
        data=_data(given["data"], given, limit=given["samples"]),
        task=given["task"],
        metric=None if custom else given["metric"],
        custom=custom,
        task_options=parse_pairs(given["task_options"], option="--task-option", example="threshold=0.4"),
        min_metric=given["min_metric"],
        max_metric=given["max_metric"],
        max_drop=given["max_drop"],
        min_agreement=given["min_agreement"],
        judge=given["judge"],
        calibration=_data(given["calibration"], given, limit=None),
        inputs=input_settings(given),
        threads=given["threads"],
        ep_options=parse_pairs(given["ep_options"]),
        trust=trust_of(given),
        limits=SearchLimits(
            budget_s=duration_s(given["budget"]),
            stop_at_pct=None if stop_at is None else gain_pct(stop_at),
            max_discards=given["max_discards"],
        ),
        resume=given["resume"],
        overwrite=given["overwrite"],
        again=command_line(
            ["winml", "autoconfig", *collect_options("resume", "overwrite", "budget", "as_json"), "--resume"]
        ),
        space=given["space"],
        sensitivity=given["mixed"],
        preset=given["preset"],
        only=tuple(word.strip() for word in (given["only"] or "").split(",") if word.strip()),
        reuse=given["reuse"],
        knowledge=given["knowledge"],
        raise_priority=not given["normal_priority"],
        seed=given["seed"],
    )
