"""The PyTorch model in a folder, as it is traced and as it is compared with."""

from __future__ import annotations

import copy
import importlib
import os
import re
import sys
from pathlib import Path
from typing import Any

from winml.modelkit.building.export import families
from winml.modelkit.building.export.fit import find_misfit
from winml.modelkit.building.export.folder import PLAIN_ATTENTION, PROVES_A_PROBE, ModelFolder
from winml.modelkit.core.config import ExportSection
from winml.modelkit.core.errors import ModelFileError, RequestError, UnavailableError
from winml.modelkit.core.tasks import TASKS

_MISSING_PACKAGE = re.compile(r"requires the ([A-Za-z0-9_.-]+) library|No module named '([A-Za-z0-9_-]+)'")
_MANY_WEIGHTS = 300_000_000
_LAYERS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers")
_HINT = "`pip install 'winml-modelkit[hf]'`"


def block_kernels() -> None:
    """Make sure that no kernel of the hub is loaded: a config may name one as its attention, and it is native code."""
    os.environ["USE_HUB_KERNELS"] = "OFF"
    sys.modules["kernels"] = None  # type: ignore[assignment]  # the documented way to make an import fail


def library() -> Any:
    """transformers, with its logging and its network access off."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # what is missing in a folder is an error, never a download
    block_kernels()
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    try:
        import torch  # noqa: F401 - transformers imports without it, and then has no models
        import transformers
    except ModuleNotFoundError as error:
        raise UnavailableError(
            f"exporting a Hugging Face model needs the Python package `{error.name}`",
            hint=f"install torch==2.13.0 by that pin, then {_HINT}",
        ) from error
    return transformers


def load(folder: Path, section: ExportSection, *, attention: str | None, trust: bool) -> Any:
    """The model for the section's task, ready to run; None for `attention` leaves the library's choice.

    The choice of the config applies only where it is code of the library: others are kernels, which are native code.
    """
    transformers = library()
    described = ModelFolder(folder)
    described.require_weights()
    cls = _class(transformers, described, section)
    attention = attention or (None if described.foreign_attention is None else PLAIN_ATTENTION)
    how: dict[str, Any] = {} if attention is None else {"attn_implementation": attention}
    if described.remote_code:
        how["trust_remote_code"] = trust
    try:
        model, report = cls.from_pretrained(
            folder,
            dtype="float32",
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # reported below, with the sizes
            **how,
        )
    except MemoryError:
        raise
    except Exception as error:
        raise _explain_failure(error, described, section) from error
    misfit = find_misfit(report, (name for name, _ in model.named_parameters()), described)
    if misfit is not None:
        raise misfit
    if report["missing_keys"]:
        raise ModelFileError(
            f"`{folder}` has no weights for {section.task}: {len(report['missing_keys'])} tensors are missing, such as "
            f"`{min(report['missing_keys'])}`",
            hint=f"it was saved for {described.architecture}; drop `--task`, or train the head first",
        )
    return model.eval()


def make_untrained(described: ModelFolder, section: ExportSection, *, trust: bool) -> Any:
    """The model with random weights, for a folder that has none; a large one that is no pair with fewer layers.

    What a class takes does not depend on how many layers it has, but the parts of a pair have inputs for each.
    """
    import torch

    transformers = library()
    cls = _class(transformers, described, section)
    how: dict[str, Any] = {"trust_remote_code": trust} if described.remote_code else {}
    chosen = {"dtype": torch.float32, "attn_implementation": PLAIN_ATTENTION}
    try:
        config = transformers.AutoConfig.from_pretrained(described.path, **how)
        if cls.__name__.startswith("Auto"):
            make, chosen = cls.from_config, {**chosen, **how}
        else:
            make = cls._from_config
        with torch.device("meta"):
            size = sum(weight.numel() for weight in make(copy.deepcopy(config), **chosen).parameters())
        if size > _MANY_WEIGHTS and not getattr(config, "is_encoder_decoder", False):
            _drop_layers(config)
        return make(config, **chosen).eval()
    except MemoryError:
        raise
    except Exception as error:
        raise _explain_failure(error, described, section) from error


def _drop_layers(config: Any) -> None:
    """Leave two layers in a config and in the configs of its parts."""
    for part in (config, *(value for value in vars(config).values() if hasattr(value, "to_dict"))):
        for name in _LAYERS:
            if isinstance(getattr(part, name, None), int):
                setattr(part, name, min(2, getattr(part, name)))
        if isinstance(getattr(part, "layer_types", None), list):
            part.layer_types = part.layer_types[:2]


def _class(transformers: Any, folder: ModelFolder, section: ExportSection) -> Any:
    """The class that saved the model when that is for the task, otherwise the library's for the task."""
    named = folder.architecture
    fits = named is not None and families.task_of(named, folder.family) == section.task
    if fits and named is not None:
        found = getattr(transformers, named, None) or find_unlisted_class(transformers, folder.model_type or "", named)
        if found is not None:
            return found
    if section.task == "automatic-speech-recognition" and folder.family and folder.family.shape == "encoder-decoder":
        return transformers.AutoModelForSpeechSeq2Seq
    row = TASKS.get(section.task)
    known = transformers.models.auto.configuration_auto.CONFIG_MAPPING_NAMES
    if fits and not folder.remote_code and folder.model_type not in known:
        raise RequestError(
            f"transformers {transformers.__version__} has no class `{named}`, which saved the model",
            hint="it may be newer: `pip install -U transformers`; or its code is missing in the folder",
        )
    if row is None or row.auto_class is None:
        raise RequestError(
            f"transformers has no class that loads `{folder.model_type}` models for {section.task}",
            hint=f"the model was saved as {named}; drop `--task`",
        )
    try:
        return getattr(transformers, row.auto_class)
    except AttributeError as error:  # transformers has no PyTorch models without torch
        raise UnavailableError(
            "transformers has no PyTorch models on this machine", hint=f"install torch, then {_HINT}"
        ) from error


