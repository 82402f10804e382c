"""Functions that build and measure many times: autoconfig, matrix; and what this machine has: sys."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from winml.modelkit.api.arguments import (
    at_least,
    more_than_zero,
    needs,
    one_of,
    options_of,
    require_output,
    text_of,
    trust_of,
    words_of,
)
from winml.modelkit.api.call import calling
from winml.modelkit.api.progress import MatrixProgress, SearchProgress
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.objective import OBJECTIVES, Objective

if TYPE_CHECKING:
    from winml.modelkit.api.arguments import Arrays, DataLike, Dims, EPOptions, ModelLike, PathLike, Shapes, Words
    from winml.modelkit.build_matrix.command import RunResult
    from winml.modelkit.ep.sys_command import SysResult
    from winml.modelkit.search.result import SearchResult


def autoconfig(
    model: ModelLike,
    *,
    output: PathLike,
    target: Words | None = None,
    objective: Objective | None = None,
    data: DataLike | None = None,
    task: str | None = None,
    task_options: Mapping[str, str | float] | None = None,
    metric: str | Callable[..., Any] | None = None,
    min_metric: float | None = None,
    max_metric: float | None = None,
    max_drop: float | None = None,
    min_agreement: float | None = None,
    judge: Literal["interval", "value"] = "interval",
    calibration: DataLike | None = None,
    samples: int | None = None,
    columns: Mapping[str, str] | None = None,
    processor: PathLike | None = None,
    length: int | None = None,
    budget: float | None = 600.0,
    stop_at: float | None = None,
    max_discards: int | None = None,
    space: PathLike | None = None,
    mixed: PathLike | None = None,
    preset: str | None = None,
    only: Words = (),
    reuse: PathLike | None = None,
    knowledge: PathLike | None = None,
    inputs: PathLike | Arrays | None = None,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    batch_size: int | None = None,
    int_ranges: Mapping[str, tuple[int, int]] | None = None,
    seed: int = 0,
    threads: int | None = None,
    ep_options: EPOptions | None = None,
    trust_options: Words = (),
    raise_priority: bool = True,
    resume: bool = False,
    overwrite: bool = False,
    on_event: OnEvent | None = None,
    progress: bool | None = None,
) -> SearchResult:
    """Search for the config of a model that is fastest on a target and still accurate, in the folder `output`.

    Of a model that generates text the objective is `tokens-per-second`, `first-token` or `memory`.

    `budget` is in seconds, None is no limit. `stop_at` ends the search once this many percent of the time are
    certainly saved. With several targets the execution provider is searched, too. `metric` is the name of one of the
    task's, a function `score(outputs, sample)` of your own, or `FILE.py:NAME`; a search that is resumed gets it again.
    """
    at_least(1, threads=threads, max_discards=max_discards)
    more_than_zero(budget=budget, stop_at=stop_at)
    one_of(OBJECTIVES, objective=objective)
    one_of(("interval", "value"), judge=judge)
    needs(data, "data", samples=samples)
    with calling(on_event, progress, SearchProgress) as call:
        from winml.modelkit.evaluation.custom_metric import load_metric, make_metric, names_file
        from winml.modelkit.search.autoconfig import autoconfig as run
        from winml.modelkit.search.prepare import AutoconfigRequest
        from winml.modelkit.search.strategy import SearchLimits

        named = metric if isinstance(metric, str) and not names_file(metric) else None
        custom = None
        if metric is not None and named is None:
            custom = load_metric(metric) if isinstance(metric, str) else make_metric(metric)
        request = AutoconfigRequest(
            model=call.model(model),
            output=require_output(output),
            targets=words_of(target) or (None,),
            objective=objective,
            data=call.data(data, samples=samples, columns=columns, processor=processor, length=length, seed=seed),
            task=task,
            metric=named,
            custom=custom,
            task_options={name: str(value) for name, value in (task_options or {}).items()},
            min_metric=min_metric,
            max_metric=max_metric,
            max_drop=max_drop,
            min_agreement=min_agreement,
            judge=judge,
            calibration=call.data(calibration, columns=columns, processor=processor, length=length, seed=seed),
            inputs=call.inputs(
                inputs, dims=dims, shapes=shapes, batch_size=batch_size, int_ranges=int_ranges, seed=seed
            ),
            threads=threads,
            ep_options=options_of(ep_options),
            trust=trust_of(trust_options),
            limits=SearchLimits(
                budget_s=math.inf if budget is None else budget, stop_at_pct=stop_at, max_discards=max_discards
            ),
            resume=resume,
            overwrite=overwrite,
            space=text_of(space),
            sensitivity=text_of(mixed),
            preset=preset,
            only=words_of(only),
            reuse=text_of(reuse),
            knowledge=text_of(knowledge),
            raise_priority=raise_priority,
            seed=seed,
        )
        return run(request, call.on_event)


def matrix(
    models: ModelLike | Sequence[ModelLike],
    *,
    output: PathLike,
    target: Words | None = None,
    task: str | None = None,
    calibration: DataLike | None = None,
    samples: int | None = None,
    columns: Mapping[str, str] | None = None,
    processor: PathLike | None = None,
    seed: int = 0,
    compile: bool = False,  # noqa: A002 - as the option is called
    analyze: bool = True,
    trust_options: Words = (),
    run_stamp: str | None = None,
    package_name: str | None = None,
    feed: str | None = None,
    resume: bool = False,
    keep_local: bool = False,
    skip_existing: bool = False,
    jobs: int = 1,
    max_disk: int | None = None,
    timeout: float = 3600.0,
    on_event: OnEvent | None = None,
    progress: bool | None = None,
) -> RunResult:
    """Build every model for every target, by default the eight of the matrix, in the folder `output`.

    Finished cells are published to `feed`; `resume` continues an interrupted run. Cells that failed raise, with all
    cells in `error.result`. `max_disk` is in bytes.
    """
    at_least(1, samples=samples, jobs=jobs, max_disk=max_disk)
    more_than_zero(timeout=timeout)
    needs(calibration, "calibration", samples=samples, columns=columns, processor=processor)
    with calling(on_event, progress, MatrixProgress) as call:
        from winml.modelkit.build_matrix.cells import make_build_options
        from winml.modelkit.build_matrix.command import PlanRequest, RunRequest
        from winml.modelkit.build_matrix.command import run as run_matrix
        from winml.modelkit.build_matrix.models import check_models, make_model
        from winml.modelkit.core.plain_text import command_line

        named = call.models(models)
        place, targets = require_output(output), words_of(target)
        words = [word for name in named for word in ("-m", name)]
        words += ["--targets", ",".join(targets)] if targets else []
        request = RunRequest(
            plan=PlanRequest(
                models=check_models([make_model(name, Path.cwd(), task=task) for name in named]),
                targets=targets,
                run_stamp=run_stamp,
                package_name=package_name,
                compile=compile,
                options=make_build_options(
                    call.data(
                        calibration,
                        samples=samples,
                        columns=columns,
                        processor=processor,
                        seed=seed,
                        name="calibration",
                    ),
                    samples=samples,
                    seed=seed,
                    analyze=analyze,
                    trusted=trust_of(trust_options).names,
                    timeout_s=timeout,
                ),
            ),
            output=place,
            command=command_line(["winml", "matrix", "run", *words, "-o", place]),
            feed=feed,
            resume=resume,
            keep_local=keep_local,
            skip_existing=skip_existing,
            jobs=jobs,
            max_disk=max_disk,
        )
        return run_matrix(request, call.on_event)


def sys() -> SysResult:
    """What this machine has, and for every execution provider whether it can be used and why not."""
    with calling():
        from winml.modelkit.ep.sys_command import describe_system

        return describe_system()
