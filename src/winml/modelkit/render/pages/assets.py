"""The style and the script of every page. Nothing in them comes from a run."""

from __future__ import annotations

import base64
import hashlib

from winml.modelkit.render.figures.style import FIGURE_RULES, variables

PAGE_STYLE = (
    variables(":root")
    + """
:root{color-scheme:light dark}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,"Segoe UI","Helvetica Neue",Arial,sans-serif;color:var(--wk-ink);
background:var(--wk-paper);margin:0}
a{color:var(--wk-main)}
.skip{position:absolute;left:-100vw}.skip:focus{left:1rem;top:.5rem;background:var(--wk-paper);padding:.3rem .6rem}
header,main,footer,nav.top{max-width:64rem;margin:0 auto;padding:0 1.25rem}
header{padding-top:1.75rem}
.kind{color:var(--wk-soft);font-size:.85rem;letter-spacing:.04em;text-transform:uppercase;margin:0}
h1{font-size:1.6rem;line-height:1.25;margin:.15rem 0 .75rem;overflow-wrap:anywhere}
h2{font-size:1.2rem;line-height:1.3;margin:2.5rem 0 .35rem;overflow-wrap:anywhere}
h3{font-size:1.05rem;margin:1.75rem 0 .35rem;overflow-wrap:anywhere}
.answer{font-size:1.15rem;margin:0 0 1rem;padding:.7rem 1rem;border-left:4px solid var(--wk-plain);
background:var(--wk-shade);border-radius:0 .4rem .4rem 0;overflow-wrap:anywhere}
.answer.good{border-color:var(--wk-good)}.answer.bad{border-color:var(--wk-bad)}.answer.unsure{border-color:var(--wk-open)}
.sentence{margin:.1rem 0 .75rem;color:var(--wk-soft);max-width:46rem;overflow-wrap:anywhere}
figure{margin:0 0 .9rem}
.narrow{display:none}
.notices{list-style:none;margin:1rem 0;padding:0}
.notices li{border:1px solid var(--wk-rule);border-left:4px solid var(--wk-open);border-radius:.3rem;
padding:.4rem .8rem;margin:.4rem 0;overflow-wrap:anywhere}
.notices.note li{border-left-color:var(--wk-plain)}
.scroll{overflow-x:auto;margin:.4rem 0}
table{border-collapse:collapse;font-size:.9rem;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;vertical-align:top;padding:.3rem 1rem .3rem 0;border-bottom:1px solid var(--wk-rule)}
th{font-weight:600;white-space:nowrap}td{white-space:nowrap;min-width:2.5rem}
td.long{white-space:normal;overflow-wrap:anywhere;min-width:11rem}
td:first-child{min-width:7.5rem}
th.n,td.n{text-align:right;padding:.3rem 0 .3rem 1rem;white-space:nowrap}
th.n+th,td.n+td{padding-left:1.25rem}
tr.marked td{font-weight:600;background:var(--wk-shade)}
th button{font:inherit;color:inherit;background:none;border:0;padding:0;cursor:pointer}
th button::after{content:"\\2195";color:var(--wk-soft);padding-left:.25rem}
th[aria-sort=ascending] button::after{content:"\\2191"}th[aria-sort=descending] button::after{content:"\\2193"}
.filter{font:inherit;color:inherit;background:var(--wk-paper);border:1px solid var(--wk-soft);border-radius:.3rem;
padding:.25rem .5rem;margin:.25rem 0;width:18rem;max-width:100%}
dl{display:grid;grid-template-columns:minmax(8rem,max-content) 1fr;gap:.15rem 1.25rem;margin:.4rem 0;font-size:.9rem}
dt{color:var(--wk-soft)}dd{margin:0;overflow-wrap:anywhere}
pre{background:var(--wk-shade);padding:.7rem 1rem;border-radius:.4rem;overflow-x:auto;font-size:.85rem;line-height:1.4}
code{font-family:ui-monospace,Consolas,"DejaVu Sans Mono",monospace;overflow-wrap:anywhere}
details{margin:.75rem 0}summary{cursor:pointer;color:var(--wk-soft)}summary:hover{color:var(--wk-ink)}
.state{white-space:nowrap}.state.good{color:var(--wk-good)}.state.bad{color:var(--wk-bad)}
.state.unsure{color:var(--wk-open)}.state.quiet{color:var(--wk-plain)}
.columns{display:grid;grid-template-columns:1fr 1fr;gap:0 2rem;align-items:start}.columns>*{min-width:0}
.columns h2{margin-top:1.5rem}
.next{margin:1.5rem 0}
footer{color:var(--wk-soft);font-size:.85rem;margin-top:3rem;padding-bottom:2.5rem;overflow-wrap:anywhere}
:focus-visible{outline:2px solid var(--wk-main);outline-offset:2px}
#tip{position:absolute;z-index:9;max-width:22rem;padding:.35rem .6rem;border-radius:.3rem;background:var(--wk-ink);
color:var(--wk-paper);font-size:.85rem;pointer-events:none;overflow-wrap:anywhere}
@media (max-width:640px){header,main,footer,nav.top{padding-left:1rem;padding-right:1rem}h1{font-size:1.35rem}
.wide{display:none}.narrow{display:block}.columns{grid-template-columns:1fr}dl{grid-template-columns:1fr;gap:0}
dd{margin-bottom:.35rem}td{min-width:7rem}td.n{min-width:2.5rem}
td:last-child:not(.n){min-width:14rem}}
@media print{body{font-size:11pt}.filter,.skip,#tip,th button::after{display:none}
.wide{display:block}.narrow{display:none}
h2,h3{break-after:avoid}figure,tr,.notices li{break-inside:avoid}main,header,footer{max-width:none;padding:0}}
"""
    + FIGURE_RULES
)

