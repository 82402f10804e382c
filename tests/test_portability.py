"""No call that only POSIX has, or that means something else on Windows, outside of the modules made for it.

`mypy --platform win32` finds names that Windows lacks; this finds what it cannot: words, paths and habits.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "winml" / "modelkit"

CALLS: dict[str, tuple[str, set[str]]] = {
    "os.kill": ("signal 0 is Ctrl-C there and others end the process; ask psutil", set()),
    "os.killpg": ("there are no process groups; use ProcessTree", set()),
    "os.fork": ("there is no fork; start a worker", set()),
    "os.rename": ("a file that is there or open refuses it; use store.atomic", set()),
    "os.replace": ("a file that is open refuses it; use store.atomic", {"store/atomic.py"}),
    "os.symlink": ("needs a right that users lack", set()),
    "os.chmod": ("there are no mode bits; use store", {"store/objects.py"}),
    "os.getuid": ("there are no user numbers", set()),
    "os.geteuid": ("there are no user numbers", set()),
    "os.fsdecode": ("raises at bytes that are no UTF-8", {"core/errors.py", "core/file_names.py"}),
    "os.fsencode": ("raises at bytes that were no UTF-8", set()),
    "os.getlogin": ("asks a terminal", set()),
    "os.system": ("goes through a shell", set()),
    "os.popen": ("goes through a shell", set()),
    "tempfile.NamedTemporaryFile": ("cannot be opened again while it is open", set()),
    "tempfile.TemporaryDirectory": (
        "raises while a file in it is open; `ignore_cleanup_errors` or worker.scratch",
        set(),
    ),
    "tempfile.mkdtemp": (
        "nobody sweeps it; use worker.scratch",
        {"worker/scratch.py", "session/monitor/run_folder.py"},
    ),
    "time.clock_gettime": ("there is no such clock", set()),
}
METHODS: dict[str, tuple[str, set[str]]] = {
    # The loader of packages is a file that stands alone, and tries again.
    "rename": (
        "a file that is there or open refuses it; use store.atomic",
        {"store/atomic.py", "store/objects.py", "packaging/loader.py"},
    ),
    "symlink_to": ("needs a right that users lack", set()),
    "send_signal": ("signals are Ctrl-C and end there", set()),
}
TEXT: dict[str, tuple[str, set[str]]] = {
    "read_text": ("without an encoding is in the code page of the country", set()),
    "write_text": (
        'without `encoding=` and `newline="\\n"` differs from system to system; so do digests of it',
        set(),
    ),
}
WORDS: dict[str, tuple[str, set[str]]] = {
    "preexec_fn": ("is for fork", set()),
    "start_new_session": ("is for POSIX", set()),
    "pass_fds": ("is for POSIX", set()),
    # A completion is for a shell; nothing is started there.
    "shell": ("goes through a shell, whose quoting differs", {"cli/completion/scripts.py"}),
}
PATHS = ("/proc", "/dev/", "/tmp", "/usr/", "/etc/", "/bin/", "/sys", "/var/", "/home/")
PATH_ADAPTERS = {"session/environment.py", "session/monitor/hw_monitor.py", "worker/limits.py", "worker/memory.py"}
"""These ask Linux for what other systems do not tell, and do without it elsewhere."""
LINUX_ALONE = {"worker/launch.py", "worker/sandbox.py", "worker/sandbox_init.py"}
"""Programs and modules that are used on Linux alone."""


def _dotted(node: ast.expr) -> str:
    return f"{_dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_posix_alone(test: ast.expr) -> bool:
    """Whether a condition holds only where Windows is not."""
    text = ast.unparse(test)
    return "sys.platform != 'win32'" in text or "sys.platform == 'linux'" in text or "sys.platform == 'darwin'" in text


def _is_windows(test: ast.expr) -> bool:
    return ast.unparse(test) == "sys.platform == 'win32'"


def _leaves(body: list[ast.stmt]) -> bool:
    return isinstance(body[-1], ast.Return | ast.Raise | ast.Continue)


def _portable(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of statements that also Windows runs."""
    for statement in body:
        if isinstance(statement, ast.If) and _is_windows(statement.test):
            yield from _portable(statement.body)
            if _leaves(statement.body):
                return  # what follows is for the others
            continue
        if isinstance(statement, ast.If) and _is_posix_alone(statement.test):
            yield from _portable(statement.orelse)
            continue
        yield from _around(statement)
        for block in _blocks(statement):
            yield from _portable(block)


