"""What the program answers to the scripts of shells, and the command that prints and installs them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from program import failed, valid, winml

from winml.modelkit.cli.completion import values
from winml.modelkit.cli.completion.answers import find_answer
from winml.modelkit.cli.completion.protocol import Answer, Question, read_question, unquote
from winml.modelkit.cli.completion.scripts import SHELLS, read_script
from winml.modelkit.cli.main import COMMANDS
from winml.modelkit.ep.precision import PRECISIONS
from winml.modelkit.evaluation.all_tasks import TASKS

HEAVY = ("rich", "numpy", "onnx", "onnxruntime", "psutil", "torch", "transformers")


def _asked(*words: str) -> list[str]:
    """What the last of the words may become."""
    return list(_answer(*words).values)


def _answer(*words: str) -> Answer:
    answer = find_answer(words[:-1], words[-1])
    return Answer(answer.kind, {v: text for v, text in answer.values.items() if v.startswith(words[-1])})


def test_commands_and_the_options_of_the_program() -> None:
    assert _asked("") == list(COMMANDS)
    assert _asked("--") == ["--help", "--help-all", "--version"]
    assert _asked("help", "auto") == ["autoconfig"]
    assert _asked("nonsense", "") == []


def test_commands_below_another() -> None:
    assert {"plan", "run", "status"} <= set(_asked("matrix", ""))
    assert "list" in _asked("support", "knowledge", "")
    assert _asked("matrix", "nonsense", "") == []
    assert _asked("matrix", "--h") == ["--help", "--help-all"]


def test_options_that_are_given_are_not_offered_again_unless_they_may_be_repeated() -> None:
    offered = _asked("perf", "--threads", "2", "--dim", "a=1", "--")
    assert "--threads" not in offered
    assert "--dim" in offered
    assert "--compile" in _asked("build", "--")
    assert "--no-compile" in _asked("build", "--")


@pytest.mark.parametrize("words", [("perf", "--target"), ("autoconfig", "--target"), ("eval", "--reference-target")])
def test_targets_after_an_option(words: tuple[str, ...]) -> None:
    assert {"auto", "cpu", "qnn/npu", "openvino/gpu"} <= set(_asked(*words, ""))


def test_a_value_behind_an_equals_sign_and_one_in_a_list() -> None:
    assert _asked("perf", "--target=qnn/") == ["--target=qnn/npu", "--target=qnn/gpu"]
    assert _asked("compare", "m.onnx", "--targets", "cpu,qnn/n") == ["cpu,qnn/npu"]
    assert _asked("perf", "--op-tracing=") == ["--op-tracing=basic", "--op-tracing=detail"]


def test_values_of_the_tables_of_the_program() -> None:
    assert _asked("build", "-p", "") == ["auto", *PRECISIONS]
    assert _asked("perf", "--ep", "openv") == ["openvino"]
    assert _asked("ep", "install", "openv") == ["openvino"]
    assert _asked("perf", "-d", "") == ["npu", "gpu", "cpu", "auto"]
    assert "text-classification" in _asked("export", "--task", "text")
    assert _asked("eval", "--task", "") == list(TASKS)
    assert "cpu" in _asked("autoconfig", "--preset", "")
    assert "npu-001" in _asked("kb", "show", "npu-")
    assert "gelu_fusion" in _asked("build", "--enable", "gelu")
    assert "extended" in _asked("optimize", "--level", "")
    assert _asked("completion", "") == list(SHELLS)
    assert _asked("perf", "--threads", "") == []


def test_the_tasks_of_evaluation_are_those_of_their_table() -> None:
    assert list(TASKS) == list(values.EVALUATION_TASKS)


def test_models_files_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("model.onnx", "models/deep.ONNX", "notes.txt", ".hidden.onnx", "built/build_manifest.json", "other/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    end = os.sep
    assert _answer("perf", "-m", "mod") == Answer("files", {"model.onnx": "", f"models{end}": ""})
    assert _asked("perf", "-m", "models/") == ["models/deep.ONNX"]
    assert _asked("perf", "-m", ".") == [".hidden.onnx"]
    assert "notes.txt" in _asked("eval", "--data", "")
    assert f"built{end}" in _asked("compare", "model.onnx", "")
    assert _asked("feed", "push", "") == [f"built{end}"], "a build before other folders"
    assert _asked("feed", "push", "oth") == [f"other{end}"], "the way to one"
    assert _asked("perf", "-m", "missing/") == []
    assert _asked("sys", "--", "") == []
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert _asked("perf", "-m", "~/mod") == ["~/model.onnx", "~/models/"]


@pytest.mark.parametrize(
    ("shell", "index", "words", "wanted"),
    [
        ("bash", 2, ["perf", "--target"], Question(("perf", "--target"), "")),
        ("bash", 3, ["perf", "--target", "=", "qn"], Question(("perf",), "--target=qn", "--target=")),
        ("bash", 2, ["perf", "--target", "="], Question(("perf",), "--target=", "--target=")),
        ("bash", 4, ["perf", "--feed", "oci", ":", "x"], Question(("perf", "--feed"), "oci:x", "oci:")),
        ("bash", 4, ["perf", "--target", "=", "cpu", "-m"], Question(("perf", "--target=cpu"), "-m")),
        ("bash", 2, ["perf", "-m", "a\\ b"], Question(("perf", "-m"), "a b")),
        ("zsh", 1, ["perf", "--target=qn"], Question(("perf",), "--target=qn", "--target=")),
        ("fish", 1, ["perf", "--target=qn"], Question(("perf",), "--target=qn")),
        ("fish", 2, ["perf", "-m", "'a b"], Question(("perf", "-m"), "a b")),
        ("powershell", 2, ["perf", "-m"], Question(("perf", "-m"), "")),
        ("powershell", 2, ["perf", "-m", "a\\b", "later"], Question(("perf", "-m"), "a\\b")),
    ],
)
def test_the_words_of_a_shell_are_those_of_the_program(
    shell: str, index: int, words: list[str], wanted: Question
) -> None:
    assert read_question(shell, index, words) == wanted


@pytest.mark.parametrize(
    ("word", "plain"),
    [
        ("a\\ b", "a b"),
        ("'a $(x)", "a $(x)"),
        ('"a\\"b\\n', 'a"b\\n'),
        ("it\\'s", "it's"),
        ("'a'\"b\"c", "abc"),
        ("\\", ""),
    ],
)
def test_quotes_are_taken_off_and_nothing_is_expanded(word: str, plain: str) -> None:
    assert unquote(word) == plain


def test_the_answer_ends_every_entry_with_nul() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "winml.modelkit", "--complete", "bash", "2", "perf", "--device"],
        capture_output=True, check=True,
    )  # fmt: skip
    assert done.stdout == b"words\0npu\t\0gpu\t\0cpu\t\0auto\t\0"


def test_an_answer_imports_nothing_heavy() -> None:
    code = """