PAGE_SCRIPT = """
(function(){
"use strict";
var tip=document.createElement("div");tip.id="tip";tip.hidden=true;document.body.appendChild(tip);
function show(e){
  var m=e.target.closest&&e.target.closest(".wk-mark");
  if(!m){tip.hidden=true;return;}
  tip.textContent=m.getAttribute("aria-label");tip.hidden=false;
  var b=m.getBoundingClientRect(),w=tip.offsetWidth,h=tip.offsetHeight,p=document.documentElement;
  var x=Math.min(Math.max(b.left+b.width/2-w/2,4),p.clientWidth-w-4);
  var y=b.top-h-6<4?b.bottom+6:b.top-h-6;
  tip.style.left=(x+window.scrollX)+"px";tip.style.top=(y+window.scrollY)+"px";
}
["mouseover","focusin","click"].forEach(function(n){document.addEventListener(n,show);});
document.addEventListener("keydown",function(e){
  if(e.key==="Escape"){tip.hidden=true;return;}
  var m=document.activeElement;
  if(!m||!m.classList.contains("wk-mark")||["ArrowRight","ArrowDown","ArrowLeft","ArrowUp"].indexOf(e.key)<0){return;}
  var all=Array.prototype.slice.call(m.closest("svg").querySelectorAll(".wk-mark"));
  var next=all[all.indexOf(m)+(e.key==="ArrowRight"||e.key==="ArrowDown"?1:-1)];
  if(next){e.preventDefault();next.focus();}
});
function key(c){var s=c.getAttribute("data-sort");return s===null?c.textContent.trim():parseFloat(s);}
function order(a,b){
  if(typeof a==="number"&&typeof b==="number"){return a-b;}
  var x=parseFloat(a),y=parseFloat(b);
  if(!isNaN(x)&&!isNaN(y)&&x!==y){return x-y;}
  return String(a).localeCompare(String(b));
}
function prepare(root){
root.querySelectorAll(".wk-mark>title").forEach(function(t){t.remove();});
root.querySelectorAll("table.sorts").forEach(function(t){
  var body=t.tBodies[0],heads=Array.prototype.slice.call(t.tHead.rows[0].cells);
  heads.forEach(function(h,i){
    var b=document.createElement("button");b.type="button";b.textContent=h.textContent;
    h.textContent="";h.appendChild(b);
    b.addEventListener("click",function(){
      var up=h.getAttribute("aria-sort")!=="ascending";
      heads.forEach(function(o){o.removeAttribute("aria-sort");});
      h.setAttribute("aria-sort",up?"ascending":"descending");
      Array.prototype.slice.call(body.rows).sort(function(r,s){
        var o=order(key(r.cells[i]),key(s.cells[i]));return up?o:-o;
      }).forEach(function(r){body.appendChild(r);});
    });
  });
  if(body.rows.length<15){return;}
  var f=document.createElement("input");f.type="search";f.className="filter";
  f.placeholder="filter "+body.rows.length+" rows";
  f.setAttribute("aria-label","filter the rows of "+(t.getAttribute("aria-label")||"this table"));
  t.parentNode.parentNode.insertBefore(f,t.parentNode);
  f.addEventListener("input",function(){
    var w=f.value.toLowerCase();
    Array.prototype.forEach.call(body.rows,function(r){r.hidden=r.textContent.toLowerCase().indexOf(w)<0;});
  });
});
}
prepare(document);
document.addEventListener("wk-new",function(e){prepare(e.target);});
window.addEventListener("beforeprint",function(){
  document.querySelectorAll("details").forEach(function(d){d.open=true;});
});
})();
"""


def source_of(content: str) -> str:
    """What a content security policy calls this style or script."""
    return "'sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() + "'"


def policy(*, script: str = PAGE_SCRIPT, style: str = PAGE_STYLE, forms: str = "'none'", more: str = "") -> str:
    """The content security policy of a page with this script: requests only where `forms` and `more` say."""
    return (
        f"default-src 'none'; style-src {source_of(style)}; script-src {source_of(script)}; "
        f"base-uri 'none'; form-action {forms}{more}"
    )
