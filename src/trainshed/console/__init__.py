"""What a browser is shown: files of this package, as they were written. There is no build step.

Files have addresses with a digest of all of them in it, so browsers keep them until one changes. `vendor/`
has the libraries of others. It is not kept with the sources: `scripts/console-assets` fetches it.
"""

import base64
import gzip
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from html import escape
from pathlib import Path

from trainshed.console import modules
from trainshed.console.first_questions import first_questions

HERE = Path(__file__).parent
PREFIX = "/console/files"
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_NEEDED = ("vendor/preact.js", "vendor/hooks.js", "vendor/htm.js")
_INLINE = re.compile(r"<script[^>]*>([^<]+)</script>")
_FILES_MARK = "{files}"  # in pages, where the address of the files is put
_VIEWPORT = b'<meta name="viewport"'  # in pages, before which the provider's name is put
_FIRST_PLACE = b"<!-- first -->"  # in pages, where what a session needs first is put


@dataclass(frozen=True)
class ConsoleFile:
    content: bytes
    media_type: str

    @cached_property
    def packed(self) -> bytes:
        """Compressed once: all browsers share it."""
        return gzip.compress(self.content, 9, mtime=0)


@dataclass(frozen=True)
class ConsolePage:
    file: ConsoleFile
    inline_scripts: tuple[str, ...]  # the hashes by which a policy allows them


@cache
def files() -> dict[str, ConsoleFile]:
    """All files that browsers may have, by their path. Read at the first page, not at the server's start."""
    paths = [path for path in sorted(HERE.rglob("*")) if path.suffix in _TYPES and path.is_file()]
    return {
        str(path.relative_to(HERE)): ConsoleFile(path.read_bytes(), f"{_TYPES[path.suffix]}; charset=utf-8")
        for path in paths
    }


@cache
def version() -> str:
    """A digest of all files."""
    digest = hashlib.blake2b(digest_size=6)
    for name, file in files().items():
        digest.update(f"{name}\0{len(file.content)}\0".encode() + file.content)
    return digest.hexdigest()


def page(address: str) -> ConsolePage:
    """The page for an address behind /console/, or one that says which libraries are missing."""
    shown = [name for name in modules.pages_at(address) if f"pages/{name}.js" in files()]
    return _page(tuple(shown)) if is_complete() else _filled("missing.html", {})


def page_of_session(
    address: str, *, has_query: bool, last_hint: str, projects: Iterable[str] = ()
) -> ConsolePage:
    """The same for somebody who is signed in: it says where hints go on, and what to ask at once.

    `projects` are those of an account that may not see all.
    """
    plain = page(address)
    links = (
        f'<link rel="preload" as="fetch" crossorigin href="{escape(question)}">'
        for question in first_questions(address, has_query=has_query)
    )
    metas = [f'<meta name="last-hint" content="{escape(last_hint)}">']
    if own := " ".join(projects):
        metas.append(f'<meta name="projects" content="{escape(own)}">')
    first = "\n  ".join([*metas, *links])
    content = plain.file.content.replace(_FIRST_PLACE, first.encode(), 1)
    return replace(plain, file=ConsoleFile(content, plain.file.media_type))


def refusal(message: str) -> ConsolePage:
    """A page that says why somebody is not signed in."""
    return _filled("refused.html", {"{message}": escape(message)})


def with_provider(plain: ConsolePage, title: str) -> ConsolePage:
    """The same, which also says with whom people may sign in."""
    named = f'<meta name="provider" content="{escape(title)}">\n  '.encode()
    content = plain.file.content.replace(_VIEWPORT, named + _VIEWPORT, 1)
    return replace(plain, file=ConsoleFile(content, plain.file.media_type))


@cache
def _page(shown: tuple[str, ...]) -> ConsolePage:
    """The page names at once all files that modules `shown` need."""
    texts = {name: file.content.decode() for name, file in files().items() if name.endswith((".js", ".html"))}
    roots = ["main.js", *(f"pages/{name}.js" for name in shown)]
    needed = modules.with_imports(roots, texts, modules.libraries(texts["index.html"]))
    looks = [name for module in needed if (name := f"{module.removesuffix('.js')}.css") in files()]
    return _filled(
        "index.html", {"{looks}": _links("stylesheet", looks), "{modules}": _links("modulepreload", needed)}
    )


def _links(relation: str, names: Iterable[str]) -> str:
    return "\n  ".join(f'<link rel="{relation}" href="{_FILES_MARK}/{name}">' for name in names)


def _filled(name: str, marks: Mapping[str, str]) -> ConsolePage:
    text = files()[name].content.decode()
    for mark, value in {**marks, _FILES_MARK: f"{PREFIX}/{version()}"}.items():
        text = text.replace(mark, value)
    return ConsolePage(
        ConsoleFile(text.encode(), files()[name].media_type),
        tuple(_policy_hash(script) for script in _INLINE.findall(text)),
    )


def is_complete() -> bool:
    return all(name in files() for name in _NEEDED)


def _policy_hash(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
