"""Documents from others that try to load a library or write a file: how many get through?

    python benchmarks/robustness/option_attacks.py [--python PYTHON] [--source SRC]

Every attack is a folder or file as somebody else could hand it out, and the command a user would run on it. A library
whose constructor writes a marker shows that it was loaded, a folder that nobody may touch shows what was written. With
`--source` another checkout is attacked: `git worktree add OLD COMMIT`, then `--source OLD/src`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
NPU = ("--target", "qnn/npu")
QUICK = ("--iterations", "1", "--warmup", "0", "--sessions", "1")
TIMEOUT_S = 300


@dataclass(frozen=True)
class Scene:
    """The folder of one attack: what is handed out, what must stay untouched, and the library that tells."""

    folder: Path
    model: Path
    winml: Callable[..., int]

    @property
    def library(self) -> Path:
        return self.folder / "outside" / "evil.so"

    @property
    def loaded(self) -> Path:
        return self.folder / "loaded"

    @property
    def outside(self) -> Path:
        return self.folder / "outside"

    def make(self) -> None:
        self.outside.mkdir(parents=True)
        marker = f'fclose(fopen("{self.loaded}", "w"));'
        code = f"#include <stdio.h>\n__attribute__((constructor)) static void run(void) {{ {marker} }}\n"
        source = self.folder / "evil.c"
        source.write_text(code, encoding="utf-8")
        if shutil.which("gcc") is None:  # only what is written can be seen then, and the exit code
            self.library.write_bytes(b"no library")
            return
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", self.library, source], check=True)

    def build(self, session: dict[str, Any], name: str = "build", **more: Any) -> Path:
        """A build folder with a session section of the attacker's choice."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        shutil.copyfile(self.model, folder / "model.onnx")
        config = {"schema": "winml/build-config/1", "session": session, **more}
        (folder / "build_config.json").write_text(json.dumps(config), encoding="utf-8")
        return folder

    def options(self, **options: str) -> Path:
        return self.build({"ep_options": options})

    def entries(self, **entries: str) -> Path:
        return self.build({"config_entries": entries})

    def config(self, target: str = "qnn/npu", **sections: Any) -> Path:
        path = self.folder / "config.json"
        value = {"schema": "winml/build-config/1", "model": str(self.model), "target": target, **sections}
        path.write_text(json.dumps(value), encoding="utf-8")
        return path

    def damage(self) -> list[str]:
        """What happened that should not have."""
        found = ["a library was loaded"] if self.loaded.exists() else []
        written = sorted(p.name for p in self.outside.rglob("*") if p != self.library)
        return found + [f"{name} was written" for name in written]


def perf(scene: Scene, folder: Path, *more: str) -> int:
    return scene.winml("perf", "-m", str(folder), *(more or NPU), *QUICK)


def backend_path(scene: Scene) -> int:
    return perf(scene, scene.options(backend_path=str(scene.library)))


def backend_path_relative(scene: Scene) -> int:
    """A path that is relative to where the user is."""
    return perf(scene, scene.options(backend_path=os.path.relpath(scene.library)))


def op_packages(scene: Scene) -> int:
    return perf(scene, scene.options(op_packages=f"Relu:{scene.library}:Provider:CPU"))


def profiling_file(scene: Scene) -> int:
    path = str(scene.outside / "profile.csv")
    return perf(scene, scene.options(profiling_level="detailed", profiling_file_path=path))


def graph_dump(scene: Scene) -> int:
    return perf(scene, scene.options(dump_json_qnn_graph="1", json_qnn_graph_dir=str(scene.outside)))


def input_graph_dump(scene: Scene) -> int:
    return perf(scene, scene.options(dump_qnn_ep_input_graph="1", dump_qnn_ep_input_graph_dir=str(scene.outside)))


def op_trace_dump(scene: Scene) -> int:
    return perf(scene, scene.options(enable_framework_op_trace="1", framework_op_trace_dir=str(scene.outside)))


def context_file(scene: Scene) -> int:
    path = str(scene.outside / "context.onnx")
    return perf(scene, scene.entries(**{"ep.context_enable": "1", "ep.context_file_path": path}))


