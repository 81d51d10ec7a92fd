"""`python -m tools.site`: builds the documentation site in build/site/html. `--serve` shows it on this machine."""

from __future__ import annotations

import argparse
import functools
import http.server
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from .links import broken_links
from .pages import DOCS, ROOT, copy_pages, remove

WORK = ROOT / "build" / "site"
SERVED = ("127.0.0.1", 8000)


def build(work: Path) -> Path:
    """Builds the site in a folder, warnings are errors; returns where its pages are."""
    if find_spec("pydata_sphinx_theme") is None:
        raise SystemExit("The site needs the extra docs and Python 3.11 or newer: pip install -e '.[docs]'")
    copy_pages(work / "source")
    html = work / "html"
    command = ["-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-c", DOCS, "-d", work / "doctrees"]
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, *map(str, [*command, work / "source", html])], check=False, env=surroundings)
    if done.returncode:
        raise SystemExit(f"The site was not built: Sphinx ended with {done.returncode}; it says why above.")
    if broken := broken_links(html):
        raise SystemExit("\n".join(["Links that lead nowhere:", *broken]))
    return html


def serve(html: Path) -> None:
    """Serves the pages on this machine until you press Ctrl+C."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=html)
    with http.server.ThreadingHTTPServer(SERVED, handler) as server:
        print("The site is at http://{}:{}/ (Ctrl+C ends).".format(*SERVED))
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tools.site", description=__doc__)
    parser.add_argument("--serve", action="store_true", help="serve the site on this machine after building it")
    parser.add_argument("--clean", action="store_true", help="build every page anew")
    parser.add_argument("--work", type=Path, default=WORK, help="folder to build in")
    given = parser.parse_args()
    if given.clean:
        remove(given.work)
    html = build(given.work)
    print(f"The site is in {html}")
    if given.serve:
        serve(html)


if __name__ == "__main__":
    main()
