"""What a browser is shown: files of this package. No template, no build step, nothing from elsewhere.

xterm.js is not ours and not kept with the sources: `scripts/console-assets` puts it into `xterm/`; where that
was not done, the page says so.
"""

from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_FILES = {
    **{name: _HERE / name for name in ("shell.html", "shell.js", "shell.css", "icon.svg")},
    **{name: _HERE / "xterm" / name for name in ("xterm.js", "xterm.css", "addon-fit.js")},
}


def file(name: str) -> tuple[bytes, str] | None:
    """A file by its name, and its type; None where there is none."""
    path = _FILES.get(name)
    try:
        return None if path is None else (_content(path), f"{_TYPES[path.suffix]}; charset=utf-8")
    except FileNotFoundError:
        return None


@cache
def _content(path: Path) -> bytes:
    """Read once: clients that ask for a file and do not take it share its bytes."""
    return path.read_bytes()