import json, sys
from winml.modelkit.cli.main import run
assert run(["--complete", "bash", "0", "pe"]) == 0
first = sorted(sys.modules)
for words in json.loads(sys.argv[1]):
    assert run(["--complete", "zsh", str(len(words)), *words]) == 0
print(json.dumps([first, sorted(sys.modules)]), file=sys.stderr)
"""
    asked = [[name, "--"] for name in COMMANDS]
    asked += [["perf", option] for option in ("-m", "--target", "--device", "--ep")]
    asked += [["export", "--task"], ["build", "-p"], ["build", "--enable"], ["autoconfig", "--preset"], ["kb", "show"]]
    done = subprocess.run([sys.executable, "-c", code, json.dumps(asked)], capture_output=True, check=True)
    first, later = json.loads(done.stderr)
    assert "click" not in first
    assert not {name.partition(".")[0] for name in later}.intersection(HEAVY)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_printed_as_it_is(shell: str) -> None:
    done = winml("completion", shell)
    assert (done.returncode, done.stdout) == (0, read_script(shell))  # type: ignore[arg-type]
    assert valid(winml("completion", shell, "--json").stdout)["script"] == done.stdout
    assert done.stdout.isascii()


def test_the_script_of_powershell_follows_the_protocol_of_native_completers() -> None:
    """PowerShell is not here: the text is held to the documentation of Register-ArgumentCompleter.

    A native completer gets `$wordToComplete, $commandAst, $cursorPosition` in this order and returns CompletionResult
    objects of four parts, none of which may be empty.
    """
    script = read_script("powershell")
    head = "Register-ArgumentCompleter -Native -CommandName winml, wmk -ScriptBlock {\n"
    assert head + "    param($wordToComplete, $commandAst, $cursorPosition)\n" in script
    made = re.findall(r"\[System\.Management\.Automation\.CompletionResult\]::new\((.*)\)", script)
    assert [len(re.split(r", (?![^(]*\))", one)) for one in made] == [4]
    assert "'ParameterValue'" in made[0]
    assert "EscapeSingleQuotedStringContent" in script
    assert "if (-not $description) { $description = $shown }" in script
    for opening, closing in ("{}", "()", "[]"):
        assert script.count(opening) == script.count(closing)
    assert script.index("[Console]::OutputEncoding = $encoding") > script.index("finally")


@pytest.fixture
def own_home(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    return {**kept, "HOME": str(tmp_path), "USERPROFILE": str(tmp_path), "LOCALAPPDATA": str(tmp_path / "local")}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_installed_once_and_replaced_only_when_that_is_said(
    shell: str, own_home: dict[str, str], tmp_path: Path
) -> None:
    first = valid(winml("completion", shell, "--install", "--json", env=own_home).stdout)
    assert first["files"]
    for name in first["files"]:
        assert Path(name).is_relative_to(tmp_path)
        assert Path(name).read_text(encoding="utf-8") == read_script(shell)  # type: ignore[arg-type]
    again = winml("completion", shell, "--install", env=own_home)
    assert again.returncode == 0
    assert first["files"][0] in again.stdout
    assert all(step in again.stdout for step in first["steps"])
    Path(first["files"][0]).write_text("# mine\n", encoding="utf-8")
    assert "exists with another content" in failed(winml("completion", shell, "--install", env=own_home), 2)
    assert Path(first["files"][0]).read_text(encoding="utf-8") == "# mine\n"
    assert winml("completion", shell, "--install", "--overwrite", env=own_home).returncode == 0
    assert Path(first["files"][0]).read_text(encoding="utf-8") == read_script(shell)  # type: ignore[arg-type]


def test_bad_requests_of_completion() -> None:
    assert "'tcsh' is not one of" in failed(winml("completion", "tcsh"), 2)
    assert "`--overwrite` is for `--install`" in failed(winml("completion", "bash", "--overwrite"), 2)
