"""Every check of an environment, over facts; the reading of facts over real folders and interpreters."""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from winml.modelkit.ep import environment_facts
from winml.modelkit.ep.environment_facts import choose_installer, read_environment_facts, read_place
from winml.modelkit.ep.packages import Distribution
from winml.modelkit.ep.problems import EnvironmentFacts, Installer, Place, Problem, find_problems
from winml.modelkit.ep.requirements import parse_requirement

COMPLETE = {
    "winml-modelkit": "0.1.0",
    "onnxruntime": "1.31.1",
    "numpy": "2.4.6",
    "torch": "2.13.0",
    "transformers": "5.22.2",
    "pillow": "13.0.0",
    "tokenizers": "0.23.3",
    "httpx": "0.28.1",
}
NEEDS = {
    "winml-modelkit": ("onnxruntime>=1.24", "numpy>=1.26", "onnxruntime-qnn>=2.7; extra == 'qnn'",
                       "transformers>=5.22; extra == 'hf'", "pytest<9.2; extra == 'dev'"),
    "onnxruntime-qnn": ("onnxruntime>=1.24.2", "coloredlogs"),
}  # fmt: skip
ROOMY = 2**40


def facts(installed: dict[str, str] | None = None, **changed: Any) -> EnvironmentFacts:
    packages = COMPLETE if installed is None else installed
    needs = {name: tuple(map(parse_requirement, lines)) for name, lines in NEEDS.items() if name in packages}
    made = EnvironmentFacts(
        distributions=tuple(Distribution(name, version, "site") for name, version in packages.items()),
        requirements=needs,  # type: ignore[arg-type] - every line of NEEDS is a requirement
        installer=Installer("python -m pip install", "python -m pip uninstall -y"),
        cache=Place("/cache", None, ROOMY),
        temporary=Place("/tmp", None, ROOMY),
        spare_folder="/home/me",
    )
    return dataclasses.replace(made, **changed)


def only(found: tuple[Problem, ...]) -> Problem:
    assert len(found) == 1, found
    return found[0]


def test_a_complete_environment_has_no_problem() -> None:
    assert find_problems(facts()) == ()
    assert find_problems(facts({**COMPLETE, "onnxruntime-qnn": "2.7.0", "pytest": "10.0"})) == ()


def test_two_builds_of_the_runtime_in_one_folder_are_removed_and_the_plain_one_is_installed_again() -> None:
    problem = only(find_problems(facts({**COMPLETE, "onnxruntime-openvino": "1.24.1"})))
    assert problem.what == "onnxruntime 1.31.1 and onnxruntime-openvino 1.24.1 are installed at once"
    assert "overwritten" in problem.why
    assert problem.commands == (
        "python -m pip uninstall -y onnxruntime onnxruntime-openvino",
        "python -m pip install 'onnxruntime>=1.24'",
        "winml ep install openvino",
    )


def test_builds_of_the_runtime_in_different_folders_do_not_overwrite_each_other() -> None:
    elsewhere = Distribution("onnxruntime", "1.20.0", "system")
    made = facts()
    assert find_problems(dataclasses.replace(made, distributions=(*made.distributions, elsewhere))) == ()


def test_a_build_of_the_runtime_in_the_place_of_the_plain_one_is_one_problem() -> None:
    others = {name: version for name, version in COMPLETE.items() if name != "onnxruntime"}
    problem = only(find_problems(facts({**others, "onnxruntime-gpu": "1.31.0"})))
    assert problem.what == "onnxruntime-gpu 1.31.0 is installed instead of onnxruntime"
    assert problem.commands == (
        "python -m pip uninstall -y onnxruntime-gpu",
        "python -m pip install 'onnxruntime>=1.24'",
        "winml ep install cuda",
    )


