"""Worker operation `stages.export`: loads a Hugging Face model, traces a part of it, compares it with PyTorch."""

from __future__ import annotations

import gc
import inspect
import shutil
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from winml.modelkit.building.events import ExportStep
from winml.modelkit.building.export import attempts, genai, resolve, samples
from winml.modelkit.building.export.decoder_folder import describe_decoder
from winml.modelkit.building.export.derivation import NO_CACHE
from winml.modelkit.building.export.families import DECODER, WHOLE
from winml.modelkit.building.export.folder import ModelFolder
from winml.modelkit.building.export.loading import library, load
from winml.modelkit.building.export.nearest import name_nearest
from winml.modelkit.building.export.result import (
    ExportedFile,
    ExportMetadata,
    ExportSeconds,
    ParityNotRun,
    ParityPassed,
)
from winml.modelkit.building.export.signature import PAIR_MASK
from winml.modelkit.building.export.table import libraries_of
from winml.modelkit.core.config import ExportSection
from winml.modelkit.core.errors import CheckFailed, ModelkitError, RequestError, RunFailedError, UnavailableError
from winml.modelkit.core.values import read
from winml.modelkit.graph import files, opset
from winml.modelkit.worker.memory import available_bytes, memory_of

_BESIDES_WEIGHTS = 2**29
"""What an export needs at least besides: torch, transformers and onnxruntime."""


def run(args: dict[str, Any], context: Any) -> ExportMetadata:
    """Export the folder of `args["model"]`, its config, into `args["output"]` by `args["section"]`.

    Besides: `trust_remote_code`. The report is what `export_metadata.json` holds.
    """
    folder, output = Path(args["model"]).parent, Path(args["output"])
    section = read(ExportSection, args["section"], "export")
    if section.verify and section.part in (WHOLE, DECODER):
        require_memory(ModelFolder(folder), available_bytes())
    library()
    made = _Export(folder, section, bool(args.get("trust_remote_code")), context).into(output)
    memory = memory_of()
    return replace(made, peak_memory_bytes=None if memory is None else memory["peak_bytes"])


def require_memory(folder: ModelFolder, available: int | None) -> None:
    """Raise where the comparison with PyTorch cannot fit: onnxruntime has every weight in float32 in its own memory."""
    parameters = folder.weights().parameters
    if available is None or parameters is None:
        return
    needed = 4 * parameters + _BESIDES_WEIGHTS
    if needed > available:
        raise UnavailableError(
            f"comparing this model with PyTorch takes {needed / 2**30:.1f} GiB of memory, and "
            f"{available / 2**30:.1f} GiB are free",
            hint="end other programs, or use a machine with more memory; `--no-parity` exports without comparing",
        )


