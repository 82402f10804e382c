"""Files of the Hugging Face hub, from its cache on this machine or from the network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from winml.modelkit.core.config import HUB
from winml.modelkit.core.errors import DataError, ModelFileError, ModelkitError, UnavailableError, of_system
from winml.modelkit.data.answers import HubModel
from winml.modelkit.data.extras import extra

DESCRIPTION = ("config.json", "*.json", "*.index.json")
"""Files that say what a model is."""
PROCESSOR = ("*.txt", "*.model", "*.jinja", "*.tiktoken")
"""Files of tokenizers and processors that are not JSON."""
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
CODE = ("*.py",)
"""Code that comes with a model; fetched only if it is trusted."""
_SKIPPED = ("onnx/*", "openvino/*", "*/*.safetensors", "original/*", "training_args.bin")
"""The same model once more in other formats."""


def model(args: dict[str, Any], context: Any) -> HubModel:
    """Worker operation: the folder of a model in the hub's cache, with its weights unless `weights` is false."""
    patterns = [*DESCRIPTION, *PROCESSOR, *(CODE if args.get("code") else ())]
    *others, last = _weights(args)
    for weights in others:
        try:
            return _fetch(args, [*patterns, *weights])
        except UnavailableError:
            continue  # a cache that has them in the older format is as good
    return _fetch(args, [*patterns, *last])


def _fetch(args: dict[str, Any], patterns: list[str]) -> HubModel:
    folder = _snapshot(args["repo"], args["revision"], patterns, _SKIPPED)
    return HubModel(folder=folder, revision=folder.name)


def _weights(args: dict[str, Any]) -> list[tuple[str, ...]]:
    """Weights in one format, the safe one where there are both; what to try when the hub cannot be reached."""
    if not args.get("weights", True):
        return [()]
    listed = _list_files(args["repo"], args["revision"])
    if listed is None:
        return [(pattern,) for pattern in WEIGHTS]
    safe = any(name.endswith(".safetensors") and "/" not in name for name in listed)
    return [(WEIGHTS[0 if safe else 1],)]


def weight_types(args: dict[str, Any], context: Any) -> dict[str, int] | None:
    """Worker operation: numbers in a model's weights by type, from headers alone; None when the hub cannot tell."""
    hub, errors = _hub(), _hub("huggingface_hub.errors")
    unknown = (errors.HTTPError, errors.OfflineModeIsEnabled, errors.NotASafetensorsRepoError,
               errors.SafetensorsParsingError)  # fmt: skip
    try:
        found = hub.HfApi().get_safetensors_metadata(args["repo"], revision=args["revision"])
    except unknown:
        return None
    return {str(kind): int(count) for kind, count in found.parameter_count.items()}


def file(args: dict[str, Any], context: Any) -> Path:
    """Worker operation: one ONNX file with the external data beside it."""
    path = args["file"]
    folder = _snapshot(args["repo"], args["revision"], [path, f"{path}_data*", f"{path}.data*", *DESCRIPTION])
    if not (folder / path).is_file():
        names = sorted(name for name in _list_files(args["repo"], args["revision"]) or () if name.endswith(".onnx"))
        raise ModelFileError(
            f"`{args['repo']}` has no file `{path}`",
            hint=f"it has {', '.join(f'`{name}`' for name in names[:8])}" if names else "it has no ONNX file",
        )
    return Path(folder / path)


def data_file(source: str) -> Path:
    """The file of a data set that is written `hf:ORG/NAME/FILE[@REVISION]`, from the cache or from the hub."""
    named, _, revision = source.removeprefix(HUB).partition("@")
    owner, _, rest = named.partition("/")
    name, _, path = rest.partition("/")
    if not (owner and name and path):
        raise DataError(
            f"`{source}` does not name a file of a data set", hint="write `hf:ORG/NAME/FILE`, for one file of it"
        )
    hub, errors, repo = _hub(), _hub("huggingface_hub.errors"), f"{owner}/{name}"
    try:
        return Path(hub.hf_hub_download(repo, path, repo_type="dataset", revision=revision or None))
    except errors.EntryNotFoundError as error:
        if isinstance(error, errors.LocalEntryNotFoundError):
            raise _hub_error(error, errors, repo, revision or None) from error
        raise DataError(f"the data set `{repo}` has no file `{path}`") from error
    except (errors.HTTPError, errors.RevisionResolutionError, OSError) as error:
        raise _hub_error(error, errors, repo, revision or None) from error


def commit_of(path: Path) -> str | None:
    """The commit that a file in the hub's cache is of; None for a file elsewhere."""
    parts = path.parts
    places = [index for index, part in enumerate(parts[:-1]) if part == "snapshots"]
    return parts[places[-1] + 1] if places else None


def _hub(module: str = "huggingface_hub") -> Any:
    return extra(module, name="hf", what="the Hugging Face hub")


def _list_files(repo: str, revision: str | None) -> list[str] | None:
    """The names of a repository's files; None when the hub cannot be reached and only its cache is available."""
    hub, errors = _hub(), _hub("huggingface_hub.errors")
    try:
        return list(hub.HfApi().list_repo_files(repo, revision=revision))
    except errors.HfHubHTTPError as error:
        raise _hub_error(error, errors, repo, revision) from error
    except (errors.OfflineModeIsEnabled, errors.HTTPError, errors.RevisionResolutionError):
        return None  # fetching looks into the cache, and reports it when that has nothing


def _snapshot(repo: str, revision: str | None, patterns: Sequence[str], skipped: Sequence[str] = ()) -> Path:
    """The folder of a repository with the files that fit; errors of the hub become ours."""
    hub, errors = _hub(), _hub("huggingface_hub.errors")
    try:
        found = hub.snapshot_download(
            repo, revision=revision, allow_patterns=list(patterns), ignore_patterns=list(skipped)
        )
    except (errors.HTTPError, errors.RevisionResolutionError, OSError) as error:
        raise _hub_error(error, errors, repo, revision) from error
    return Path(found)


def _hub_error(error: Exception, errors: Any, repo: str, revision: str | None) -> ModelkitError:
    if isinstance(error, OSError) and error.errno is not None and (found := of_system(error)) is not None:
        return found  # the cache of the hub is on a disk, too
    at = "" if revision is None else f" at `{revision}`"
    if isinstance(error, errors.GatedRepoError):
        return UnavailableError(
            f"`{repo}` is gated: its owner must grant access",
            hint=f"request access on the page of {repo} on the hub, then log in with `hf auth login`",
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return ModelFileError(f"`{repo}` has no revision `{revision}`", hint="name a branch, a tag or a commit")
    if isinstance(error, errors.RepositoryNotFoundError):
        return ModelFileError(
            f"`{repo}` was not found on this machine or on the hub",
            hint="check the spelling; for a private one log in with `hf auth login`; name a local one by its path",
        )
    if isinstance(error, errors.OfflineModeIsEnabled | errors.LocalEntryNotFoundError | errors.RevisionResolutionError):
        return UnavailableError(
            f"`{repo}`{at} is not in the hub's cache on this machine, and the hub cannot be reached",
            hint="connect once and unset HF_HUB_OFFLINE, copy the cache (HF_HOME), or name a local folder",
        )
    status = getattr(getattr(error, "response", None), "status_code", None)
    answered = f"answered with status {status}" if status else f"cannot be reached: {type(error).__name__}"
    return UnavailableError(f"the hub {answered} for `{repo}`{at}", hint="try again later, or name a local folder")