def test_a_package_that_winml_needs_and_is_missing() -> None:
    others = {name: version for name, version in COMPLETE.items() if name != "numpy"}
    problem = only(find_problems(facts(others)))
    assert (problem.what, problem.optional) == ("numpy is not installed", False)
    assert problem.commands == ("python -m pip install 'numpy>=1.26'",)


def test_a_runtime_that_is_too_old_for_winml_and_an_ep_is_upgraded_for_both() -> None:
    problem = only(find_problems(facts({**COMPLETE, "onnxruntime": "1.20.1", "onnxruntime-qnn": "2.7.0"})))
    assert problem.what == "onnxruntime 1.20.1 is not a version that works here"
    assert problem.why == "winml-modelkit needs onnxruntime>=1.24 and onnxruntime-qnn needs onnxruntime>=1.24.2"
    assert problem.commands == ("python -m pip install --upgrade 'onnxruntime>=1.24,>=1.24.2'",)


def test_an_ep_that_needs_a_newer_runtime_than_winml_does_is_a_mismatch() -> None:
    problem = only(find_problems(facts({**COMPLETE, "onnxruntime": "1.24.0", "onnxruntime-qnn": "2.7.0"})))
    assert problem.why == "onnxruntime-qnn needs onnxruntime>=1.24.2"


@pytest.mark.parametrize(("name", "version"), [("onnxruntime-qnn", "2.4.0"), ("transformers", "5.0")])
def test_a_package_of_an_extra_is_held_to_its_version_only_when_it_is_there(name: str, version: str) -> None:
    problem = only(find_problems(facts({**COMPLETE, name: version})))
    assert problem.what == f"{name} {version} is not a version that works here"
    assert problem.commands[0].startswith(f"python -m pip install --upgrade '{name}>=")


def test_a_missing_extra_is_optional_and_torch_is_installed_by_its_pin_first() -> None:
    others = {name: version for name, version in COMPLETE.items() if name not in ("torch", "transformers")}
    problem = only(find_problems(facts(others)))
    assert (problem.what, problem.optional) == ("Hugging Face models cannot be exported", True)
    assert problem.why == "torch and transformers are not installed"
    assert problem.commands == (
        "python -m pip install torch==2.13.0",
        "python -m pip install 'winml-modelkit[hf]'",
    )


def test_half_of_an_extra_is_a_problem() -> None:
    others = {name: version for name, version in COMPLETE.items() if name != "transformers"}
    problem = only(find_problems(facts(others)))
    assert (problem.why, problem.optional) == ("transformers is not installed", False)
    assert problem.commands == ("python -m pip install 'winml-modelkit[hf]'",)


def test_a_cache_that_cannot_be_written_gets_another_folder() -> None:
    problem = only(find_problems(facts(cache=Place("/root/cache", "Permission denied"))))
    assert problem.what == "the cache folder `/root/cache` cannot be written to"
    assert problem.commands == ("mkdir -p /home/me/winml-cache", "export WINML_CACHE=/home/me/winml-cache")


def test_commands_for_windows_work_in_both_of_its_shells() -> None:
    made = facts(cache=Place("X:\\cache", "gone"), spare_folder="C:\\Users\\A B", windows=True)
    assert only(find_problems(made)).commands == (
        'mkdir "C:\\Users\\A B\\winml-cache"',
        'setx WINML_CACHE "C:\\Users\\A B\\winml-cache"',
    )


def test_a_full_disk_of_the_cache_is_left_for_another_or_shrunk_when_there_is_none() -> None:
    full = Place("/cache", None, 5 * 2**20)
    elsewhere, here = find_problems(facts(cache=full)), find_problems(facts(cache=full, spare_folder=None))
    assert only(elsewhere).commands[-1] == "export WINML_CACHE=/home/me/winml-cache"
    assert only(here).why == "5 MiB are free; stages of a build need more"
    assert only(here).commands == ("winml cache gc --max-size 1G",)


