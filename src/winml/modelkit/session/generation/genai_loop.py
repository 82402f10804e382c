"""onnxruntime-genai runs the steps: the field's own runtime, on the same files.

Its config is written again for it from what was read here, so that a foreign file cannot choose a library, a provider
or an option.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from winml.modelkit.core.errors import RequestError, SessionError, UnavailableError
from winml.modelkit.core.generation import (
    GENAI_CONFIG,
    INSTALL_GENAI,
    find_genai,
    make_genai_config,
    read_decoder_folder,
)
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.session.generation.generator import Ids, check_prompt
from winml.modelkit.session.generation.graph_fit import check_graph
from winml.modelkit.session.generation.runtimes import EPS, unknown_cache, unknown_settings
from winml.modelkit.worker.scratch import ScratchFolder, sweep

_PREFIX = "winml-genai-"
_COPIES = sys.platform == "win32"
"""Whether a file of another volume has to be copied: symbolic links need a right that users do not have there."""
_OTHER = "`--runtime onnxruntime` runs it in the loop of winml"


class GenaiGenerator:
    """A decoder in a session of onnxruntime-genai; sequences of a batch have one length."""

    def __init__(self, folder: str | Path, *, target: Target, section: SessionSection | None = None) -> None:
        if target.ep not in EPS:
            raise RequestError(
                f"onnxruntime-genai is used on {', '.join(EPS)} only, not on {target}",
                hint="leave the runtime to winml, which runs its own loop there",
            )
        other = unknown_settings(section or SessionSection())
        if other:
            raise RequestError(f"onnxruntime-genai does not take {other} of a session", hint=_OTHER)
        self.description = read_decoder_folder(Path(folder))
        cache = unknown_cache(self.description)
        if cache:
            raise RequestError(f"onnxruntime-genai does not take {cache}", hint=_OTHER)
        check_graph(self.description)
        self._library = load_library()
        self.notes: tuple[str, ...] = ()
        """What is to be said of how it was opened."""
        self._model = self._open(section or SessionSection())
        self._generator: Any = None
        self._ended: Any = None
        """The token that made onnxruntime-genai end a text, until the text goes on."""

    @property
    def runtime(self) -> str:
        found = find_genai()
        return f"onnxruntime-genai {'of an unknown version' if found is None else found[1]}"

    @property
    def context_length(self) -> int:
        return self.description.context_length

    def _open(self, section: SessionSection) -> Any:
        described = self.description
        with _make_scratch(described.folder) as scratch:
            model = scratch / described.file
            model.parent.mkdir(parents=True, exist_ok=True)
            copied = 0
            for path in described.model.parent.iterdir():  # external weights lie beside the model
                if path.is_file() and path.name != GENAI_CONFIG and not _link(path, model.parent / path.name):
                    copied += path.stat().st_size
            if copied:
                self.notes = (
                    f"{copied / 2**20:.1f} MiB were copied to `{scratch.parent}` to open the model: it is on another "
                    "volume, and files beside it cannot be written",
                )
            config = make_genai_config(described, file=described.file, session=_session_options(section))
            # When a text has ended is decided by the caller. Its own least length would hide the end token instead, and
            # another one would be the likeliest. Without one it takes the padding token, which `next` goes on from.
            config["model"]["eos_token_id"] = []
            (scratch / GENAI_CONFIG).write_text(json.dumps(config), encoding="utf-8", newline="\n")
            try:
                return self._library.Model(self._library.Config(str(scratch)))
            except Exception as error:
                raise SessionError(
                    f"onnxruntime-genai cannot open `{self.description.model}`: {_say(error)}",
                    hint=_OTHER,
                ) from error

    def start(self, ids: Ids, mask: Ids | None = None, *, new_tokens: int) -> None:
        found = check_prompt(ids, mask, new_tokens=new_tokens, context_length=self.context_length)
        if not found.all():
            raise RequestError(
                "onnxruntime-genai takes no padding here: sequences of a batch must have one length",
                hint="`--runtime onnxruntime` takes padding on the left",
            )
        length = ids.shape[1] + new_tokens
        try:
            params = self._library.GeneratorParams(self._model)
            params.set_search_options(do_sample=False, max_length=length, batch_size=len(ids))
            self._generator = self._library.Generator(self._model, params)
            for piece in self._split_prompt(ids.astype(np.int32)):
                self._generator.append_tokens(piece)
        except RequestError:
            raise
        except Exception as error:  # the library has no errors of its own
            raise self._explain(error) from error

    def next(self) -> Ids:
        if self._generator is None:
            raise SessionError("`next` was called before `start`")
        try:
            if self._ended is not None:
                self._generator.append_tokens(self._ended)
                self._ended = None
            self._generator.generate_next_token()
        except Exception as error:
            raise self._explain(error) from error
        # Of 32 bits, and left so: a call of numpy after each step takes 5 % of the 40 us of a tiny decoder's.
        tokens: Ids = self._generator.get_next_tokens()
        if len(tokens) == 1 and tokens[0] == self.description.padding_token:
            self._ended = tokens[:, None].copy()
        return tokens

    def _split_prompt(self, ids: Ids) -> list[Ids]:
        """A prompt in pieces that it reads as they are: padding tokens at the end of a piece are skipped as padding.

        One that stands alone is read.
        """
        self._ended = None
        padding = self.description.padding_token
        if (ids[:, -1] != padding).all():
            return [ids]
        if len(ids) > 1:
            raise RequestError(
                f"onnxruntime-genai takes the token {padding} at the end of a prompt for padding, and several prompts "
                "are read at once",
                hint=_OTHER,
            )
        kept = np.flatnonzero(ids[0] != padding)
        body = int(kept[-1]) + 1 if kept.size else 0
        tail = [ids[:, place : place + 1] for place in range(body, ids.shape[1])]
        return [ids[:, :body], *tail] if body else tail

    def _explain(self, error: Exception) -> SessionError:
        return SessionError(f"onnxruntime-genai cannot run `{self.description.model}`: {_say(error)}", hint=_OTHER)

    def close(self) -> None:
        self._generator = self._model = self._ended = None

    def __enter__(self) -> GenaiGenerator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _say(error: Exception) -> str:
    """What the library says, in one line."""
    return " ".join(str(error).split())[:400]


def _make_scratch(folder: Path) -> ScratchFolder:
    """A temporary folder; beside the decoder where files would have to be copied to the usual one."""
    if _COPIES and not _is_same_volume(folder, Path(tempfile.gettempdir())):
        sweep(folder.absolute().parent)  # what a killed process left there
        with contextlib.suppress(OSError):  # it cannot be written: the usual one, with a note
            return ScratchFolder(_PREFIX, within=folder.absolute().parent)
    return ScratchFolder(_PREFIX)


def _is_same_volume(one: Path, other: Path) -> bool:
    return one.stat().st_dev == other.stat().st_dev


def _link(path: Path, to: Path) -> bool:
    """Give a file another name; whether that was possible without a copy, as weights are large."""
    try:
        os.link(path.resolve(), to)
    except OSError:  # another file system
        if sys.platform != "win32" and not _COPIES:
            to.symlink_to(path.resolve())
            return True
        shutil.copyfile(path, to)
        return False
    return True


def _session_options(section: SessionSection) -> dict[str, Any]:
    """What the user chose of a session, in the words of genai; it takes entries of the runtime beside its own."""
    threads = {} if section.threads is None else {"intra_op_num_threads": section.threads}
    return {**threads, **section.config_entries}


def load_library() -> Any:
    """The package, imported; an error says how to install it."""
    if find_genai() is None:
        raise UnavailableError("running a model by onnxruntime-genai needs the package", hint=INSTALL_GENAI)
    try:
        import onnxruntime_genai

        onnxruntime_genai.disable_telemetry_events()
    except (ImportError, OSError, AttributeError) as error:
        raise UnavailableError(
            f"onnxruntime-genai is installed but cannot be imported: {str(error)[:300]}", hint=_OTHER
        ) from error
    return onnxruntime_genai