def _blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The statements inside of a statement."""
    found = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
    return [*found, *(handler.body for handler in getattr(statement, "handlers", []))]


def _around(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement without the statements inside of it."""
    for name, value in ast.iter_fields(statement):
        if name not in ("body", "orelse", "finalbody", "handlers"):
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.AST):
                    yield from ast.walk(part)
    if isinstance(statement, ast.Expr | ast.Return | ast.Assign):
        yield statement


def _found(node: ast.AST) -> Iterator[tuple[str, str, set[str]]]:
    if isinstance(node, ast.Call):
        name = _dotted(node.func)
        kept = {word.arg for word in node.keywords}
        if name in CALLS and not (name == "tempfile.TemporaryDirectory" and "ignore_cleanup_errors" in kept):
            yield (name, *CALLS[name])
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if method in METHODS and name not in CALLS:
            yield (f".{method}()", *METHODS[method])
        if method in TEXT and not _says_how(node, method):
            yield (f".{method}()", *TEXT[method])
        if method == "replace" and len(node.args) == 1 and not node.keywords and name not in CALLS:
            yield (".replace()", "a file that is open refuses it; use core.patience", {"core/patience.py"})
        for keyword in node.keywords:
            if keyword.arg in WORDS and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False):
                yield (f"{keyword.arg}=", *WORDS[keyword.arg])
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(PATHS):
        yield (repr(node.value)[:60], "is a path of Linux", PATH_ADAPTERS)


def _says_how(call: ast.Call, method: str) -> bool:
    """Whether a call gives the encoding of a text, and the ends of its lines when it writes."""
    words = {word.arg for word in call.keywords}
    return bool(call.args or "encoding" in words) if method == "read_text" else {"encoding", "newline"} <= words


def _problems(path: Path) -> list[str]:
    inner = path.relative_to(ROOT).as_posix()
    if inner in LINUX_ALONE:
        return []
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        f"{inner}:{getattr(node, 'lineno', 0)}: {what} {why}"
        for node in _portable(tree.body)
        for what, why, allowed in _found(node)
        if inner not in allowed
    ]


def test_nothing_is_for_posix_alone() -> None:
    assert [problem for path in sorted(ROOT.rglob("*.py")) for problem in _problems(path)] == []


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("os.kill(pid, 0)", 1),
        ("if sys.platform != 'win32':\n    os.kill(pid, 0)", 0),
        ("if sys.platform == 'win32':\n    f()\nelse:\n    os.kill(pid, 0)", 0),
        ("def f():\n    if sys.platform == 'win32':\n        return\n    os.killpg(pid, 9)", 0),
        ("def f():\n    if sys.platform == 'win32':\n        g()\n    os.killpg(pid, 9)", 1),
        ("with a as b:\n    subprocess.run(x, shell=True)", 1),
        ("path.rename(other)", 1),
        ("path.replace(other)", 1),
        ("text.replace(a, b)", 0),
        ("path.read_text()", 1),
        ("path.read_text('ascii')", 0),
        ("path.write_text(a, encoding='utf-8')", 1),
        ("path.write_text(a, encoding='utf-8', newline='\\n')", 0),
        ("open('/proc/meminfo')", 1),
    ],
)
def test_the_check_sees_what_windows_would_run(code: str, found: int) -> None:
    assert len([one for node in _portable(ast.parse(code).body) for one in _found(node)]) == found