def find_unlisted_class(transformers: Any, model_type: str, name: str) -> Any:
    """A model that the library has beside the config of its type and does not list: mostly a part of a larger one.

    Both names are those of a file; only what the library's own module defines is found by them.
    """
    table = transformers.models.auto.configuration_auto.CONFIG_MAPPING
    if model_type not in table:
        return None
    module = table[model_type].__module__
    if not module.startswith("transformers.models.") or not name.isidentifier():
        return None
    try:
        found = getattr(importlib.import_module(module.replace(".configuration_", ".modeling_")), name, None)
    except ImportError:  # of a package that the module needs; the library names it when the class is asked for
        return None
    is_model = isinstance(found, type) and issubclass(found, transformers.PreTrainedModel)
    return found if is_model else None


def _explain_failure(error: Exception, folder: ModelFolder, section: ExportSection) -> Exception:
    text = str(error).strip().splitlines()
    reason = text[0][:300] if text else type(error).__name__
    if "trust_remote_code" in str(error):
        return RequestError(
            "the model needs code that comes with it", hint="read it, then allow it with `--trust-remote-code`"
        )
    package = _MISSING_PACKAGE.search(str(error)) if isinstance(error, ImportError) else None
    if package is not None:
        return UnavailableError(
            f"{folder.architecture or folder.model_type} needs the Python package `{package[1] or package[2]}`",
            hint=f"`pip install {package[1] or package[2]}`",
        )
    if "Unrecognized configuration class" in str(error) or "does not recognize this architecture" in str(error):
        return RequestError(
            f"`{folder.model_type}` models do not support {section.task}",
            hint=f"the model was saved as {folder.architecture}; {PROVES_A_PROBE}",
        )
    return ModelFileError(
        f"`{folder.path}` cannot be loaded: {reason}", hint="fetch the model again; it may be damaged"
    )
