"""The pages of `winml dashboard` that are not reports: the list of runs, models, and what stands around a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import PurePath
from urllib.parse import urlencode

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.plain_text import html as safe
from winml.modelkit.render.figures.style import STATE_GLYPHS
from winml.modelkit.render.marks import STATES
from winml.modelkit.render.pages.assets import PAGE_SCRIPT, PAGE_STYLE, policy
from winml.modelkit.render.pages.html import document, prose
from winml.modelkit.render.pages.page import Cell, Page, Row, Table
from winml.modelkit.render.units import counted, size

ROWS = 100
"""Rows of the list on one page."""
COLUMNS = ("name", "kind", "model", "target", "changed", "state", "size")
"""What the list can be sorted by."""
FALLING = ("changed", "size")
"""Columns of which a reader wants the largest first."""
_LONGEST = 160
STATE_MARKS = {"finished": "ok", "not finished": "pending", "failed": "failed", "cannot be read": "unknown"}
"""State of a run -> the state of `render/marks.py` whose glyph and colour it has."""


@dataclass(frozen=True)
class ListQuery:
    """What a reader asked for: the query of the address of the list."""

    words: str = ""
    kind: str = ""
    target: str = ""
    state: str = ""
    sort: str = "changed"
    falling: bool = True
    inside: bool = False
    """Also cells of a matrix and searches of a sweep."""
    page: int = 1
    other: str = ""
    """The id of a run that another one is wanted for, to compare with."""

    @property
    def is_filtered(self) -> bool:
        return bool(self.words or self.kind or self.target or self.state)

    def fields(self) -> list[tuple[str, str]]:
        """As names and values, without what is as usual."""
        found = [("q", self.words), ("kind", self.kind), ("target", self.target), ("state", self.state)]
        if (self.sort, self.falling) != ("changed", True):
            found += [("sort", self.sort), ("order", "down" if self.falling else "up")]
        found += [("inside", "1" if self.inside else ""), ("page", str(self.page) if self.page > 1 else "")]
        return [(name, value) for name, value in (*found, ("with", self.other)) if value]

    def address(self, **changes: object) -> str:
        """The address of the list with something changed; a filter or an order begins at the first page."""
        query = replace(self, **{"page": 1, **changes})  # type: ignore[arg-type]
        words = urlencode(query.fields(), errors="replace")
        return f"/?{words}" if words else "/"


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """A run in the list."""

    id: str
    name: str
    kind: str
    models: tuple[str, ...]
    targets: tuple[str, ...]
    state: str
    changed: str
    bytes: int
    answer: str | None
    """What its report says first; None where it was not read yet."""


@dataclass(frozen=True, kw_only=True)
class RunList:
    """A page of the list."""

    root: str
    query: ListQuery
    rows: tuple[RunRow, ...]
    matching: int
    total: int
    kinds: tuple[tuple[str, int], ...]
    targets: tuple[tuple[str, int], ...]
    states: tuple[tuple[str, int], ...]
    notes: tuple[str, ...] = ()
    other: str | None = None
    """The name of the run to compare with."""

    @property
    def pages(self) -> int:
        return max(1, -(-self.matching // ROWS))


@dataclass(frozen=True)
class ModelRow:
    """A model, and the runs of it."""

    name: str
    runs: int
    kinds: tuple[str, ...]
    targets: tuple[str, ...]
    changed: str
    changed_ns: int


DASHBOARD_STYLE = (
    PAGE_STYLE
    + """
