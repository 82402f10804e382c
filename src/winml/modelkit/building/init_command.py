"""`winml init`: a build config per target and a CI workflow, written into the folder of a project."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from pathlib import Path
from typing import Literal

from winml.modelkit import __version__, sample
from winml.modelkit.building.config import PRELOAD, ConfigRequest, MadeConfig, make
from winml.modelkit.building.pipeline.folder import write_json
from winml.modelkit.core import model_ref
from winml.modelkit.core.config import DEFAULT, HUB, RANDOM, BuildConfig, DataSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.events import OnEvent, ignore
from winml.modelkit.core.target import Target
from winml.modelkit.ep import catalog, precision, targets
from winml.modelkit.render.workflow import WorkflowJob, workflow_text
from winml.modelkit.store import atomic
from winml.modelkit.worker.client import Worker

WORKFLOW = ".github/workflows/winml.yml"
SAMPLE_FILES = {"model.onnx": sample.MODEL, "calibration.npz": sample.CALIBRATION, "test.npz": sample.TEST}
SAMPLE_TASK = "image-classification"
TORCH = "torch==2.13.0"
_TEXTS = (".csv", ".tsv", ".jsonl", ".jsonl.gz", ".txt")


@dataclass(frozen=True)
class InitRequest:
    """What the user wants; paths are those of the working directory."""

    folder: Path
    model: str | None = None
    """None stands for the sample, whose files are copied into the folder."""
    targets: tuple[str, ...] = ("cpu",)
    precision: str = precision.AUTO
    calibration: str | None = None
    data: str | None = None
    task: str | None = None
    max_drop: float = 0.01
    fail_if_slower_pct: float = 5.0
    dims: dict[str, int] = field(default_factory=dict)
    """Sizes of dynamic dimensions."""
    overwrite: bool = False


@dataclass(frozen=True, kw_only=True)
class InitConfig:
    """A config that was written, and the folder that the workflow builds by it."""

    target: str
    precision: str
    file: str
    build_folder: str


@dataclass(frozen=True, kw_only=True)
class InitResult:
    schema: Literal["winml/init/1"] = "winml/init/1"
    ok: Literal[True] = True
    folder: str
    model: str
    """As the configs name it: relative to the folder where it lies inside."""
    configs: tuple[InitConfig, ...]
    workflow: str
    files: tuple[str, ...]
    """Everything that was written, relative to the folder."""
    notes: tuple[str, ...]


def slug_of(target: str) -> str:
    """A target as a part of a file name: `qnn-npu`."""
    return target.replace("/", "-")


def init_project(request: InitRequest, on_event: OnEvent = ignore) -> InitResult:
    """Make the configs and the workflow, and write them when all of them are made."""
    folder = request.folder.absolute()
    for target in request.targets:
        targets.parse_target(target)
    if request.model is not None and request.calibration is None:
        _require_calibration(request)
    check_free(folder, [WORKFLOW], overwrite=request.overwrite)
    atomic.check_place(folder)
    copies = {} if request.model is not None else _choose_copies(folder, overwrite=request.overwrite)
    made = _make_configs(request, on_event)
    files = {f"winml-{slug_of(target)}.json": one for target, one in made.items()}
    check_free(folder, files, overwrite=request.overwrite)
    configs = {name: _make_portable(one.config, request, folder) for name, one in files.items()}
    model = next(iter(configs.values())).model or ""
    data = None if request.data is None else name_in(request.data, folder)
    if request.model is None:
        data = "test.npz" if data is None else data
    _refuse_expressions([model, data or "", request.task or ""])
    jobs = [_make_job(one, config, data, request) for one, config in zip(made.values(), configs.values(), strict=True)]
    for name, source in copies.items():
        atomic.write_bytes(folder / name, source.read_bytes())
    for name, config in configs.items():
        write_json(folder / name, config)
    atomic.write_bytes(folder / WORKFLOW, workflow_text(jobs).encode())
    notes = dict.fromkeys(note for one in made.values() for note in one.notes)
    return InitResult(
        folder=str(folder),
        model=model,
        configs=tuple(
            InitConfig(target=job.target, precision=config.precision, file=name, build_folder=job.build_folder)
            for job, (name, config) in zip(jobs, configs.items(), strict=True)
        ),
        workflow=WORKFLOW,
        files=(*copies, *configs, WORKFLOW),
        notes=(*notes, *_note_places(folder, model, request)),
    )


def _require_calibration(request: InitRequest) -> None:
    if needs_calibration(request.targets, request.precision):
        raise RequestError(
            f"precision `{request.precision}` needs calibration data",
            hint="name real samples with `--calibration`, or leave the model unquantized with `-p fp32`; "
            "`--calibration random` uses random inputs, at the cost of accuracy",
        )


def check_free(folder: Path, names: Iterable[str], *, overwrite: bool) -> None:
    """Raise when the folder is a file, or one of the files exists and may not be replaced."""
    if folder.is_file():
        raise RequestError(f"`{folder}` is a file", hint="name the folder of the project with `-o DIR`")
    for name in names:
        if (folder / name).exists() and not overwrite:
            raise RequestError(f"`{folder / name}` exists", hint="add `--overwrite` to replace it")


def _choose_copies(folder: Path, *, overwrite: bool) -> dict[str, Path]:
    """Files of the sample that are not in the folder yet."""
    missing = {
        name: source
        for name, source in SAMPLE_FILES.items()
        if not (folder / name).is_file() or (folder / name).read_bytes() != source.read_bytes()
    }
    check_free(folder, missing, overwrite=overwrite)
    return missing


def _make_configs(request: InitRequest, on_event: OnEvent) -> dict[str, MadeConfig]:
    """The config for every target, by the target that was found for it."""
    calibration = request.calibration
    if calibration is None and request.model is None:
        calibration = str(sample.CALIBRATION)
    made: dict[str, MadeConfig] = {}
    with Worker(preload=PRELOAD) as worker:
        for target in request.targets:
            asked = ConfigRequest(
                model=str(sample.MODEL) if request.model is None else request.model,
                target=target,
                precision=request.precision,
                dims=request.dims,
                # Not `data`: a target that needs none is no reason for a note.
                sample_data=None if calibration is None else DataSection(source=calibration),
            )
            one = make(asked, worker, weights=False, on_event=on_event)
            made[one.config.target] = one
    return made


def name_in(path: str, folder: Path) -> str:
    """A path relative to the folder where it lies inside, so that the project can be moved and checked out."""
    if path in (RANDOM, DEFAULT) or path.startswith(HUB):
        return path
    absolute = Path(path).absolute()
    return absolute.relative_to(folder).as_posix() if absolute.is_relative_to(folder) else str(absolute)


def _make_portable(config: BuildConfig, request: InitRequest, folder: Path) -> BuildConfig:
    """The config with names of files as the folder has them."""
    copied = {str(source): name for name, source in SAMPLE_FILES.items()} if request.model is None else {}

    def rename(path: str) -> str:
        return copied.get(path) or name_in(path, folder)

    is_local = model_ref.parse(config.model or "").kind in ("file", "build", "folder")
    model = rename(config.model or "") if is_local else config.model
    quantize = config.quantize
    if quantize is not None and quantize.calibration is not None:
        data = replace(quantize.calibration, source=rename(quantize.calibration.source))
        quantize = replace(quantize, calibration=data)
    return replace(config, model=model, quantize=quantize)


def _refuse_expressions(words: Iterable[str]) -> None:
    """GitHub replaces `${{ }}` in a workflow before any shell sees it, quotes or not."""
    for word in words:
        if "${{" in word:
            raise RequestError(f"`{word}` cannot be named in a workflow: GitHub evaluates `${{{{`", hint="rename it")


def _make_job(made: MadeConfig, config: BuildConfig, data: str | None, request: InitRequest) -> WorkflowJob:
    target = made.planned.target
    info = catalog.BY_NAME[target.ep]
    slug = slug_of(str(target))
    is_simulated = ("Linux", "x86_64") in info.simulated_on.get(target.device, ())
    systems = {system for package in info.packages for system in package.systems}
    hosted = is_simulated or target.device == "cpu"
    kinds = {package.kind for package in info.packages}
    packages = _list_packages(config, data, info.packages[0].extra)
    return WorkflowJob(
        name=slug,
        target=str(target),
        runner="ubuntu-latest" if hosted else f"[self-hosted, {'Linux' if 'Linux' in systems else 'Windows'}]",
        packages=(*packages, "windowsml") if kinds == {"windowsml"} else packages,
        ep=None if kinds & {"builtin", "plugin"} else info.name,
        config=f"winml-{slug}.json",
        build_folder=f"built-{slug}",
        model=config.model or "",
        data=data,
        task=request.task or (SAMPLE_TASK if request.model is None and request.data is None else None),
        max_drop=request.max_drop,
        min_agreement=precision.agreement(target, config.precision),
        fail_if_slower_pct=request.fail_if_slower_pct,
        is_simulated=is_simulated,
    )


def _list_packages(config: BuildConfig, data: str | None, extra: str | None) -> tuple[str, ...]:
    """What `pip` installs, one command each."""
    extras = {extra} if extra else set()
    if config.export is not None:
        extras.add("hf")
    elif data is not None and data.lower().endswith(_TEXTS):
        extras.add("text")
    if data is not None and data.lower().endswith(".parquet"):
        extras.add("parquet")
    if data is not None and Path(data).is_dir():
        extras.add("vision")
    named = f"[{','.join(sorted(extras))}]" if extras else ""
    ours = f"winml-modelkit{named}=={__version__}"
    return (TORCH, ours) if "hf" in extras else (ours,)


def _note_places(folder: Path, model: str, request: InitRequest) -> list[str]:
    """What a runner of the workflow would not find."""
    notes = []
    given = {"model": model, "calibration data": request.calibration, "data": request.data}
    for what, path in given.items():
        if path is not None and Path(name_in(path, folder) if what != "model" else path).is_absolute():
            notes.append(f"the {what} `{path}` is outside of `{folder}`: a runner of the workflow does not have it")
    above = next((parent for parent in folder.parents if (parent / ".git").exists()), None)
    if above is not None and not (folder / ".git").exists():
        notes.append(f"GitHub reads workflows in the root of a repository only, which is `{above}`")
    return notes


def needs_calibration(wanted: Iterable[str], name: str) -> bool:
    """Whether a precision needs data on one of the targets, as far as the tables know without asking an EP."""
    for target in wanted:
        asked = targets.parse_target(target)
        ep = asked.ep or catalog.BY_NAME["cpu"]
        chosen = precision.resolve(Target(ep.name, asked.device or ep.devices[0]), name)
        if precision.PRECISIONS[chosen].needs_data:
            return True
    return False