def memory_statistics(scene: Scene) -> int:
    """A config entry of the runtime itself, on the CPU."""
    path = str(scene.outside / "memory.csv")
    return perf(scene, scene.entries(**{"session.collect_node_memory_stats_to_file": path}), "--target", "cpu")


def analyze(scene: Scene) -> int:
    return scene.winml("analyze", "-m", str(scene.options(backend_path=str(scene.library))), *NPU)


def evaluate(scene: Scene) -> int:
    folder = scene.options(backend_path=str(scene.library))
    data = str(ROOT / "src/winml/modelkit/sample/test.npz")
    words = ("--data", data, "--samples", "1", "--task", "image-classification")
    return scene.winml("eval", "-m", str(folder), *NPU, *words)


def build_of_folder(scene: Scene) -> int:
    """What `support review` runs again for a contribution whose model is a build folder."""
    folder = scene.options(backend_path=str(scene.library))
    return scene.winml("build", "-m", str(folder), *NPU, "--no-quant", "-o", str(scene.folder / "again"))


def build_of_config(scene: Scene) -> int:
    config = scene.config(session={"ep_options": {"backend_path": str(scene.library)}})
    return scene.winml("build", "-c", str(config), "-o", str(scene.folder / "made"))


def compile_section(scene: Scene) -> int:
    config = scene.config(compile={"provider_options": {"backend_path": str(scene.library)}})
    return scene.winml("build", "-c", str(config), "--no-analyze", "-o", str(scene.folder / "made"))


def compile_config(scene: Scene) -> int:
    config = scene.config(compile={"provider_options": {"backend_path": str(scene.library)}})
    output = str(scene.folder / "made.onnx")
    return scene.winml("compile", "-m", str(scene.model), "--config", str(config), "-o", output)


def arm_of_a_comparison(scene: Scene) -> int:
    config = scene.config(compile={"provider_options": {"backend_path": str(scene.library)}})
    return scene.winml("compare", str(scene.model), str(config))


def pulled_from_a_feed(scene: Scene) -> int:
    folder, feed = scene.options(backend_path=str(scene.library)), f"folder:{scene.folder / 'feed'}"
    scene.winml("feed", "push", str(folder), "--feed", feed, "-m", "org/model", *NPU, "--run-stamp", "20260101")
    scene.winml("feed", "pull", "-m", "org/model", "--feed", feed, *NPU, "-o", str(scene.folder / "pulled"))
    folders = [p.parent for p in (scene.folder / "pulled").rglob("model.onnx")]
    return perf(scene, folders[0] if folders else scene.folder / "pulled")


def finding(scene: Scene) -> int:
    """An experiment of somebody's knowledge folder."""
    shipped = json.loads((ROOT / "src/winml/modelkit/knowledge/findings/npu-006.json").read_text(encoding="utf-8"))
    shipped["id"] = "npu-666"
    shipped["experiment"]["candidate"]["session"] = {"ep_options": {"backend_path": str(scene.library)}}
    folder = scene.folder / "knowledge" / "findings"
    folder.mkdir(parents=True)
    (folder / "npu-666.json").write_text(json.dumps(shipped), encoding="utf-8")
    return scene.winml("kb", "replay", "npu-666", "--knowledge", str(scene.folder / "knowledge"))


def search(scene: Scene) -> int:
    folder = scene.options(backend_path=str(scene.library))
    output = str(scene.folder / "search")
    return scene.winml("autoconfig", "-m", str(folder), *NPU, "--budget", "20s", "-o", output)


def matrix(scene: Scene) -> int:
    folder = scene.options(backend_path=str(scene.library))
    words = ("--targets", "qnn/npu", "--calibration", "random", "-o", str(scene.folder / "matrix"))
    return scene.winml("matrix", "run", "-m", str(folder), *words)


