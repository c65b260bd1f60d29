"""Debian packages and sources without touching the machine's own: apt with lists, caches and sources of ours.

The mirror is the one that this machine's package sources name. apt checks every file against Debian's
signature.
"""

import os
import re
import subprocess
from pathlib import Path

from scripts.cluster_parts.steps import Steps

SUITES = "bullseye bookworm"  # Go 1.15, which Kubernetes 1.20 was made with, is in the older one
RELEASE = "bookworm"
MIRROR = "TRAINSHED_DEBIAN_MIRROR"
KEYRINGS = Path("/usr/share/keyrings")
SOURCES = """Types: deb deb-src
URIs: {mirror}
Suites: {suites}
Components: main
Signed-By: {keyring}
"""
CONFIG = """Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "{folder}/sources";
Dir::State::lists "{folder}/lists";
Dir::Cache "{folder}/cache";
APT::Default-Release "{release}";
APT::Sandbox::User "root";
"""


def why_not() -> str | None:
    """What keeps this machine from asking Debian for packages; None where nothing does."""
    if not mirrors():
        return f"this machine's package sources name no mirror of Debian; name one in {MIRROR}"
    return None if keyring() else f"no keys of Debian in {KEYRINGS} (apt install debian-archive-keyring)"


def mirrors() -> list[str]:
    if chosen := os.environ.get(MIRROR):
        return [chosen]
    folder = Path("/etc/apt")
    files = [folder / "sources.list", *sorted(folder.glob("sources.list.d/*.*"))]
    texts = [path.read_text(errors="replace") for path in files if path.is_file()]
    lines = [line for text in texts for line in text.splitlines() if not line.lstrip().startswith("#")]
    places = [place for line in lines for place in re.findall(r"https?://[^\s\]]+", line)]
    return [place for place in places if "debian" in place and "security" not in place]


def keyring() -> Path | None:
    return next(iter(sorted(KEYRINGS.glob("debian-archive-keyring.*"))), None)


class Apt:
    """Its files are in one folder, which can be removed at any time."""

    def __init__(self, folder: Path, steps: Steps) -> None:
        self._steps = steps
        self._env = os.environ | {"APT_CONFIG": f"{folder}/apt.conf", "DEBIAN_FRONTEND": "noninteractive"}
        for name in ("sources", "lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        texts = {
            "sources/debian.sources": SOURCES.format(mirror=mirrors()[0], suites=SUITES, keyring=keyring()),
            "apt.conf": CONFIG.format(folder=folder, release=RELEASE),
        }
        for name, text in texts.items():
            (folder / name).write_text(text)

    def update(self) -> None:
        self._steps.run("reading Debian's lists", ["apt-get", "-q", "update"], env=self._env)

    def unpack(self, names: list[str], debs: Path, target: Path) -> None:
        """Packages as they are in the archive: nothing is installed, and none of their scripts runs."""
        debs.mkdir(parents=True, exist_ok=True)
        words = ["apt-get", "-q", "download", *names]
        self._steps.run(f"fetching {len(names)} packages", words, env=self._env, cwd=debs)
        target.mkdir(parents=True, exist_ok=True)
        for deb in sorted(debs.glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", str(deb), str(target)], check=True)

    def source(self, name: str, folder: Path) -> Path:
        """The description of the source package; all its files lie beside it."""
        folder.mkdir(parents=True, exist_ok=True)
        words = ["apt-get", "-q", "source", "--download-only", name]
        self._steps.run(f"fetching the source of {name}", words, env=self._env, cwd=folder)
        return next(folder.glob(f"{name}_*.dsc"))
