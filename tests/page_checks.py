"""What every page has to pass in a browser, as scripts that return complaints."""

from __future__ import annotations

from chromium import Page

VIEWS: dict[str, dict[str, str | int]] = {
    "light": {},
    "dark": {"scheme": "dark"},
    "phone": {"width": 360},
    "paper": {"media": "print"},
}
"""How a page is looked at."""

OVERFLOW = """
(() => {
  const wide = document.documentElement.clientWidth;
  const scrolls = e => e.closest(".scroll, pre") !== null;
  return Array.from(document.querySelectorAll("body *"))
    .filter(e => { const b = e.getBoundingClientRect();
      const far = b.right > wide + 1 || (e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0
        && b.left + e.scrollWidth > wide + 1);
      return b.width > 0 && far && !scrolls(e) && !e.classList.contains("skip"); })
    .map(e => e.tagName + "." + (e.getAttribute("class") || "") + ": " + e.textContent.slice(0, 40));
})()
"""
"""Elements that leave the page to the right; tables and code may, in a box of their own that scrolls."""

OVERLAPS = """
(() => {
  const found = [];
  document.querySelectorAll("svg.wk-figure").forEach(svg => {
    const boxes = Array.from(svg.querySelectorAll("text"))
      .map(t => [t.textContent, t.getBoundingClientRect()]).filter(one => one[1].width > 0);
    boxes.sort((a, b) => a[1].top - b[1].top);
    for (let i = 0; i < boxes.length; i++) {
      for (let j = i + 1; j < boxes.length; j++) {
        const a = boxes[i][1], b = boxes[j][1];
        if (b.top >= a.bottom) { break; }
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 1 && down > 3) { found.push(boxes[i][0] + " | " + boxes[j][0]); }
      }
    }
  });
  return found;
})()
"""
"""Labels on one another. A box of a text has three pixels for accents and descenders that two lines may share."""

CONTRAST = """
(() => {
  const numbers = c => (c.match(/[0-9.]+/g) || []).map(Number);
  const light = c => { const l = c.slice(0, 3).map(v => { v /= 255;
      return v <= 0.03928 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4); });
    return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2]; };
  const ratio = (a, b) => { const x = light(a), y = light(b);
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05); };
  const over = (top, bottom) => { const a = top.length > 3 ? top[3] : 1;
    return [0, 1, 2].map(i => top[i] * a + bottom[i] * (1 - a)); };
  const paper = e => { const chain = []; for (let n = e; n; n = n.parentElement) { chain.unshift(n); }
    return chain.reduce((below, n) => { const c = numbers(getComputedStyle(n).backgroundColor);
      return c.length ? over(c, below) : below; }, [255, 255, 255]); };
  const found = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const e = node.parentElement;
    if (!node.textContent.trim() || ["SCRIPT", "STYLE", "TITLE", "title"].includes(e.tagName)) { continue; }
    const box = e.getBoundingClientRect();
    if (box.width === 0 || e.closest("#tip, .skip")) { continue; }
    const style = getComputedStyle(e), inside = e.closest("svg");
    let below = paper(inside || e);
    if (inside) {
      const x = box.left + box.width / 2, y = box.top + box.height / 2;
      inside.querySelectorAll("rect").forEach(r => { const b = r.getBoundingClientRect();
        if (b.left < x && x < b.right && b.top < y && y < b.bottom) { const s = getComputedStyle(r);
          const c = numbers(s.fill); if (c.length) {
            below = over([c[0], c[1], c[2], (c.length > 3 ? c[3] : 1) * Number(s.fillOpacity) * Number(s.opacity)],
                         below); } } });
    }
    const colour = numbers(inside ? style.fill : style.color);
    if (colour.length && ratio(over(colour, below), below) < 4.5) {
      found.add(node.textContent.trim().slice(0, 40) + ": " + ratio(over(colour, below), below).toFixed(2));
    }
  }
  return Array.from(found);
})()
"""
"""Texts whose contrast with what lies under them is less than 4.5."""

STRUCTURE = """
(() => {
  const found = [];
  if (document.querySelectorAll("h1").length !== 1) { found.push("not one h1"); }
  for (const name of ["header", "main", "footer"]) {
    if (document.querySelectorAll(name).length !== 1) { found.push("not one " + name); } }
  let before = 1;
  document.querySelectorAll("h1,h2,h3,h4,h5,h6").forEach(h => { const level = Number(h.tagName[1]);
    if (level > before + 1) { found.push("heading skips a level: " + h.textContent); } before = level; });
  const ids = Array.from(document.querySelectorAll("[id]")).map(e => e.id);
  ids.filter((id, i) => ids.indexOf(id) !== i).forEach(id => found.push("id twice: " + id));
  document.querySelectorAll("svg.wk-figure").forEach(s => {
    if (!s.getAttribute("aria-label")) { found.push("a picture without a name"); } });
  document.querySelectorAll("[style]").forEach(e => {
    if (e.id !== "tip") { found.push("a style attribute: " + e.outerHTML.slice(0, 60)); } });
  return found;
})()
"""
"""Headings, landmarks and names that a screen reader needs."""

MARKS = """
Array.from(document.querySelectorAll(".wk-mark")).filter(m => m.getBoundingClientRect().width > 0)
  .map(m => m.getAttribute("aria-label"))
"""
"""What the marks that are seen say."""


def complaints(page: Page) -> dict[str, list[str]]:
    """Everything that is wrong with a page; empty when nothing is."""
    found = {
        "console": page.complaints,
        "overflow": page.run(OVERFLOW),
        "overlaps": page.run(OVERLAPS),
        "contrast": page.run(CONTRAST),
        "structure": page.run(STRUCTURE),
        "requests": page.requests[1:],
    }
    return {name: lines for name, lines in found.items() if lines}