def resumed_matrix(scene: Scene) -> int:
    """A run whose model was exchanged, and whose journal has an option slipped in, goes on."""
    folder = scene.build({})
    words = ("--targets", "qnn/npu", "--calibration", "random", "-o", str(scene.folder / "matrix"), "--no-analyze")
    scene.winml("matrix", "run", "-m", str(folder), *words, "--timeout", "0.05")
    for journal in (scene.folder / "matrix").glob("*.jsonl"):
        text = journal.read_text(encoding="utf-8")
        journal.write_text(text.replace("--no-analyze", f"--ep-options backend_path={scene.library}"), encoding="utf-8")
    shutil.rmtree(folder)
    scene.options(backend_path=str(scene.library))
    words = tuple(word for word in words if word != "--no-analyze")
    return scene.winml("matrix", "run", "-m", str(folder), *words, "--resume")


def changed_after_the_build(scene: Scene) -> int:
    """A real build whose session section somebody changed."""
    made = scene.folder / "made"
    scene.winml("build", "-m", str(scene.model), *NPU, "--no-quant", "--no-analyze", "-o", str(made))
    config = made / "build_config.json"
    value = json.loads(config.read_text(encoding="utf-8"))
    path = str(scene.outside / "profile.csv")
    value["session"]["ep_options"] = {"profiling_level": "basic", "profiling_file_path": path}
    config.unlink()
    config.write_text(json.dumps(value), encoding="utf-8")
    return perf(scene, made)


ATTACKS: tuple[Callable[[Scene], int], ...] = (
    backend_path, backend_path_relative, op_packages, profiling_file, graph_dump, input_graph_dump, op_trace_dump,
    context_file, memory_statistics, analyze, evaluate, build_of_folder, build_of_config, compile_section,
    compile_config, arm_of_a_comparison, pulled_from_a_feed, finding, search, matrix, resumed_matrix,
    changed_after_the_build,
)  # fmt: skip


def runner(python: str, source: str | None, folder: Path, *, show: bool) -> Callable[..., int]:
    """Runs `winml` with a cache of its own; the exit code."""
    env = {**os.environ, "WINML_CACHE": str(folder / "cache"), "WINML_KNOWLEDGE": str(folder / "knowledge-root")}
    if source is not None:
        env["PYTHONPATH"] = source

    def winml(*words: str) -> int:
        argv = [python, "-m", "winml.modelkit", *words]
        done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=TIMEOUT_S, check=False)
        if show:
            lines = [line for line in done.stderr.splitlines() if line.startswith(("error:", "hint:"))]
            sys.stdout.write(f"  {' '.join(words[:3])} -> {done.returncode} {' '.join(lines)[:300]}\n")
        return done.returncode

    return winml


def sample(folder: Path) -> Path:
    """The digits classifier for one image: an NPU compiles for fixed shapes."""
    import onnx

    model = onnx.load(ROOT / "src/winml/modelkit/sample/digits.onnx")
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = 1
    onnx.save(model, folder / "digits.onnx")
    return folder / "digits.onnx"


def attempt(
    attack: Callable[[Scene], int], folder: Path, model: Path, winml: Callable[..., int]
) -> tuple[int, list[str]]:
    """The exit code of the last command and the damage."""
    scene = Scene(folder, model, winml)
    scene.make()
    return attack(scene), scene.damage()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="Interpreter that has winml's dependencies.")
    parser.add_argument("--source", help="The src folder of another checkout.")
    parser.add_argument("--only", action="append", help="Names of attacks.")
    parser.add_argument("--show", action="store_true", help="Show commands and their errors.")
    given = parser.parse_args()
    through = tried = 0
    for attack in ATTACKS:
        if given.only and attack.__name__ not in given.only:
            continue
        with tempfile.TemporaryDirectory(prefix="winml-attack-") as name:
            winml = runner(given.python, given.source, Path(name), show=given.show)
            code, damage = attempt(attack, Path(name) / "scene", sample(Path(name)), winml)
        tried, through = tried + 1, through + bool(damage)
        sys.stdout.write(f"{attack.__name__:26} exit {code:3}  {'; '.join(damage) or 'held'}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{through} of {tried} attacks loaded or wrote something\n")
    return 1 if through else 0


if __name__ == "__main__":
    sys.exit(main())
