from __future__ import annotations

from winml.modelkit.cli.matrix_request import _build_options, _command
from winml.modelkit.core.plain_text import shell_word


def test_the_command_to_go_on_with_is_the_one_that_was_given_without_how_to_go_on() -> None:
    given = ["matrix", "run", "--sample", "--run-stamp", "s1", "--resume", "--json", "-o", "my out", "--run-stamp=s2"]
    assert _command(given) == f"winml matrix run --sample -o {shell_word('my out')}"


def test_jobs_get_the_trusted_names_as_words_of_their_own_command() -> None:
    """A document in the folder of a run could be written by others; the words of a job come from the command line."""
    given = {"data": None, "calibration": None, "samples": None, "seed": 0, "no_analyze": False, "timeout": 9.0}
    options = _build_options({**given, "trust_options": ("op_packages,backend_path",)})
    assert options.words == ("--trust-options", "backend_path", "--trust-options", "op_packages")
