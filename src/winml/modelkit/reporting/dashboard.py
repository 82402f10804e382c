"""`winml dashboard`: shows the runs below a folder in a browser on this machine. It reads, and writes nothing."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import stat
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Literal
from urllib.parse import quote, unquote_to_bytes

from winml.modelkit import __version__
from winml.modelkit.core import plain_text
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import ModelkitError, RequestError
from winml.modelkit.core.signals import end_on_signals
from winml.modelkit.core.suggest import near_path
from winml.modelkit.render.pages import dashboard as view
from winml.modelkit.render.pages.assets import PAGE_SCRIPT
from winml.modelkit.render.pages.dashboard import ListQuery, RunRow
from winml.modelkit.render.pages.html import page_body
from winml.modelkit.render.pages.page import Block, Page, Row, Table, Text
from winml.modelkit.reporting.command import footer, make_page
from winml.modelkit.reporting.index import STATES, Index, IndexedRun, Stamp, find_link, make_stamp
from winml.modelkit.reporting.pairs import pair_page
from winml.modelkit.reporting.runs import Run, read_known_findings, read_run
from winml.modelkit.reporting.served_files import MOST_FILES, check_inside, is_link, list_below, open_inside
from winml.modelkit.reporting.web_server import Answer, Request, open_server

PORT = 8642
"""The usual port, so that a browser finds the page again; another one where it is taken."""
HTML, JSON = "text/html; charset=utf-8", "application/json"
_LIVE = ("autoconfig", "matrix", "sweep")
"""Kinds of folder that grow while somebody looks."""
_SHARE = 0.05
"""How much of the time pages of a run that grows may be made: what runs may be a measurement."""
_ANSWERS_S = 0.3
"""How long a visit of the list waits for answers of runs; a script asks for the others."""
_MOST_READ = 16 * 2**20
"""Bytes of a run that is read for its answer in the list alone."""
_MOST_ANSWERS = 20_000
_MOST_FOLLOWED = 16
_MOST_ASKED = 20
_NAMES = "surrogatepass"
"""How names of files that are no UTF-8 are written in addresses and found again."""
_ID = re.compile(r"[0-9a-f]{20}")
_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#0a5ea8"/>'
    '<path d="M3 12l3-5 3 3 4-7" fill="none" stroke="#fff" stroke-width="2"/></svg>'
)


@dataclass(frozen=True)
class DashboardRequest:
    """Everything the user decided."""

    root: str = "."
    port: int | None = None
    """None: the usual one, or a free one where that is taken. 0: a free one."""
    token: bool = True
    browse: bool = False
    """Open the page in a browser."""


@dataclass(frozen=True, kw_only=True)
class DashboardReady:
    """A dashboard that listens."""

    schema: Literal["winml/dashboard/1"] = "winml/dashboard/1"
    ok: Literal[True] = True
    address: str
    """With the token, unless there is none."""
    root: str
    runs: int
    """Runs that were found, without the parts of a matrix or a sweep."""


def serve(request: DashboardRequest, on_ready: Callable[[DashboardReady], None], log: Callable[[str], None]) -> None:
    """Show runs until Ctrl-C or SIGTERM; `log` gets a line about what went wrong or was refused."""
    root = Path(request.root)
    if root.is_file():
        raise RequestError(f"`{root}` is a file", hint="name the folder it lies in; `winml report` shows one run")
    if not root.is_dir():
        raise RequestError(f"folder not found: `{root}`", hint=near_path(root))
    dashboard = Dashboard(root, log)
    token = secrets.token_urlsafe(24) if request.token else None
    server = open_server(request.port, dashboard.answer, token=token, log=log, usual=PORT)
    with server, end_on_signals(lambda: threading.Thread(target=server.shutdown, daemon=True).start()):
        if request.port is None and server.port != PORT:
            log(f"port {PORT} is taken, so it is {server.port}")
        found = sum(run.inside is None for run in dashboard.index.find_runs().runs)
        _give_way()
        on_ready(DashboardReady(address=server.address, root=str(dashboard.index.root), runs=found))
        if request.browse:
            threading.Thread(target=_open_browser, args=(server.make_ticket(), log), daemon=True).start()
        server.serve_forever(poll_interval=0.2)


def _give_way() -> None:
    """Let everything else on this machine go first: it may be measured."""
    if sys.platform == "win32":
        import psutil

        with contextlib.suppress(OSError, psutil.Error):
            psutil.Process().nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
    else:
        os.nice(5)


def _open_browser(address: str, log: Callable[[str], None]) -> None:
    import webbrowser

    if not webbrowser.open(address):
        log("no browser was found; open the address yourself")


@dataclass(frozen=True)
class _Followed:
    """The page of a run that grows, as it was last made."""

    etag: str
    title: str
    html: str
    is_finished: bool
    due: float
    """Until then it is not made again."""


class Dashboard:
    """What is answered to which address."""

    def __init__(self, root: Path, log: Callable[[str], None] = lambda line: None) -> None:
        self.index = Index(root)
        self._log = log
        self._work = threading.RLock()
        """Held while a page is made: one processor is enough for somebody who looks."""
        self._told: dict[str, tuple[Stamp, str]] = {}
        self._unreadable: dict[str, Stamp] = {}
        self._followed: dict[str, _Followed] = {}
        self._places: dict[str, Callable[[Request], Answer]] = {
            "/": self._show_list,
            "/answers": self._tell_answers,
            "/compare": self._compare,
            "/models": self._show_models,
            "/findings": self._show_findings,
            "/favicon.ico": lambda request: Answer(kind="image/svg+xml", body=_ICON.encode()),
        }

    def answer(self, request: Request) -> Answer:
        """The page, part or file that an address names."""
        if request.path in self._places:
            return self._places[request.path](request)
        place, _, rest = request.path[1:].partition("/")
        run_id, _, name = rest.partition("/")
        if place in ("run", "live", "file") and _ID.fullmatch(run_id) and (place == "file") == bool(name):
            run = self.index.find(run_id)
            if run is None:
                return self._refuse(HTTPStatus.NOT_FOUND, "There is no such run, or it was removed.")
            if place == "file":
                return self._send_file(run, name)
            return self._follow(run, request.etag) if place == "live" else self._show_run(run)
        return self._refuse(HTTPStatus.NOT_FOUND, "There is no such page.")

    # The list

    def _show_list(self, request: Request) -> Answer:
        query = read_query(request)
        found = self.index.find_runs()
        listed = [run for run in found.runs if query.inside or run.inside is None]
        other = self.index.find(query.other) if query.other else None
        query = replace(query, other="" if other is None else other.id)
        matching = [run for run in listed if self._fits(run, query)]
        matching.sort(key=_ORDERS[query.sort], reverse=query.falling)
        pages = max(1, -(-len(matching) // view.ROWS))
        query = replace(query, page=min(query.page, pages))
        shown = matching[(query.page - 1) * view.ROWS :][: view.ROWS]
        in_states = Counter(map(self._state, listed))
        notes = []
        if found.is_partial:
            notes.append("There is too much below this folder to look at everything: name one further down.")
        if found.unreadable:
            notes.append(f"{found.unreadable:,} files or folders could not be opened.")
        made = view.RunList(
            root=str(self.index.root),
            query=query,
            rows=tuple(self._rows(shown)),
            matching=len(matching),
            total=len(listed),
            kinds=_count(run.kind for run in listed),
            targets=_count(target for run in listed for target in run.targets),
            states=tuple((state, count) for state in STATES if (count := in_states[state])),
            notes=tuple(notes),
            other=None if other is None else other.name,
        )
        return _page("Runs", view.list_body(made, _FOOTER), script=view.LIST_SCRIPT)

    def _fits(self, run: IndexedRun, query: ListQuery) -> bool:
        if query.kind not in ("", run.kind) or query.state not in ("", self._state(run)):
            return False
        if query.target and query.target not in run.targets:
            return False
        if query.other and (run.id == query.other or run.state == "cannot be read"):
            return False
        if not query.words:
            return True
        text = " ".join((run.name, run.kind, *run.models, *run.targets)).casefold()
        return all(word in text for word in query.words.casefold().split())

    def _rows(self, runs: Sequence[IndexedRun]) -> Iterator[RunRow]:
        """Rows with what their reports say first, as far as that is known after a moment."""
        deadline = time.monotonic() + _ANSWERS_S
        for run in runs:
            answer = self._known_answer(run)
            if answer is None and time.monotonic() < deadline:
                answer = self._tell(run)
            yield self._row(run, answer)

    def _row(self, run: IndexedRun, answer: str | None) -> RunRow:
        return RunRow(
            id=run.id,
            name=run.name,
            kind=run.kind,
            models=run.models,
            targets=run.targets,
            state=self._state(run),
            changed=_when(run.changed_ns),
            bytes=run.bytes,
            answer=answer,
        )

    def _state(self, run: IndexedRun) -> str:
        """The state by the first bytes, or by what came out when it was read."""
        return "cannot be read" if self._unreadable.get(run.id) == run.stamp else run.state

    def _known_answer(self, run: IndexedRun) -> str | None:
        if run.reason is not None:
            return run.reason
        if run.bytes > _MOST_READ:
            return "Large: open it to read it."
        known = self._told.get(run.id)
        return known[1] if known is not None and known[0] == run.stamp else None

    def _tell(self, run: IndexedRun) -> str:
        """What the report of a run says first; kept while the run stays as it is."""
        known = self._known_answer(run)
        if known is not None:
            return known
        with self._work:
            page, _, is_readable = self._read(run)
        if len(self._told) >= _MOST_ANSWERS:
            self._told.clear()
            self._unreadable.clear()
        if not is_readable:
            self._unreadable[run.id] = run.stamp
        self._told[run.id] = run.stamp, page.answer
        return page.answer

    def _tell_answers(self, request: Request) -> Answer:
        runs = [self.index.find(run_id) for run_id in request.query.get("run", ())[:_MOST_ASKED]]
        told = {run.id: plain_text.one_line(self._tell(run)).replace("`", "") for run in runs if run is not None}
        return _json(told)

    # A run

    def _read(self, run: IndexedRun) -> tuple[Page, Run | None, bool]:
        """The report of a run, or a page that says why there is none; whether it could be read."""
        try:
            check_inside(self.index.root, run.path)
            link = find_link(run)
            if link is not None:
                raise RequestError(f"`{link}` in it is a link, which is not followed")
            found = read_run(run.path)
            return make_page(found), found, True
        except ModelkitError as error:
            return _error_page(run, error.message), None, False
        except OSError as error:
            return _error_page(run, f"it cannot be opened: {error.strerror or error}"), None, False
        except Exception as error:  # noqa: BLE001 - a run that our pages cannot show must not take the list with it
            self._log(plain_text.one_line(f"`{run.name}` cannot be shown: {type(error).__name__}: {error}"))
            return _error_page(run, "it cannot be shown: a bug in winml, or a file that was changed"), None, True

    def _show_run(self, run: IndexedRun) -> Answer:
        bar = view.run_bar(run.name, ListQuery(kind=run.kind, other=run.id).address())
        if run.is_folder and run.kind in _LIVE:
            made = self._make_followed(run)
            if not made.is_finished:
                note = view.follow_note(f"/live/{run.id}", made.etag)
                return _page(made.title, self._around(made.html, bar + note), script=view.LIVE_SCRIPT)
            return _page(made.title, self._around(made.html, bar))
        with self._work:
            title, html, _ = self._make_body(run)
        return _page(title, self._around(html, bar))

    def _around(self, html: str, more: str = "") -> str:
        return view.navigation("", str(self.index.root)) + more + html

    def _make_body(self, run: IndexedRun) -> tuple[str, str, Run | None]:
        """The title and the content of the page of a run, with its parts and files."""
        page, found, _ = self._read(run)
        blocks: list[Block] = [*page.blocks]
        parts = [one for one in self.index.known.runs if one.inside == run.id]
        if parts:
            blocks.append(view.parts_table([self._row(one, None) for one in sorted(parts, key=_ORDERS["name"])]))
        blocks.append(self._files(run))
        said = footer([found]) if found is not None else _FOOTER
        return page.title, page_body(replace(page, blocks=tuple(blocks)), said), found

    def _files(self, run: IndexedRun) -> Table:
        files = _list_files(run)
        start = f"/file/{run.id}/"
        links = [(name, start + quote(name, errors=_NAMES), size) for name, (_, size) in files.items()]
        return view.files_table(links, is_partial=len(links) >= MOST_FILES)

    def _send_file(self, run: IndexedRun, name: str) -> Answer:
        """A file of a run, which is looked up among its files: no path is made from what was asked."""
        with contextlib.suppress(UnicodeDecodeError):
            name = unquote_to_bytes(name).decode("utf-8", _NAMES)
        found = _list_files(run).get(name)
        if found is None:
            return self._refuse(HTTPStatus.NOT_FOUND, "This run has no such file.")
        path, _ = found
        try:
            stream = open_inside(self.index.root, path)
        except RequestError as error:
            return self._refuse(HTTPStatus.FORBIDDEN, error.message)
        except OSError:
            return self._refuse(HTTPStatus.NOT_FOUND, "This file cannot be opened.")
        saved = quote(path.name.encode("utf-8", "replace"))
        return Answer(
            kind="application/octet-stream",
            file=stream,
            length=os.fstat(stream.fileno()).st_size,
            headers={"Content-Disposition": f"attachment; filename*=UTF-8''{saved}"},
        )

    # A run that grows

    def _follow(self, run: IndexedRun, etag: str | None) -> Answer:
        """The page of a run again where it has changed; while it has not, its files are not opened."""
        if etag is not None and etag == _make_etag(make_stamp(run)):
            return Answer(status=HTTPStatus.NOT_MODIFIED, headers={"ETag": etag})
        made = self._make_followed(run)
        if made.etag == etag:
            return Answer(status=HTTPStatus.NOT_MODIFIED, headers={"ETag": etag})
        content = {"title": f"{made.title} · winml", "finished": made.is_finished, "html": made.html}
        return _json(content, ETag=made.etag)

    def _make_followed(self, run: IndexedRun) -> _Followed:
        with self._work:
            started = time.monotonic()
            # Before anything is read: what is written meanwhile is another page.
            etag = _make_etag(make_stamp(run))
            known = self._followed.get(run.id)
            if known is not None and (known.etag == etag or started < known.due):
                return known
            title, html, found = self._make_body(run)
            is_finished = found is not None and found.finished
            ended = time.monotonic()
            due = ended + (ended - started) * (1 / _SHARE - 1)
            while len(self._followed) >= _MOST_FOLLOWED:
                del self._followed[next(iter(self._followed))]
            self._followed[run.id] = made = _Followed(etag, plain_text.one_line(title), html, is_finished, due)
            return made

    # Other pages

    def _compare(self, request: Request) -> Answer:
        asked = [request.get("a"), request.get("b")] if "a" in request.query else list(request.query.get("run", ()))
        if len(asked) != 2 or asked[0] == asked[1]:
            return self._refuse(HTTPStatus.BAD_REQUEST, "Mark two runs of the list to compare them.")
        runs = [self.index.find(run_id) for run_id in asked]
        read: list[tuple[Page, Run]] = []
        for run in runs:
            if run is None:
                return self._refuse(HTTPStatus.NOT_FOUND, "One of the two runs is not there, or was removed.")
            with self._work:
                page, found, _ = self._read(run)
            if found is None:
                return self._refuse(HTTPStatus.UNPROCESSABLE_ENTITY, f"{run.name}: {page.answer}")
            read.append((page, found))
        try:
            with self._work:
                page = pair_page([found for _, found in read], [one for one, _ in read])
                html = page_body(page, footer([found for _, found in read]))
        except ModelkitError as error:
            return self._refuse(HTTPStatus.UNPROCESSABLE_ENTITY, error.message, error.hint)
        return _page(page.title, self._around(html))

    def _show_models(self, request: Request) -> Answer:
        runs = [run for run in self.index.find_runs().runs if run.models]
        page = view.models_page(_group_models(runs), len(runs), _families())
        return _page(page.title, page_body(page, _FOOTER, view.navigation("/models", str(self.index.root))))

    def _show_findings(self, request: Request) -> Answer:
        try:
            with self._work:
                page = make_page(read_known_findings())
                html = page_body(page, _FOOTER, view.navigation("/findings", str(self.index.root)))
        except ModelkitError as error:
            return self._refuse(HTTPStatus.UNPROCESSABLE_ENTITY, error.message, error.hint)
        return _page(page.title, html)

    def _refuse(self, status: HTTPStatus, text: str, hint: str | None = None) -> Answer:
        more = (Text(hint),) if hint else ()
        page = Page("dashboard", "Not shown", text, more, "failed")
        return _page(page.title, self._around(page_body(page, _FOOTER)), status=status)


_FOOTER = f"winml {__version__}"


def read_query(request: Request) -> ListQuery:
    """What a reader asked the list for; what it does not know is as usual."""
    sort = request.get("sort")
    sort = sort if sort in view.COLUMNS else "changed"
    falling = {"up": False, "down": True}.get(request.get("order"), sort in view.FALLING)
    page = request.get("page")
    return ListQuery(
        words=request.get("q")[:500],
        kind=request.get("kind")[:500],
        target=request.get("target")[:500],
        state=request.get("state")[:500],
        sort=sort,
        falling=falling,
        inside=request.get("inside") == "1",
        page=int(page) if re.fullmatch(r"[1-9][0-9]{0,6}", page) else 1,
        other=request.get("with") if _ID.fullmatch(request.get("with")) else "",
    )


_ORDERS: Mapping[str, Callable[[IndexedRun], tuple[object, ...]]] = {
    "name": lambda run: (run.name.casefold(), run.name),
    "kind": lambda run: (run.kind, run.name),
    "model": lambda run: (view.model_name(run.models[0]).casefold() if run.models else "", run.name),
    "target": lambda run: (run.targets, run.name),
    "changed": lambda run: (run.changed_ns, run.name),
    "state": lambda run: (STATES.index(run.state), run.name),
    "size": lambda run: (run.bytes, run.name),
}


def _count(names: Iterator[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(Counter(names).items()))


def _when(changed_ns: int) -> str:
    """A time of this place; files may carry times that no calendar has."""
    try:
        return datetime.fromtimestamp(changed_ns / 1e9).astimezone().strftime("%Y-%m-%d\u00a0%H:%M")
    except (OSError, OverflowError, ValueError):
        return "unknown"


def _make_etag(stamp: Stamp) -> str:
    text = repr((__version__, stamp))
    return f'"{hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]}"'


def _page(title: str, body: str, *, script: str = PAGE_SCRIPT, status: HTTPStatus = HTTPStatus.OK) -> Answer:
    text = view.dashboard_document(title, body, script=script)
    return Answer(status=status, kind=HTML, body=text.encode("utf-8", "replace"), policy=view.dashboard_policy(script))


def _json(content: object, **headers: str) -> Answer:
    body = json.dumps(content, ensure_ascii=True, allow_nan=False).encode()
    return Answer(kind=JSON, body=body, headers=headers)


def _error_page(run: IndexedRun, message: str) -> Page:
    """Why there is no report; hints of commands say nothing to somebody who has a list before them."""
    message = message.replace(f"`{run.path}`", "it")
    said = run.reason or message
    more = () if said == message else (Text(message),)
    return Page(run.kind, run.name, said[:1].upper() + said[1:], more, "failed" if run.state == "failed" else "unknown")


def _list_files(run: IndexedRun) -> dict[str, tuple[Path, int]]:
    """The files of a run by their names: those in its folder, or the file itself and the trace written beside it."""
    if run.is_folder:
        return {name: (path, size) for name, path, size in list_below(run.path)}
    folder, trace = run.path.parent, f"{run.path.stem}_op_trace"
    found = {}
    for name in (run.path.name, f"{trace}.json", f"{trace}.perfetto.json"):
        with contextlib.suppress(OSError):
            seen = os.lstat(folder / name)
            if stat.S_ISREG(seen.st_mode):
                found[name] = folder / name, seen.st_size
    if not is_link(folder / trace):
        for name, path, size in list_below(folder / trace):
            found[f"{trace}/{name}"] = path, size
    return found


# Models


def _group_models(runs: Sequence[IndexedRun]) -> list[view.ModelRow]:
    """Models by the last part of their names, those with the latest runs first."""
    by_name: dict[str, list[IndexedRun]] = {}
    for run in runs:
        for name in dict.fromkeys(map(view.model_name, run.models)):
            by_name.setdefault(name, []).append(run)
    rows = [
        view.ModelRow(
            name,
            len(found),
            tuple(sorted({run.kind for run in found})),
            tuple(dict.fromkeys(target for run in found for target in run.targets)),
            _when(latest := max(run.changed_ns for run in found)),
            latest,
        )
        for name, found in by_name.items()
    ]
    return sorted(rows, key=lambda row: (-row.changed_ns, row.name))


@cache
def _families() -> Table:
    """What the catalog says of model families; it ships with winml and does not change."""
    from winml.modelkit.knowledge.catalog_command import show_catalog

    rows = []
    for one in show_catalog().families:
        levels = [f"{level.target} ({level.outcome})" for level in one.levels]
        rows.append(Row((one.family.name, one.family.modality, ", ".join(one.family.tasks), ", ".join(levels))))
    head = ("family", "modality", "tasks", "recipes on")
    return Table("Model families", head, tuple(rows), folded=f"{len(rows)} families that the catalog has")
