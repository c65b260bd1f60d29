"""Servers for tests, run by root, in which other users take part: those of jobs, or that of the server."""

import shlex
import sys
from pathlib import Path

from tests.live import LiveServer

ROOT = Path(__file__).parents[1]


def reachable(*flags: str) -> LiveServer:
    """A server whose home, Python and sources other users get to, wherever those of these tests are."""
    server = LiveServer("--cpus", "64", "--memory", "512GiB", *flags)
    server.base.chmod(0o711)
    hidden = {place: top for place in (Path(sys.base_prefix), ROOT) if (top := _closed_above(place))}
    if hidden:
        kept = {place: f"{server.base}/shown-{number}" for number, place in enumerate(hidden)}
        words = [
            ["mount", "--make-rprivate", "/"],
            ["mkdir", "-p", *kept.values()],
            *(["mount", "--bind", str(place), shown] for place, shown in kept.items()),
            *(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(top)] for top in set(hidden.values())),
            *(["mkdir", "-p", str(place)] for place in kept),
            *(["mount", "--move", shown, str(place)] for place, shown in kept.items()),
        ]
        show = " && ".join([*map(shlex.join, words), 'exec "$@"'])
        server.prefix = ("unshare", "--mount", "sh", "-c", show, "sh")
    return server


def _closed_above(place: Path) -> Path | None:
    """The uppermost folder above it through which other users do not get."""
    return next((top for top in reversed(place.parents) if not top.stat().st_mode & 0o001), None)
