"""Takes pictures of the built site with Chromium, and says which other hosts it asked for something.

    make docs && python scripts/docs/screenshots.py           into build/screenshots
    python scripts/docs/screenshots.py --page matrix.html     one page: light, dark and on a phone
    python scripts/docs/screenshots.py --commit               also writes the two of docs/images

Needs `chromium` (Debian: apt-get install chromium) and pillow. Exit 1 when a page asks another host.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from PIL import Image

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build/site"
SHOTS = ROOT / "build/screenshots"
IMAGES = ROOT / "docs/images"
PHONE = 360


@dataclass(frozen=True)
class Shot:
    """A page at a width, light or dark."""

    name: str
    page: str
    width: int = 1280
    height: int = 900
    dark: bool = False


class _Handler(http.server.SimpleHTTPRequestHandler):
    """The site, and `/frame?WIDTH,HEIGHT,PAGE`: a page in a frame, as a window cannot be as narrow as a phone."""

    def do_GET(self) -> None:
        if not self.path.startswith("/frame?"):
            super().do_GET()
            return
        width, height, page = self.path.removeprefix("/frame?").split(",", 2)
        body = (
            f'<meta name="color-scheme" content="light dark"><body style="margin:0"><iframe src="/{page}"'
            f' style="border:0;width:{width}px;height:{height}px"></iframe>'
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the pictures are the output."""


@contextmanager
def _serving() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, directory=SITE))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


def foreign_hosts(net_log: dict[str, Any], address: str) -> set[str]:
    """Hosts other than ours that a page asked, by Chromium's log of its network.

    Only what a page began counts: the browser asks its maker for updates on its own account.
    """
    asked = [event.get("params", {}) for event in net_log["events"]]
    urls = [one["url"] for one in asked if "url" in one and str(one.get("initiator", "")).startswith(address)]
    assert urls, "the log has no request of a page"
    return {str(urlsplit(url).hostname) for url in urls if url.startswith("http") and not url.startswith(address)}


def take(shot: Shot, address: str, chromium: str) -> set[str]:
    """Write one picture and return the other hosts that were asked."""
    width = max(shot.width, 600)
    url = f"{address}/{shot.page}"
    if shot.width < width:
        url = f"{address}/frame?{shot.width},{shot.height},{quote(shot.page, safe='/#')}"
    with tempfile.TemporaryDirectory() as folder:
        log, picture = Path(folder) / "net.json", Path(folder) / "shot.png"
        subprocess.run(
            [
                chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-default-apps",
                f"--user-data-dir={folder}/profile", f"--log-net-log={log}", "--virtual-time-budget=4000",
                f"--blink-settings=preferredColorScheme={0 if shot.dark else 1}",
                f"--window-size={width},{shot.height}", f"--screenshot={picture}", url,
            ],
            check=True, capture_output=True, timeout=120,
        )  # fmt: skip
        with Image.open(picture) as image:
            cut = image.convert("RGB").crop((0, 0, shot.width, min(image.height, shot.height)))
            cut.save(SHOTS / f"{shot.name}.png", optimize=True)
        return foreign_hosts(json.loads(log.read_text(encoding="utf-8")), address)


def _shots(page: str | None) -> list[Shot]:
    """One page in every way, or the usual ones: a guide is taken where there is one, otherwise a page in depth."""
    if page is not None:
        return [Shot("page-light", page), Shot("page-dark", page, dark=True), Shot("page-phone", page, PHONE)]
    guides = sorted(path.relative_to(SITE).as_posix() for path in (SITE / "guides").glob("*.html"))
    pages = {
        "home": "index.html",
        "guide": guides[0] if guides else "measuring.html",
        "command": "reference/commands/perf.html",
        "api": "reference/api.html",
        "json": "reference/json/perf.html",
    }
    return [
        *(Shot(f"{name}-light", page) for name, page in pages.items()),
        *(Shot(f"{name}-dark", page, dark=True) for name, page in pages.items()),
        Shot("home-phone", pages["home"], PHONE),
        Shot("command-phone", pages["command"], PHONE, dark=True),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commit", action="store_true", help="also write docs/images/site-*.webp")
    parser.add_argument("--only", default="", help="names that begin like this")
    parser.add_argument("--page", help="a page of the site, instead of the usual ones")
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None or not (SITE / "index.html").is_file():
        print("needs chromium (apt-get install chromium) and a built site (make docs)", file=sys.stderr)
        return 1
    SHOTS.mkdir(parents=True, exist_ok=True)
    asked: set[str] = set()
    with _serving() as address:
        for shot in _shots(options.page):
            if shot.name.startswith(options.only):
                asked |= take(shot, address, chromium)
                print(f"wrote {SHOTS.relative_to(ROOT) / shot.name}.png")
    if options.commit:
        for scheme in ("light", "dark"):
            with Image.open(SHOTS / f"home-{scheme}.png") as image:
                image.save(IMAGES / f"site-{scheme}.webp", quality=80, method=6)
    print(f"other hosts that were asked: {', '.join(sorted(asked)) or 'none'}")
    return 1 if asked else 0


if __name__ == "__main__":
    sys.exit(main())
