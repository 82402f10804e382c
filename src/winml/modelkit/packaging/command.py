"""`winml package`: artifacts that passed the gates as one folder or archive, and the check of one."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Literal

import winml.modelkit
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import CheckFailed, DataError, RequestError, UnavailableError
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import Count, key
from winml.modelkit.ep import catalog
from winml.modelkit.packaging import card, contents, evidence, loader, samples
from winml.modelkit.packaging.evidence import BuildFolder, EvidenceFile
from winml.modelkit.packaging.gates import GateAnswer, Limits, find_stopped, judge_artifact
from winml.modelkit.packaging.keys import SecretKey, load_secret_key, make_key, sign, write_key
from winml.modelkit.packaging.manifest import (
    Conditions,
    PackagedArtifact,
    PackagedFile,
    PackagedSession,
    PackageManifest,
    PackageSource,
    encode,
    read_manifest,
)
from winml.modelkit.store import atomic, digest

LEAST_RUNTIME = "1.24"
"""What this project builds for and tests with at the least."""
_LICENSES = ("LICENSE*", "LICENCE*", "COPYING*", "NOTICE*")


@dataclass(frozen=True, kw_only=True)
class PackageRequest:
    """Everything the user decided."""

    builds: tuple[str, ...]
    output: str
    evidence: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    accept_unknown: tuple[str, ...] = ()
    leave_out_failed: bool = False
    licenses: tuple[str, ...] = ()
    name: str | None = None
    key: str | None = None
    key_password: str | None = None
    overwrite: bool = False


@dataclass(frozen=True, kw_only=True)
class JudgedBuild:
    """What the gates said of a build."""

    build: str
    target: Target = key(inline=True)
    precision: str
    packaged: bool
    gates: tuple[GateAnswer, ...]


@dataclass(frozen=True, kw_only=True)
class PackageAttempt:
    """What the gates said, when nothing was written."""

    builds: tuple[JudgedBuild, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class PackageResult(CommandResult):
    """A package that was written."""

    schema: Literal["winml/package/1"] = "winml/package/1"
    ok: Literal[True] = True
    action: Literal["create"] = "create"
    path: str
    name: str
    builds: tuple[JudgedBuild, ...]
    files: Count
    bytes: Count
    shared_bytes: Count
    """Bytes that several artifacts use and that are stored once."""
    signed_with: str | None
    """The public key."""
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class PackageVerification(CommandResult):
    """A package whose every file is as its manifest says."""

    schema: Literal["winml/package/1"] = "winml/package/1"
    ok: Literal[True] = True
    action: Literal["verify"] = "verify"
    path: str
    name: str
    targets: tuple[str, ...]
    files: Count
    bytes: Count
    signature: Literal["fits", "not checked", "none"]
    """`not checked`: it is signed, and no public key was given."""
    comment: str | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class KeyResult(CommandResult):
    """A key that was made."""

    schema: Literal["winml/package/1"] = "winml/package/1"
    ok: Literal[True] = True
    action: Literal["create-key"] = "create-key"
    secret: str
    public: str
    public_key: str


def create(request: PackageRequest) -> PackageResult:
    """Judge builds and write those that passed; one that did not stops the package unless it may be left out."""
    output = Path(request.output)
    _check_output(output, overwrite=request.overwrite)
    signer = None if request.key is None else load_secret_key(Path(request.key), request.key_password)
    builds = _read_builds(request.builds)
    files = tuple(evidence.read_evidence(one) for one in request.evidence)
    packed = {build.folder: contents.pack_model(build.model, _stem(build)) for build in builds}
    judged = [_judge(build, files, _bytes_of(packed[build.folder]), request, builds) for build in builds]
    _raise_for(judged, request)
    kept = _order([b for b, one in zip(builds, judged, strict=True) if one.packaged])
    gates = {one.build: one.gates for one in judged}
    warnings = [f"no file is evidence for a build: `{one.path}`" for one in files
                if not any(evidence.names_build(b, one) for b in builds)]  # fmt: skip
    tree = _make_tree(kept, packed, gates, files, request, warnings)
    if signer is not None:
        _sign(tree, signer)
    _write(tree, output, overwrite=request.overwrite)
    total = sum(tree.size(name) for name in tree.names)
    used = sum(_bytes_of(packed[build.folder]) for build in kept)
    stored = sum(tree.size(name) for name in tree.names if name.startswith(f"{contents.FOLDER}/"))
    return PackageResult(
        path=str(output),
        name=tree.name,
        builds=tuple(judged),
        files=len(tree.names),
        bytes=total,
        shared_bytes=max(0, used - stored),
        signed_with=None if signer is None else signer.public_text,
        warnings=tuple(warnings),
    )


def _check_output(output: Path, *, overwrite: bool) -> None:
    if output.exists() and not overwrite:
        raise RequestError(f"output `{output}` exists", hint="name another, or add `--overwrite` to replace it")
    if output.exists() and output.is_dir() != (output.suffix.lower() != ".zip"):
        raise RequestError(f"`{output}` is not a package that can be replaced")
    if output.is_dir() and any(output.iterdir()) and not (output / loader.MANIFEST).is_file():
        raise RequestError(f"`{output}` is not a package, and is not replaced by one")
    atomic.check_place(output.absolute().parent if output.exists() else output)


def _read_builds(arguments: Sequence[str]) -> list[BuildFolder]:
    builds = [evidence.read_build(one) for one in arguments]
    first = builds[0]
    seen: dict[str, BuildFolder] = {}
    for build in builds:
        if build.manifest.source.artifact.digest != first.manifest.source.artifact.digest:
            raise RequestError(
                f"`{build.folder}` was built from another model than `{first.folder}`",
                hint="a package holds one model; build both from the same file",
            )
        other = seen.setdefault(str(build.target), build)
        if other is not build:
            raise RequestError(f"`{other.folder}` and `{build.folder}` are both for {build.target}")
    ports = [contents.read_ports(build.model) for build in builds]
    for build, (inputs, outputs) in zip(builds, ports, strict=True):
        for mine, theirs in ((inputs, ports[0][0]), (outputs, ports[0][1])):
            if contents.describe_ports(mine) != contents.describe_ports(theirs):
                raise RequestError(f"`{build.folder}` has other inputs or outputs than `{first.folder}`")
    return builds


def _stem(build: BuildFolder) -> str:
    return f"{build.target.ep}_{build.target.device}"


def _bytes_of(packed: contents.PackedModel) -> int:
    return len(packed.raw) + sum(file.stat().st_size for file in packed.beside.values())


def _judge(
    build: BuildFolder,
    files: Sequence[EvidenceFile],
    size: int,
    request: PackageRequest,
    builds: Sequence[BuildFolder],
) -> JudgedBuild:
    known = evidence.gather(build, files, size, builds)
    answers = judge_artifact(known, request.limits, request.accept_unknown)
    return JudgedBuild(
        build=str(build.folder),
        target=build.target,
        precision=build.manifest.precision,
        packaged=not find_stopped(answers),
        gates=answers,
    )


def _raise_for(judged: Sequence[JudgedBuild], request: PackageRequest) -> None:
    stopped = [one for one in judged if not one.packaged]
    if not stopped or (request.leave_out_failed and len(stopped) < len(judged)):
        return
    words = "; ".join(
        f"{one.target}: {answer.gate} {answer.answer} ({answer.reason})"
        for one in stopped
        for answer in find_stopped(one.gates)
    )
    hint = "give what is missing with `--evidence FILE`, or add `--leave-out-failed` to package the others"
    raise CheckFailed(f"not packaged: {words}", hint=hint, result=PackageAttempt(builds=tuple(judged)))


def _order(builds: Sequence[BuildFolder]) -> list[BuildFolder]:
    """NPU, GPU, CPU; on a device in the order of the table of EPs, the plain CPU last: it works everywhere."""

    def rank(build: BuildFolder) -> tuple[int, int, int]:
        target = build.target
        eps = catalog.DEVICE_EPS[target.device]
        place = eps.index(target.ep) if target.ep in eps else len(eps)
        return catalog.AUTO_DEVICES.index(target.device), target.ep == "cpu", place

    return sorted(builds, key=rank)


@dataclass
class _Tree:
    """The files of a package before they are written."""

    name: str
    written: dict[str, bytes]
    copied: dict[str, Path]

    @property
    def names(self) -> list[str]:
        return sorted({*self.written, *self.copied})

    def size(self, name: str) -> int:
        return len(self.written[name]) if name in self.written else self.copied[name].stat().st_size

    def entry(self, name: str) -> PackagedFile:
        made = digest.of_bytes(self.written[name]) if name in self.written else digest.of_file(self.copied[name])
        return PackagedFile(digest=made, bytes=self.size(name))


def _make_tree(
    builds: Sequence[BuildFolder],
    packed: Mapping[Path, contents.PackedModel],
    gates: Mapping[str, tuple[GateAnswer, ...]],
    files: Sequence[EvidenceFile],
    request: PackageRequest,
    warnings: list[str],
) -> _Tree:
    tree = _Tree(request.name or builds[0].name, {}, {})
    artifacts = []
    by_content: dict[bytes, str] = {}
    for build in builds:
        model = packed[build.folder]
        name = by_content.setdefault(model.raw, model.name)
        tree.written[name] = model.raw
        tree.copied.update(model.beside)
        artifacts.append(_artifact(build, (name, *sorted(model.beside)), gates[str(build.folder)], files))
    inputs, outputs = contents.read_ports(builds[-1].model)
    why = samples.why_no_samples(inputs, outputs)
    if why is None:
        made = samples.cpp_program(tree.name, inputs, outputs, artifacts)
        tree.written["samples/cpp/main.cpp"] = made.encode()
        tree.written["samples/csharp/Program.cs"] = samples.csharp_program(
            tree.name, inputs, outputs, artifacts
        ).encode()
        tree.written["samples/csharp/sample.csproj"] = samples.CSHARP_PROJECT.encode()
    else:
        warnings.append(f"no sample programs: {why}")
    licenses = _add_licenses(tree, builds[0], request.licenses)
    if not licenses:
        warnings.append("no licence file was found or given; add one with `--license FILE`")
    sizes = {name: tree.size(name) for name in tree.names}
    source = builds[0].manifest.source.artifact.digest
    tree.written["README.md"] = card.card_text(tree.name, source, inputs, outputs, artifacts, licenses, sizes).encode()
    manifest = PackageManifest(
        winml=winml.modelkit.__version__,
        name=tree.name,
        source=PackageSource(name=builds[0].name, digest=source),
        inputs=inputs,
        outputs=outputs,
        artifacts=tuple(artifacts),
        accepted_unknown=tuple(sorted({a.gate for one in artifacts for a in one.gates if a.accepted is not None})),
        licenses=tuple(licenses),
        files={name: tree.entry(name) for name in tree.names},
    )
    tree.written[loader.MANIFEST] = encode(manifest)
    return tree


def _artifact(
    build: BuildFolder, names: tuple[str, ...], gates: tuple[GateAnswer, ...], files: Sequence[EvidenceFile]
) -> PackagedArtifact:
    info, environment = catalog.BY_NAME[build.target.ep], evidence.environment_of(build, files)
    systems = sorted({system for package in info.packages for system in package.systems})
    compiled = {k: v for k, v in build.compile_options.items() if k in info.device_choosing}
    package, version = _find_compiler(build)
    return PackagedArtifact(
        target=build.target,
        precision=build.manifest.precision,
        model=names[0],
        files=names,
        build=build.manifest.identity,
        session=PackagedSession(
            threads=build.session.threads,
            optimization_level=build.session.optimization_level,
            config_entries=build.session.config_entries,
            ep_options=build.session.ep_options,
        ),
        conditions=Conditions(
            provider=info.full_name,
            device=build.target.device,
            systems=tuple(systems),
            onnxruntime_at_least=LEAST_RUNTIME,
            onnxruntime_tested=None if environment is None else environment.runtime.version,
            provider_package=package,
            provider_at_least=version,
            provider_tested=None if environment is None else environment.ep.version,
            driver_tested=None,
            soc=", ".join(f"{k}={v}" for k, v in sorted(compiled.items())) or None,
            memory_bytes=evidence.peak_memory(build, files),
        ),
        gates=gates,
        accuracy=evidence.accuracy_facts(build, files),
        latency=evidence.latency_fact(build, files),
    )


def _find_compiler(build: BuildFolder) -> tuple[str | None, str | None]:
    """The package that compiled an artifact, and its version; nothing for one that is compiled where it runs."""
    packages = {package.distribution for package in catalog.BY_NAME[build.target.ep].packages}
    for stage in build.manifest.stages:
        if stage.stage == "compile":
            for name in sorted(packages & set(stage.libraries)):
                return name, stage.libraries[name]
    return None, None


def _add_licenses(tree: _Tree, build: BuildFolder, given: Sequence[str]) -> list[str]:
    """Licence files that were given, or lie beside the source of the model."""
    paths = [Path(one) for one in given]
    for path in paths:
        if not path.is_file():
            raise RequestError(f"licence file not found: `{path}`")
    source = Path(build.manifest.source.path)
    folder = source if source.is_dir() else source.parent
    if not paths and source.is_absolute() and folder.is_dir():
        paths = sorted(path for pattern in _LICENSES for path in folder.glob(pattern) if path.is_file())
    names = []
    for path in paths:
        name = f"licenses/{path.name}"
        if why := loader.why_unsafe(name):
            raise RequestError(f"`{path.name}` cannot be packaged: {why}", hint="rename the file")
        if name in tree.written:
            raise RequestError(f"two licence files are named `{path.name}`")
        tree.written[name] = path.read_bytes()
        names.append(name)
    return names


def _sign(tree: _Tree, signer: SecretKey) -> None:
    signature = sign(signer, tree.written[loader.MANIFEST], f"winml package {tree.name}")
    tree.written[loader.SIGNATURE] = signature.encode()


def _write(tree: _Tree, output: Path, *, overwrite: bool) -> None:
    """Write everything beside the place, and then put it there: it is whole or absent."""
    place = output.absolute()
    atomic.make_folder(place.parent)
    temporary = atomic.temporary_name(place.parent)
    try:
        if output.suffix.lower() == ".zip":
            _write_archive(tree, temporary)
            atomic.replace(temporary, place)
            return
        for name in tree.names:
            target = temporary / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if name in tree.written:
                target.write_bytes(tree.written[name])
            else:
                shutil.copyfile(tree.copied[name], target)
        old = atomic.temporary_name(place.parent)
        if place.exists():
            assert overwrite
            atomic.move(place, old)
        atomic.move(temporary, place)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise atomic.write_error(error, output) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        atomic.discard(temporary)


def _write_archive(tree: _Tree, path: Path) -> None:
    """An archive with the same bytes for the same content."""
    with zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED) as archive:
        for name in tree.names:
            info = zipfile.ZipInfo(name)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            with archive.open(info, "w", force_zip64=True) as stream:
                if name in tree.written:
                    stream.write(tree.written[name])
                else:
                    with tree.copied[name].open("rb") as source:
                        shutil.copyfileobj(source, stream)


def read_public_key(argument: str) -> str:
    """The text of a public key: a file, or the key itself."""
    path = Path(argument)
    try:
        text = path.read_text("utf-8") if path.is_file() else argument
        loader.read_public_key(text)
    except (loader.SignatureProblem, OSError, UnicodeDecodeError) as error:
        raise RequestError(f"`{argument}` is not a public key: {error}", hint="name the `.pub` file") from error
    return text


def verify(path: str, public_key: str | None) -> PackageVerification:
    """Check every file of a package, and its signature where a public key is given; raises with what is wrong."""
    wanted = None if public_key is None else read_public_key(public_key)
    if not Path(path).exists():
        raise RequestError(f"package not found: `{path}`")
    try:
        files = loader.open_files(path)
        try:
            value, comment = loader.verify_package(files, wanted)
            signed = loader.SIGNATURE in set(files.names())
            unlisted = [loader.MANIFEST, *([loader.SIGNATURE] if signed else [])]
            own_bytes = sum(_length(files, name) for name in unlisted)
        finally:
            files.close()
    except loader.PackageError as error:
        raise CheckFailed(
            f"`{path}` is refused: {error}", hint="get the package again from where it was made"
        ) from error
    manifest = read_manifest(value)
    warnings = (
        ["it is signed, and the signature was not checked: add `--public-key FILE`"] if signed and not wanted else []
    )
    return PackageVerification(
        path=path,
        name=manifest.name,
        targets=tuple(str(one.target) for one in manifest.artifacts),
        files=len(manifest.files) + len(unlisted),
        bytes=sum(entry.bytes for entry in manifest.files.values()) + own_bytes,
        signature="fits" if wanted is not None else "not checked" if signed else "none",
        comment=comment,
        warnings=tuple(warnings),
    )


def _length(files: loader.Files, name: str) -> int:
    with files.open(name) as stream:
        return len(stream.read())


def load(path: str, **options: object) -> loader.LoadedPackage:
    """Open a package here; what is wrong with it is an error of this package."""
    try:
        return loader.load_package(path, **options)  # type: ignore[arg-type]
    except loader.PackageError as error:
        refused = UnavailableError if str(error).startswith("nothing in the package works") else DataError
        raise refused(str(error)) from error


def create_key(output: str) -> KeyResult:
    """Make a key: `output` and `output.pub`."""
    made, secret = make_key(), Path(output)
    public = secret.with_name(f"{secret.name}.pub")
    write_key(made, secret, public)
    return KeyResult(secret=str(secret), public=str(public), public_key=made.public_text)


@dataclass(frozen=True, kw_only=True, repr=False)
class LoaderCopy(CommandResult):
    """The loader, written as a file."""

    schema: Literal["winml/package/1"] = "winml/package/1"
    ok: Literal[True] = True
    action: Literal["copy-loader"] = "copy-loader"
    file: str
    bytes: Count


def copy_loader(output: str, *, overwrite: bool) -> LoaderCopy:
    """Write the module that opens packages to a file."""
    place, source = Path(output), Path(loader.__file__).read_bytes()
    if place.exists() and not overwrite:
        raise RequestError(f"output file exists: `{place}`", hint="add `--overwrite` to replace it")
    atomic.write_bytes(place.absolute(), source)
    return LoaderCopy(file=output, bytes=len(source))