class _Export:
    """One export, step by step."""

    def __init__(self, folder: Path, section: ExportSection, trust: bool, context: Any) -> None:
        self.folder = folder
        self.section = section
        self.trust = trust
        self.context = context

    def into(self, output: Path) -> ExportMetadata:
        """Export as asked; where that fails and the section allows it, with fewer open axes or the other exporter."""
        failed: list[tuple[ExportSection, ModelkitError]] = []
        for section in attempts.list_attempts(self.section, ModelFolder(self.folder)):
            try:
                return self._try(section, output, attempts.describe_fallback(section, failed))
            except (RunFailedError, CheckFailed) as error:
                # Without the frames that it came through: they hold the model, which the next attempt loads again.
                error.__cause__ = error.__context__ = None
                failed.append((section, error.with_traceback(None)))
                gc.collect()
                for path in output.parent.iterdir():
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        first = failed[0][1]  # what was tried after it asks for less, so its errors say less
        raise name_nearest(first, ModelFolder(self.folder).config) if self.section.derived else first

    def _try(self, wanted: ExportSection, output: Path, fallbacks: tuple[str, ...]) -> ExportMetadata:
        from winml.modelkit.building.export import finalize

        started = time.monotonic()
        work, data = output.parent / "work", None
        if wanted.exporter == genai.EXPORTER:
            self._tell("trace")
            section, (finished, data) = wanted, genai.build(self.folder, wanted, work)
            described = ModelFolder(self.folder)
            architecture, parameters = described.architecture or "", described.weights().parameters
        else:
            section, finished, architecture, parameters = self._trace(wanted)
        sizes = resolve.npu_sizes(ModelFolder(self.folder), section)
        finalize.note_sizes(finished, sizes, resolve.value_ranges(section), resolve.placeholders_of(section))
        written = files.save(finished, output) if data is None else files.save_with_data(finished, data, output)
        shutil.rmtree(work, ignore_errors=True)
        del finished
        exported = time.monotonic() - started
        parity, warnings = self._parity(output, section)
        left_out = self._find_skipped_inputs(section)
        return ExportMetadata(
            architecture=architecture,
            parameters=parameters,
            task=section.task,
            part=section.part,
            exporter=section.exporter,
            opset=_opset_of(output, section),
            libraries={name: version(name) for name in libraries_of(section.exporter)},
            inputs=section.inputs,
            sizes=section.sizes,
            left_out=tuple(left_out),
            files=tuple(ExportedFile(path=path.name, bytes=path.stat().st_size) for path in written),
            seconds=ExportSeconds(export=exported, verify=time.monotonic() - started - exported),
            parity=parity,
            notes=(
                *(note for note in section.derived if not note.startswith(NO_CACHE)),
                *self._attention_note(),
                # What an attempt left out by itself is in its warning.
                *(f"{architecture} takes no `{e.name}`" for e in wanted.inputs if e.name in left_out),
            ),
            warnings=(
                *fallbacks,
                *warnings,
                *(f"built whole, {note}" for note in section.derived if note.startswith(NO_CACHE)),
                *(() if section.verify else ("outputs were not compared with PyTorch: `--no-parity`",)),
            ),
        )

    def _trace(self, wanted: ExportSection) -> tuple[ExportSection, Any, str, int | None]:
        """The section as far as the model has its inputs, the traced model, its class and how many weights it has."""
        import torch

        from winml.modelkit.building.export import finalize, tracing

        self._tell("load")
        part = self._part(self.section.attention)
        section = self._fitting(part, wanted)
        arrays = samples.make_samples(section, section.sizes, seed=section.seed)
        self._tell("trace")
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        traced = tracing.trace_part(part, tensors, section)
        architecture = type(part.model).__name__
        parameters = sum(p.numel() for p in part.model.parameters())
        del part  # tracing may change it, and a large model does not fit in memory twice
        return section, finalize.finalize_model(traced, section), architecture, parameters

    def _attention_note(self) -> list[str]:
        named = ModelFolder(self.folder).foreign_attention
        if named is None:
            return []
        return [f"config.json names the attention `{named:.80}`, which is not part of transformers; it was not loaded"]

    def _tell(self, step: Literal["load", "trace", "compare"]) -> None:
        steps = ("load", "trace", "compare") if self.section.verify else ("load", "trace")
        self.context.tell(ExportStep(name=step, part=self.section.part, done=steps.index(step), total=len(steps)))

    def _part(self, attention: str | None) -> Any:
        from winml.modelkit.building.export.parts import part_of

        model = load(self.folder, self.section, attention=attention, trust=self.trust)
        if self.section.part == WHOLE and hasattr(model.config, "use_cache"):
            model.config.use_cache = False
        return part_of(model, self.section)

    def _fitting(self, part: Any, wanted: ExportSection) -> ExportSection:
        """The section without inputs that the model's forward does not have; a model of the family may lack one."""
        if wanted.part == "decode" and any(entry.name == PAIR_MASK for entry in wanted.inputs):
            return self._fitting_cache(part, wanted)
        if wanted.part != WHOLE:
            return wanted
        known = inspect.signature(part.model.forward).parameters
        inputs = tuple(entry for entry in wanted.inputs if entry.name in known)
        if not inputs:
            raise RequestError(
                f"{type(part.model).__name__} takes none of these inputs: {', '.join(self._find_skipped_inputs(None))}",
                hint=f"it takes {', '.join(list(known)[:8])}; name them with `--input-specs`",
            )
        return replace(wanted, inputs=inputs)

    def _fitting_cache(self, part: Any, wanted: ExportSection) -> ExportSection:
        """The section of a pair's decoder without what fills its cache up, where the class cannot read one that is."""
        from winml.modelkit.building.export.filled_cache import NAMES, takes_filled_cache

        if takes_filled_cache(part, wanted.inputs, wanted.sizes):
            return wanted
        inputs = tuple(entry for entry in wanted.inputs if entry.name not in NAMES)
        return replace(wanted, inputs=inputs, sizes={n: size for n, size in wanted.sizes.items() if n != "total"})

    def _find_skipped_inputs(self, section: ExportSection | None) -> list[str]:
        """The inputs of the request that an export does not have."""
        kept = {entry.name for entry in section.inputs} if section else set()
        return [entry.name for entry in self.section.inputs if entry.name not in kept]

    def _parity(self, output: Path, section: ExportSection) -> tuple[ParityPassed | ParityNotRun, list[str]]:
        """How the export compares with PyTorch, and what PyTorch itself does not agree with."""
        from winml.modelkit.building.export import parity

        if not section.verify:
            return ParityNotRun(reason="`--no-parity`"), []
        self._tell("compare")
        reference = self._part(None)
        answers = parity.answer(reference, section)
        warnings = [found.warning for found in answers if found.warning]
        if section.part != DECODER:
            del reference  # a large model does not fit in memory twice
            return parity.check_parity(output, answers, section), warnings
        from winml.modelkit.building.export.token_parity import ask_tokens, compare_tokens

        decoder = describe_decoder(ModelFolder(self.folder), output)
        asked = ask_tokens(decoder, reference.model, section.seed)
        del reference
        found = parity.check_parity(output, answers, section)
        return replace(found, tokens=compare_tokens(decoder, asked, lambda: self._part(None).model)), warnings


def _opset_of(output: Path, section: ExportSection) -> int:
    """The opset that was written, read back."""
    found = opset.opset(files.load(output, weights=False))
    if found != section.opset:
        raise RunFailedError(f"opset {section.opset} was requested but the exporter wrote {found}")
    return found
