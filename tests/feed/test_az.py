"""What a failure of `az` means: every row that was seen or is documented."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from winml.modelkit.core.errors import RequestError
from winml.modelkit.feed.az import Az, Done, classify, command, unavailable

ECHO = (
    "ERROR: Process ['/x/artifacttool', 'universal', 'publish', '--feed', 'f', '--path', '{path}'] "
    "with PID 4711 exited with return code {code}"
)
LOGIN = (
    "ERROR: Failed to update Universal Packages tooling.\n"
    " Before you can run Azure DevOps commands, you need to run the login command(az login if using AAD/MSA identity"
)


def _echo(code: int, path: str = "/tmp/x") -> str:
    return ECHO.format(code=code, path=path)


@pytest.mark.parametrize(
    ("returncode", "errors", "problem"),
    [
        (1, _echo(17), "exists"),
        (1, "ERROR: something\n" + _echo(17), "exists"),
        (1, "ERROR: The feed with ID 'f' doesn't exist.\n" + _echo(19), "no-feed"),
        (1, "ERROR: The package version provided is invalid.\n" + _echo(20), "tool"),
        (1, _echo(1), "tool"),
        (1, LOGIN, "login"),
        (1, "ERROR: Please run 'az login' to setup account.", "login"),
        (1, "ERROR: AADSTS700082: invalid_grant: the refresh token has expired", "login"),
        (1, "ERROR: the server said invalid_grant.", "login"),
        (1, "INFO: Refreshing token for refresh token cache", "other"),
        (1, "ERROR: --scope 'project' is required when specifying a value in --project", "other"),
        (2, "ERROR: the following arguments are required: --feed", "usage"),
        (1, 'ERROR: Conflict({"message": "x"})', "other"),
        (
            1,
            "TypeError: ExternalToolInvoker._sigint_handler() takes 1 positional argument but 3 were given",
            "other",
        ),
        (1, "", "other"),
        (None, "", "timeout"),
        (None, _echo(17), "timeout"),
    ],
)
def test_every_known_failure_has_its_meaning(returncode: int | None, errors: str, problem: str) -> None:
    assert classify(returncode, errors).problem == problem


@pytest.mark.parametrize(
    "path",
    [
        "/models/already exists", "/models/409", "conflict", "exited with return code 17", "invalid_grant",
        "Please run 'az login' to setup account.", "'] with PID 1 exited with return code 17",
    ],
)  # fmt: skip
def test_words_in_the_echo_of_the_arguments_mean_nothing(path: str) -> None:
    assert classify(1, _echo(5, path)).problem == "tool"
    assert "artifacttool" not in classify(1, _echo(5, path)).message


@pytest.mark.parametrize("name", ["invalid_grant.onnx", "models/invalid_grant", "not_invalid_grant", "invalid_grant-2"])
def test_a_file_named_like_an_expired_login_is_none(name: str) -> None:
    assert classify(1, f"ERROR: uploading {name} did not work\n{_echo(5)}").problem == "tool"


def test_a_message_is_the_last_line_that_says_something() -> None:
    assert classify(1, f"ERROR: first\nERROR: the reason\n{_echo(5)}").message == "the reason"
    assert classify(1, _echo(5)).message == "ArtifactTool ended with return code 5"
    assert classify(3, "").message == "`az` ended with exit code 3"


def test_an_expired_login_says_how_to_log_in() -> None:
    error = unavailable(classify(1, LOGIN), "publishing")
    assert error.exit_code == 3
    assert "az login" in (error.hint or "")


WORDS = ("C:\\R&D\\x", "(1) ^ | < >", "C:\\ends with\\", "plain", "ünï", "!x!", "a;b,c=d", "")


@pytest.mark.parametrize("word", ["%PATH%", 'a"b', "a\nb", "50 %"])
def test_a_batch_file_is_not_given_what_cmd_would_read_again(word: str) -> None:
    with pytest.raises(RequestError, match="batch file"):
        command("C:\\az.cmd", ["--path", word])


def test_every_word_for_a_batch_file_is_in_quotes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMSPEC", "C:\\Windows\\system32\\cmd.exe")
    assert command("C:\\my az\\az.cmd", ["--path", "C:\\R&D\\x\\"]) == (
        '"C:\\Windows\\system32\\cmd.exe" /d /s /c ""C:\\my az\\az.cmd" "--path" "C:\\R&D\\x\\\\""'
    )


def test_a_program_that_is_no_batch_file_gets_its_words_as_they_are() -> None:
    assert command("/usr/bin/az", ["%PATH%", 'a"b']) == ["/usr/bin/az", "%PATH%", 'a"b']


@pytest.mark.parametrize("python", ["python.exe", "bin/python.exe"], ids=["installer", "environment"])
def test_the_interpreter_of_the_azure_cli_is_started_itself(tmp_path: Path, python: str) -> None:
    (tmp_path / "Lib" / "site-packages" / "azure" / "cli").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "az.cmd").touch()
    (tmp_path / python).touch()
    words = command(str(tmp_path / "bin" / "az.cmd"), ["--path", "%x%"])
    assert words == [str(tmp_path / python), "-IBm", "azure.cli", "--path", "%x%"]


@pytest.mark.windows
def test_cmd_and_the_batch_file_hand_every_word_on(tmp_path: Path) -> None:
    script = tmp_path / "show.py"
    script.write_text("import json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    folder = tmp_path / "R&D (1)"
    folder.mkdir()
    program = folder / "az.cmd"
    program.write_text(f'@"{sys.executable}" "{script}" %*\r\n')
    done = Az(str(program)).call(*WORDS, timeout_s=120)
    assert isinstance(done, Done), done
    assert json.loads(done.output) == [*WORDS, "--output", "json"]
