"""Files of the Hugging Face hub, from its cache on this machine or from the network."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from winml.modelkit.core.config import HUB
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError, ModelFileError, ModelkitError, UnavailableError, of_system
from winml.modelkit.core.events import HubWaiting
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
ANSWER_S = 5.0
"""Seconds the hub has for a first answer, unless HF_HUB_ETAG_TIMEOUT says so; the library itself would wait minutes."""
ATTEMPTS = 2
_PAUSE_S = 1.0
_TELL_EVERY_S = 1.0


@dataclass(frozen=True)
class _Answer:
    """What the hub says of a repository."""

    sizes: Mapping[str, int]
    """Its files with their bytes, 0 where the hub does not say."""
    why_not: str | None = None
    """Why there is no answer, so that only the cache of this machine can be used."""


def model(args: dict[str, Any], context: Any) -> HubModel:
    """Worker operation: the folder of a model in the hub's cache, with its weights unless `weights` is false."""
    patterns = [*DESCRIPTION, *PROCESSOR, *(CODE if args.get("code") else ())]
    answer = _ask(args["repo"], args["revision"], context)
    *others, last = _weights(args, answer)
    for weights in others:
        try:
            return _fetch(args, [*patterns, *weights], answer, context)
        except UnavailableError:
            continue  # a cache that has them in the older format is as good
    return _fetch(args, [*patterns, *last], answer, context)


def _fetch(args: dict[str, Any], patterns: list[str], answer: _Answer, context: Any) -> HubModel:
    folder = _snapshot(args["repo"], args["revision"], patterns, answer, context, _SKIPPED)
    return HubModel(folder=folder, revision=folder.name)


def _weights(args: dict[str, Any], answer: _Answer) -> list[tuple[str, ...]]:
    """Weights in one format, the safe one where there are both; what to try when the hub cannot be reached."""
    if not args.get("weights", True):
        return [()]
    if answer.why_not is not None:
        return [(pattern,) for pattern in WEIGHTS]
    safe = any(name.endswith(".safetensors") and "/" not in name for name in answer.sizes)
    return [(WEIGHTS[0 if safe else 1],)]


def _ask(repo: str, revision: str | None, context: Any) -> _Answer:
    """What the hub says of a repository, within seconds; one that it does not give us is an error."""
    hub, errors = _hub(), _hub("huggingface_hub.errors")
    if _hub("huggingface_hub.constants").HF_HUB_OFFLINE:
        return _Answer({}, "HF_HUB_OFFLINE is set")
    limit_s = _answer_s()
    for attempt in range(1, ATTEMPTS + 1):
        context.tell(HubWaiting(repo=repo, endpoint=_endpoint(), doing="asking", limit_s=limit_s * ATTEMPTS))
        try:
            info = hub.HfApi().model_info(repo, revision=revision, files_metadata=True, timeout=limit_s)
            return _Answer({file.rfilename: file.size or 0 for file in info.siblings or ()})
        except errors.HfHubHTTPError as error:
            if attempt < ATTEMPTS and _status(error) >= _SERVER_FAILED:
                time.sleep(_PAUSE_S)
                continue
            raise _hub_error(error, errors, repo, revision) from error
        except (errors.HTTPError, errors.RevisionResolutionError, OSError) as error:
            if attempt == ATTEMPTS:
                return _Answer({}, _no_answer(error, limit_s))
            time.sleep(_PAUSE_S)
    raise AssertionError("the last attempt returns or raises")


_SERVER_FAILED = 500


def _status(error: Exception) -> int:
    return int(getattr(getattr(error, "response", None), "status_code", 0) or 0)


def _answer_s() -> float:
    """Seconds for the first answer: the user's own limit of the library where there is one."""
    given = os.environ.get("HF_HUB_ETAG_TIMEOUT", "")
    return float(given) if given.isdigit() and int(given) > 0 else ANSWER_S


def _endpoint() -> str:
    return str(_hub("huggingface_hub.constants").ENDPOINT)


def _no_answer(error: Exception, limit_s: float) -> str:
    if "Timeout" in type(error).__name__:
        return f"{_endpoint()} did not answer within {limit_s:g} s, {ATTEMPTS} times"
    return f"{_endpoint()} cannot be reached: {type(error).__name__}"


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
    answer = _ask(args["repo"], args["revision"], context)
    patterns = [path, f"{path}_data*", f"{path}.data*", *DESCRIPTION]
    folder = _snapshot(args["repo"], args["revision"], patterns, answer, context)
    if not (folder / path).is_file():
        names = sorted(name for name in answer.sizes if name.endswith(".onnx"))
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


def _snapshot(
    repo: str,
    revision: str | None,
    patterns: Sequence[str],
    answer: _Answer,
    context: Any,
    skipped: Sequence[str] = (),
) -> Path:
    """The folder of a repository with the files that fit; errors of the hub become ours."""
    hub, errors = _hub(), _hub("huggingface_hub.errors")
    wanted = sum(
        size
        for name, size in answer.sizes.items()
        if any(fnmatch.fnmatch(name, one) for one in patterns) and not any(fnmatch.fnmatch(name, o) for o in skipped)
    )
    watched = _telling(repo, wanted, context) if answer.why_not is None else contextlib.nullcontext()
    try:
        with watched:
            found = hub.snapshot_download(
                repo,
                revision=revision,
                allow_patterns=list(patterns),
                ignore_patterns=list(skipped),
                etag_timeout=_answer_s(),
                local_files_only=answer.why_not is not None,
            )
    except (errors.HTTPError, errors.RevisionResolutionError, OSError) as error:
        raise _hub_error(error, errors, repo, revision, answer.why_not) from error
    return Path(found)


@contextlib.contextmanager
def _telling(repo: str, total: int, context: Any) -> Iterator[None]:
    """Tell every second how much of a repository has arrived."""
    constants = _hub("huggingface_hub.constants")
    blobs = Path(constants.HF_HUB_CACHE) / f"models--{repo.replace('/', '--')}" / "blobs"
    before, ended = _bytes_in(blobs), threading.Event()

    def tell() -> None:
        while not ended.wait(_TELL_EVERY_S):
            done = min(max(_bytes_in(blobs) - before, 0), total) if total else None
            context.tell(
                HubWaiting(
                    repo=repo, endpoint=_endpoint(), doing="fetching", done_bytes=done, total_bytes=total or None
                )
            )

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.glob("*"):
        with contextlib.suppress(OSError):  # it got its final name meanwhile
            total += path.stat().st_size
    return total


def _hub_error(
    error: Exception, errors: Any, repo: str, revision: str | None, why_not: str | None = None
) -> ModelkitError:
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
            f"`{repo}`{at} is not in the hub's cache on this machine, and "
            + ("the hub cannot be reached" if why_not is None else why_not),
            hint="connect once and unset HF_HUB_OFFLINE, copy the cache (HF_HOME), or name a local folder",
        )
    status = _status(error)
    if status in (401, 403):
        return UnavailableError(
            f"the hub does not give `{repo}`{at} to this user (status {status})",
            hint="log in with `hf auth login`, and request access on its page if it is gated; or name a local folder",
        )
    answered = f"answered with status {status}" if status else f"cannot be reached: {type(error).__name__}"
    return UnavailableError(f"the hub {answered} for `{repo}`{at}", hint="try again later, or name a local folder")