def test_folders_for_temporary_files_that_are_missing_refused_or_full() -> None:
    refused = {"TMPDIR": Place("/gone", "there is no such folder")}
    found = [
        only(find_problems(facts(temporary=None))),
        only(find_problems(facts(temporary=None, refused_temporary=refused))),
        only(find_problems(facts(refused_temporary=refused))),
        only(find_problems(facts(temporary=Place("/tmp", None, 2**20)))),
    ]
    assert [problem.what.partition("`")[0] for problem in found] == [
        "there is no folder for temporary files",
        "",
        "",
        "the disk of the folder for temporary files, ",
    ]
    assert {problem.commands for problem in found} == {
        ("mkdir -p /home/me/winml-tmp", "export TMPDIR=/home/me/winml-tmp")
    }


@pytest.mark.parametrize(
    ("names", "on_path", "wanted"),
    [
        (["pip"], {}, Installer("{exe} -m pip install", "{exe} -m pip uninstall -y")),
        (["pip"], {"python": "{exe}"}, Installer("python -m pip install", "python -m pip uninstall -y")),
        (["pip"], {"python3": "{exe}"}, Installer("python3 -m pip install", "python3 -m pip uninstall -y")),
        (["pip"], {"python": "other"}, Installer("{exe} -m pip install", "{exe} -m pip uninstall -y")),
        ([], {"uv": "/bin/uv"}, Installer("uv pip install --python {exe}", "uv pip uninstall --python {exe}")),
        ([], {}, Installer("{exe} -m pip install", "{exe} -m pip uninstall -y", ("{exe} -m ensurepip",))),
    ],
)
def test_packages_are_installed_into_the_environment_of_this_interpreter(
    names: list[str], on_path: dict[str, str], wanted: Installer, tmp_path: Path
) -> None:
    exe = tmp_path / "python"
    exe.touch()
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "python"
    other.touch()
    places = {name: str(other) if place == "other" else place.format(exe=exe) for name, place in on_path.items()}
    packages = [Distribution(name, "1", "site") for name in names]
    made = choose_installer(packages, str(exe), places.get)
    first = tuple(word.format(exe=exe) for word in wanted.first)
    assert made == Installer(wanted.install.format(exe=exe), wanted.uninstall.format(exe=exe), first)


def test_copies_of_the_interpreter_in_one_virtual_environment_are_the_same(tmp_path: Path) -> None:
    for name in ("bin/python", "bin/python3.11"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    pip, exe = [Distribution("pip", "1", "site")], str(tmp_path / "bin/python3.11")
    places = {"python": str(tmp_path / "bin/python")}
    assert choose_installer(pip, exe, places.get).install == f"{exe} -m pip install"
    (tmp_path / "pyvenv.cfg").touch()
    assert choose_installer(pip, exe, places.get).install == "python -m pip install"


def test_this_environment_is_read_with_what_its_packages_need() -> None:
    read = read_environment_facts()
    assert {"winml-modelkit", "onnxruntime", "numpy"} <= {found.name for found in read.distributions}
    assert any(r.name == "onnxruntime" and r.versions == ">=1.24" for r in read.requirements["winml-modelkit"])
    assert read.windows is (sys.platform == "win32")
    assert [problem for problem in find_problems(read) if "installed at once" in problem.what] == []


def test_a_place_is_tried_by_writing_there(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    fine = read_place(tmp_path / "not" / "yet")
    assert (fine.error, (fine.free_bytes or 0) > 0) == (None, True)
    assert "is not a folder" in str(read_place(tmp_path / "file" / "below").error)


def test_a_variable_that_names_no_folder_is_refused_and_one_that_is_used_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = tmp_path / "used"
    used.mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
    monkeypatch.setenv("TEMP", str(used))
    monkeypatch.setenv("TMP", str(tmp_path / "never asked"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    place, refused = environment_facts._read_temporary()
    assert place is not None
    assert Path(place.path).samefile(used)
    assert {name: found.error for name, found in refused.items()} == {"TMPDIR": "there is no such folder"}