nav.top{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;align-items:baseline;padding-top:.7rem;padding-bottom:.7rem;
max-width:64rem}
nav.top a{text-decoration:none;padding:.15rem 0}nav.top a:hover{text-decoration:underline}
nav.top a[aria-current]{color:var(--wk-ink);font-weight:600;box-shadow:0 2px 0 var(--wk-main)}
nav.top .root{margin-left:auto;color:var(--wk-soft);font-size:.85rem;overflow-wrap:anywhere}
.broad header,.broad main,.broad footer,.broad nav.top{max-width:80rem}
.bar{border-bottom:1px solid var(--wk-rule)}
.crumbs{display:flex;flex-wrap:wrap;gap:.2rem 1.5rem;justify-content:space-between;max-width:64rem;margin:.75rem auto 0;
padding:0 1.25rem;color:var(--wk-soft);font-size:.9rem;overflow-wrap:anywhere}
.follows{max-width:64rem;margin:.75rem auto 0;padding:0 1.25rem;color:var(--wk-soft);font-size:.9rem}
.follows::before{content:"\\25CF";color:var(--wk-main);padding-right:.4rem}
.ask{display:flex;flex-wrap:wrap;gap:.6rem .75rem;align-items:end;margin:0 0 .9rem}
.ask label{display:flex;flex-direction:column;font-size:.8rem;color:var(--wk-soft);gap:.1rem;min-width:0}
.ask label.words{flex:1 1 10rem}
.ask label.check{flex-direction:row;align-items:center;gap:.4rem;min-height:2.4rem;font-size:.9rem}
.ask input[type=search],.ask select{font:inherit;font-size:1rem;color:var(--wk-ink);background:var(--wk-paper);
border:1px solid var(--wk-soft);border-radius:.3rem;padding:.3rem .5rem;width:100%;max-width:100%;height:2.4rem}
.ask select{max-width:10rem}.ask label.by{display:none}
.do{font:inherit;font-size:.95rem;color:var(--wk-paper);background:var(--wk-main);border:1px solid var(--wk-main);
border-radius:.3rem;padding:.3rem .9rem;cursor:pointer;min-height:2.4rem}
.do:disabled{color:var(--wk-soft);background:var(--wk-shade);border-color:var(--wk-rule);cursor:default}
.do.quiet{color:var(--wk-main);background:none}
.tools{display:flex;flex-wrap:wrap;gap:.4rem 1rem;align-items:center;justify-content:space-between;margin:.6rem 0;
color:var(--wk-soft);font-size:.9rem}
.tools.sticky{position:sticky;bottom:0;background:var(--wk-paper);border-top:1px solid var(--wk-rule);padding:.5rem 0;
margin:0}
.pages{display:flex;gap:.9rem;align-items:baseline}
table.runs{table-layout:fixed}
.runs th a{color:inherit;text-decoration:none}.runs th a:hover{text-decoration:underline}
.runs th a::after{content:"\\2195";color:var(--wk-soft);padding-left:.25rem;font-weight:400}
.runs th[aria-sort=ascending] a::after{content:"\\2191";color:var(--wk-ink)}
.runs th[aria-sort=descending] a::after{content:"\\2193";color:var(--wk-ink)}
.runs td{border:0;padding-top:.5rem;padding-bottom:0;min-width:0;white-space:normal;overflow-wrap:anywhere}
.runs td.said{padding:.1rem 0 .55rem;color:var(--wk-soft)}
.runs tbody tr:last-child td{border-bottom:1px solid var(--wk-rule)}.runs tbody:hover{background:var(--wk-shade)}
.runs th.pick{width:2rem}.picks th.pick{width:5.5rem}.runs .pick{padding-left:.2rem;padding-right:.4rem}
.runs .pick input{width:1.05rem;height:1.05rem;margin:.2rem 0 0;accent-color:var(--wk-main)}
.runs .run a{font-weight:600;text-decoration:none}.runs .run a:hover{text-decoration:underline}
.runs .place{font-weight:400}.runs .when{white-space:nowrap}
.runs th.kind-of{width:6.7rem}.runs th.of{width:15%}.runs th.on{width:11%}.runs th.when{width:9rem}
.runs th.is{width:8.3rem}.runs th.much{width:4.8rem}
@media (max-width:1000px){.runs .much,.runs .of{display:none}}
@media (max-width:640px){.follows,.crumbs{padding:0 1rem}nav.top .root{margin-left:0;flex-basis:100%}
.ask label,.ask label.by{display:flex;flex:1 1 8rem}
.ask select{max-width:none}.ask label.words,.ask label.check{flex-basis:100%}
.runs,.runs tbody,.runs td{display:block}.runs thead,.runs tr:last-child .pick{display:none}
.runs tbody{position:relative;padding:.6rem 0 .6rem 2rem;border-bottom:1px solid var(--wk-rule)}
.runs tbody tr:last-child td{border:0}.runs tr{display:flex;flex-wrap:wrap;gap:.05rem .9rem}
.runs td,.runs td.n{padding:0;width:auto;text-align:left}.runs td.run,.runs td.said{flex-basis:100%}
.runs td.pick{position:absolute;left:0;top:.6rem}.picks tbody{padding-left:0}.picks td.pick{position:static;order:9}
.runs td.said{padding-top:.15rem}
.runs td[data-name]:not(:empty)::before{content:attr(data-name) " ";color:var(--wk-soft)}
.runs td.of:not(:empty),.runs td.much{display:block}.runs td:empty{display:none}}
@media print{.bar,.crumbs,.follows,.ask,.tools,.pick{display:none}}
"""
)

LIST_SCRIPT = (
    PAGE_SCRIPT
    + """
(function(){
"use strict";
var left=Array.prototype.slice.call(document.querySelectorAll(".said[data-run]"));
function more(){
  var some=left.splice(0,10);
  if(!some.length){return;}
  fetch("/answers?"+some.map(function(p){return "run="+p.getAttribute("data-run");}).join("&"),
    {credentials:"same-origin"}).then(function(r){if(!r.ok){throw new Error();}return r.json();}).then(function(d){
    some.forEach(function(p){var t=d[p.getAttribute("data-run")];if(typeof t==="string"){p.textContent=t;}});
    more();
  }).catch(function(){});
}
more();
document.querySelectorAll(".ask select,.ask input[type=checkbox]").forEach(function(s){
  s.addEventListener("change",function(){s.form.requestSubmit();});
});
var boxes=Array.prototype.slice.call(document.querySelectorAll(".pick input")),b=document.getElementById("compare");
function count(){
  var n=boxes.filter(function(x){return x.checked;}).length;
  boxes.forEach(function(x){x.disabled=n>=2&&!x.checked;});
  b.disabled=n!==2;
}
if(b){boxes.forEach(function(x){x.addEventListener("change",count);});window.addEventListener("pageshow",count);count();}
})();
"""
)

LIVE_SCRIPT = (
    PAGE_SCRIPT
    + """
(function(){
"use strict";
var note=document.getElementById("live"),etag=note.getAttribute("data-etag"),wait=1000;
function later(){window.setTimeout(poll,wait);}
function name(d){var s=d.querySelector("summary");return s?s.textContent.replace(/[0-9]+/g,""):"";}
function all(what){return Array.prototype.slice.call(document.querySelectorAll("main "+what));}
function keep(){
  var open=all("details[open]").map(name),filters={},m=document.activeElement,focus=null;
  all(".filter").forEach(function(f){filters[f.getAttribute("aria-label")]=f.value;});
  if(m&&m.closest&&m.closest("figure")){
    var g=m.closest("figure").getAttribute("data-figure");
    focus=[g,all('figure[data-figure="'+g+'"] .wk-mark').indexOf(m)];
  }
  return function(){
    all("details").forEach(function(d){if(open.indexOf(name(d))>=0){d.open=true;}});
    all(".filter").forEach(function(f){
      var v=filters[f.getAttribute("aria-label")];
      if(v){f.value=v;f.dispatchEvent(new Event("input"));}
    });
    var again=focus&&all('figure[data-figure="'+focus[0]+'"] .wk-mark')[focus[1]];
    if(again){again.focus({preventScroll:true});}
  };
}
function show(d){
  var fresh=new DOMParser().parseFromString(d.html,"text/html"),restore=keep();
  ["header","main"].forEach(function(n){
    var old=document.querySelector(n),now=fresh.querySelector(n);
    if(old&&now){old.replaceChildren.apply(old,Array.prototype.slice.call(now.childNodes));}
  });
  document.querySelector("main").dispatchEvent(new CustomEvent("wk-new",{bubbles:true}));
  restore();
  document.title=d.title;
}
function poll(){
  if(document.hidden){later();return;}
  fetch(note.getAttribute("data-address"),{headers:{"If-None-Match":etag},cache:"no-store",credentials:"same-origin"})
  .then(function(r){
    if(r.status===304){return null;}
    if(!r.ok){throw new Error();}
    etag=r.headers.get("ETag");
    return r.json();
  }).then(function(d){
    wait=1000;
    if(d){
      show(d);
      var at=new Date().toLocaleTimeString();
      note.textContent=d.finished?"The run has ended.":"This page follows the run. Last change: "+at;
    }
    if(!d||!d.finished){later();}
  }).catch(function(){
    note.textContent="The dashboard does not answer; this page is from "+document.lastModified+".";
    wait=Math.min(wait*2,30000);
    later();
  });
}
later();
})();
"""
)


@cache
def dashboard_policy(script: str) -> str:
    """What a page of the dashboard may do: ask this server, and nobody else."""
    more = "; connect-src 'self'; img-src 'self'; frame-ancestors 'none'"
    return policy(script=script, style=DASHBOARD_STYLE, forms="'self'", more=more)


def dashboard_document(title: str, body: str, *, script: str = PAGE_SCRIPT) -> str:
    """A whole page; the server sends its policy."""
    return document(f"{title} · winml", body, script=script, style=DASHBOARD_STYLE, meta_policy=False)


_PLACES = (("/", "Runs"), ("/models", "Models"), ("/findings", "Findings"))


def navigation(here: str, root: str) -> str:
    """The bar at the top; `here` is the address of the page, or that of the list it belongs to."""
    current = ' aria-current="page"'
    links = "".join(f'<a href="{to}"{current if to == here else ""}>{text}</a>' for to, text in _PLACES)
    where = f'<span class="root">{safe(root)}</span>'
    return f'<div class="bar"><nav class="top" aria-label="Dashboard">{links}{where}</nav></div>'


def run_bar(name: str, compare: str) -> str:
    """Where a run lies, and the way to another one to compare it with."""
    return (
        f'<div class="crumbs"><span><a href="/">Runs</a> / {safe(_short(name))}</span>'
        f'<a href="{safe(compare)}">Compare with another run</a></div>'
    )


def follow_note(address: str, etag: str) -> str:
    """What a page says that follows a run, and where its script asks."""
    return (
        f'<p class="follows" id="live" role="status" data-address="{safe(address)}" data-etag="{safe(etag)}">'
        'This page follows the run.<noscript> Without script: <a href="">refresh</a> to see more.</noscript></p>'
    )


def model_name(model: str) -> str:
    """The end of a path that tells models apart, with both kinds of separators; the beginning of a digest."""
    if model.startswith("sha256:"):
        return model[:19]
    path = PurePath(model.replace("\\", "/"))
    is_common = path.name == "model.onnx" and path.parent.name
    return f"{path.parent.name}/{path.name}" if is_common else path.name or model


# The list


def list_body(found: RunList, footer: str) -> str:
    """The list of runs between `<body>` and its script."""
    query = found.query
    main = f"{_form(found)}{_notes(found.notes)}"
    if not found.rows:
        main += f"<p>{_nothing(found)}</p>"
    elif query.other:
        main += _table(found) + _tools(found, "")
    else:
        compare = '<button class="do" id="compare">Compare the two marked runs</button>'
        main += f'{_pager(found)}<form action="/compare" method="get">{_table(found)}{_tools(found, compare)}</form>'
    return (
        f'<div class="broad"><a class="skip" href="#main">Skip to the runs</a>{navigation("/", found.root)}'
        '<header><p class="kind">dashboard</p><h1>Runs</h1>'
        f'<p class="answer quiet">{prose(_summary(found))}</p></header>'
        f'<main id="main">{main}</main><footer>{safe(footer)}</footer></div>'
    )


def _summary(found: RunList) -> str:
    if found.other is not None:
        return f"Choose the run to compare `{_short(found.other)}` with."
    said = counted(found.total, "run")
    parts = [f"{count:,} {state}" for state, count in found.states if state != "finished" and count]
    said += f": {', '.join(parts)}" if parts else ""
    return f"{said}. {found.matching:,} of them shown." if found.query.is_filtered else f"{said}."


def _nothing(found: RunList) -> str:
    if found.total:
        return (
            f'No run fits. <a href="{safe(ListQuery(other=found.query.other).address())}">Show all {found.total:,}</a>'
        )
    return prose(
        f"No runs were found below `{found.root}`. A run is a file that `winml perf`, `compare` or `eval` wrote with "
        "`-o`, or the folder of an `autoconfig`, a `matrix` or a `build`."
    )


def _notes(notes: Sequence[str]) -> str:
    lines = "".join(f"<li>{prose(line)}</li>" for line in notes)
    return f'<ul class="notices warning" aria-label="warnings">{lines}</ul>' if lines else ""


def _form(found: RunList) -> str:
    query = found.query
    hidden = f'<input type="hidden" name="with" value="{safe(query.other)}">' if query.other else ""
    orders = "".join(
        f'<option value="{name}"{" selected" if name == query.sort else ""}>{name}</option>' for name in COLUMNS
    )
    reset = '<a href="/">Show all</a>' if query.is_filtered else ""
    checked = " checked" if query.inside else ""
    return (
        '<form class="ask" action="/" method="get" role="search">'
        f'<label class="words">Search<input type="search" name="q" value="{safe(query.words)}" '
        'placeholder="name, model, target"></label>'
        f"{_select('kind', 'Kind', query.kind, found.kinds)}{_select('target', 'Target', query.target, found.targets)}"
        f"{_select('state', 'State', query.state, found.states)}"
        f'<label class="by">Sort by<select name="sort">{orders}</select></label>'
        f'<label class="check"><input type="checkbox" name="inside" value="1"{checked}>'
        "parts of a matrix or sweep, too</label>"
        f'{hidden}<button class="do quiet">Show</button>{reset}</form>'
    )


def _select(name: str, label: str, chosen: str, options: Sequence[tuple[str, int]]) -> str:
    known = [*options, *([(chosen, 0)] if chosen and chosen not in dict(options) else [])]
    items = ""
    for value, count in known:
        selected = " selected" if value == chosen else ""
        items += f'<option value="{safe(value)}"{selected}>{safe(_short(value))} ({count:,})</option>'
    return f'<label>{label}<select name="{name}"><option value="">all</option>{items}</select></label>'


def _tools(found: RunList, button: str) -> str:
    first = (found.query.page - 1) * ROWS + 1
    last = first + len(found.rows) - 1
    said = f"{first:,} to {last:,} of {found.matching:,}" if found.pages > 1 else counted(found.matching, "run")
    pages = _pager(found)
    sticky = " sticky" if button else ""
    return f'<div class="tools{sticky}"><span>{said}</span>{pages}{button}</div>'


def _pager(found: RunList) -> str:
    """Links to the pages before and after; nothing where there is one."""
    query = found.query
    if found.pages == 1:
        return ""
    links = []
    if query.page > 1:
        links.append(f'<a rel="prev" href="{safe(query.address(page=query.page - 1))}">Previous</a>')
    links.append(f"page {query.page:,} of {found.pages:,}")
    if query.page < found.pages:
        links.append(f'<a rel="next" href="{safe(query.address(page=query.page + 1))}">Next</a>')
    return f'<nav class="pages" aria-label="Pages">{" ".join(f"<span>{link}</span>" for link in links)}</nav>'


def _table(found: RunList) -> str:
    heads = "".join(_head(column, found.query) for column in COLUMNS)
    body = "".join(_row(row, found.query) for row in found.rows)
    pick = '<th class="pick"><span class="skip">compare</span></th>'
    mode = " picks" if found.query.other else ""
    return f'<table class="runs{mode}" aria-label="Runs"><thead><tr>{pick}{heads}</tr></thead>{body}</table>'


_CLASSES = {
    "name": "run",
    "kind": "kind-of",
    "model": "of",
    "target": "on",
    "changed": "when",
    "state": "is",
    "size": "n much",
}


def _head(column: str, query: ListQuery) -> str:
    is_here = column == query.sort
    falling = not query.falling if is_here else column in FALLING
    order = f' aria-sort="{"descending" if query.falling else "ascending"}"' if is_here else ""
    address = safe(query.address(sort=column, falling=falling))
    text = "run" if column == "name" else column
    return f'<th scope="col" class="{_CLASSES[column]}"{order}><a href="{address}">{text}</a></th>'


def _row(row: RunRow, query: ListQuery) -> str:
    folder, _, name = row.name.rpartition("/")
    place = f'<span class="place">{safe(folder)}/</span>' if folder else ""
    shown = _short(row.name)
    if query.other:
        words = urlencode({"a": query.other, "b": row.id})
        pick = f'<a href="/compare?{safe(words)}">compare</a>'
    else:
        pick = f'<input type="checkbox" name="run" value="{safe(row.id)}" aria-label="compare {safe(shown)}">'
    waiting = f' data-run="{safe(row.id)}"' if row.answer is None else ""
    models = tuple(dict.fromkeys(map(model_name, row.models)))
    return (
        f'<tbody><tr><td class="pick">{pick}</td>'
        f'<td class="run"><a href="/run/{safe(row.id)}">{place}{safe(name)}</a></td>'
        f'<td class="kind-of">{safe(row.kind)}</td>'
        f'<td class="of" data-name="model">{safe(join_names(models, "model"))}</td>'
        f'<td class="on" data-name="on">{safe(join_names(row.targets, "target"))}</td>'
        f'<td class="when">{safe(row.changed)}</td><td class="is">{state_html(row.state)}</td>'
        f'<td class="n much">{safe(size(row.bytes))}</td></tr>'
        f'<tr><td class="pick"></td><td class="said" colspan="7"{waiting}>{prose(row.answer or "")}</td></tr></tbody>'
    )


def state_html(state: str) -> str:
    """A state with its glyph and colour."""
    style = STATES[STATE_MARKS[state]]
    return f'<span class="state {style}"><span aria-hidden="true">{STATE_GLYPHS[style]}</span> {safe(state)}</span>'


def join_names(names: Sequence[str], noun: str) -> str:
    """Up to three names, or how many there are."""
    return ", ".join(map(_short, names)) if len(names) <= 3 else counted(len(names), noun)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


# Pages of blocks


def models_page(models: Sequence[ModelRow], runs: int, families: Table) -> Page:
    """Which models there are runs of."""
    rows = tuple(
        Row((
            Cell(_short(one.name), link=ListQuery(words=one.name, inside=True).address()),
            Cell(f"{one.runs:,}", sort=one.runs),
            ", ".join(one.kinds),
            join_names(one.targets, "target"),
            Cell(one.changed, sort=one.changed_ns),
        ))
        for one in models
    )  # fmt: skip
    answer = "No run names a model." if not models else f"{counted(len(models), 'model')} in {counted(runs, 'run')}."
    table = Table("Models with runs", ("model", "runs", "kinds", "targets", "last run"), rows, frozenset({1}))
    return Page("dashboard", "Models", answer, (table, families) if rows else (families,))


def files_table(links: Iterable[tuple[str, str, int]], *, is_partial: bool) -> Table:
    """Files of a run, each with its address and bytes, to download."""
    rows = tuple(Row((Cell(_short(name), link=link), Cell(size(count), sort=count))) for name, link, count in links)
    note = "Only the first files are listed." if is_partial else None
    folded = f"{counted(len(rows), 'file')} to download" if len(rows) > 3 else None
    return Table("Files", ("file", "size"), rows, frozenset({1}), folded, note)


def parts_table(rows: Sequence[RunRow]) -> Table:
    """The cells of a matrix or the searches of a sweep."""
    made = tuple(
        Row((Cell(_short(one.name), link=f"/run/{one.id}"), one.kind, join_names(one.targets, "target"),
             Cell(one.state, state=STATE_MARKS[one.state]), one.changed))
        for one in rows
    )  # fmt: skip
    return Table("Runs inside", ("run", "kind", "target", "state", "changed"), made)
