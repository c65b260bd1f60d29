"""The rules of the console's pages as functions: its folder to the list of what is wrong and what to do."""

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

from trainshed.console.modules import STATIC_IMPORT, libraries, resolved, with_imports

MOST_LINES = 300
MOST_BYTES = 60_000
LAYERS = ("pages", "parts", "lib")
# Text of jobs would become markup or code by these; the policy refuses style attributes.
UNSAFE = re.compile(
    r"[iI]nnerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|\beval\(|\bFunction\(|\sstyle=|createContextualFragment"
)
FOREIGN = re.compile(r"""https?://(?!www\.w3\.org/)|["'(]//\w""")
# Not `../pages/${name}.js`: who loads a page by its name does not know which.
DYNAMIC_IMPORT = re.compile(r"""\bimport\(\s*["'`]([^"'`$]+)["'`]""")
CLASSES = re.compile(r'\bclass="([^"$]*)"')
SELECTORS = re.compile(r"([^{}]+)\{")
LIBRARIES_OF_UI = ("preact", "preact/hooks", "htm")


def sources(folder: Path, *endings: str) -> Iterator[tuple[str, str]]:
    """Name and text of each file that we wrote."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.suffix in endings and not name.startswith("vendor"):
            yield name, path.read_text(encoding="utf-8")


def long_modules(folder: Path) -> list[str]:
    return [
        f"{name} has {count} lines: split it by noun or verb until each part has at most {MOST_LINES}"
        for name, text in sources(folder, ".js", ".css")
        if (count := len(text.splitlines())) > MOST_LINES
    ]


def unsafe_words(folder: Path) -> list[str]:
    return [
        f"{name}:{number} has '{match[0].strip()}': draw text by html`…`, set looks by class or style.x"
        for name, text in sources(folder, ".js", ".html")
        for number, line in enumerate(text.splitlines(), 1)
        if (match := UNSAFE.search(line))
    ]


def foreign_addresses(folder: Path) -> list[str]:
    return [
        f"{name}:{number} names an address of others: pages load nothing but what the server has"
        for name, text in sources(folder, ".js", ".css", ".html")
        for number, line in enumerate(text.splitlines(), 1)
        if FOREIGN.search(line)
    ]


def leaking_looks(folder: Path) -> list[str]:
    """Looks of a page stay when another page is shown: they name what is theirs, and no two the same."""
    owners: dict[str, str] = {}
    wrong: list[str] = []
    for name, text in sources(folder, ".css"):
        if name == "style.css":
            continue
        for selector, first in selectors(text):
            if "." not in first:
                wrong.append(f"{name}: '{selector}' means all pages: begin with a class of this page")
            elif owners.setdefault(first, name) != name:
                wrong.append(f"{name}: {owners[first]} has looks of '{first}' too: choose another name")
    return wrong


def borrowed_looks(folder: Path) -> list[str]:
    """A page that is opened by its address has the looks of no other page."""
    owners: dict[str, set[str]] = {}
    for name, text in sources(folder, ".css"):
        for word in (word for _, first in selectors(text) for word in re.findall(r"\.([\w-]+)", first)):
            owners.setdefault(word, set()).add(page_of(name) if name.startswith("pages/") else "")
    texts = dict(sources(folder, ".js"))
    wrong = {
        f"{module} in page {page_of(page)} has class '{word}': move its looks from page "
        f"{', '.join(owners[word])} to style.css or parts/"
        for page in texts
        if page.startswith("pages/")
        for module in with_imports([page], texts, {})
        for words in CLASSES.findall(texts[module])
        for word in words.split()
        if word in owners and not owners[word] & {"", page_of(page)}
    }
    return sorted(wrong)


def selectors(text: str) -> Iterator[tuple[str, str]]:
    """Each selector of a style sheet, with its first element."""
    rules = re.sub(r"/\*.*?\*/|@media[^{]*\{|@import[^;]*;|\([^()]*\)", "", text, flags=re.DOTALL)
    for selector in (part.strip() for head in SELECTORS.findall(rules) for part in head.split(",")):
        yield selector, re.split(r"[ >+~:]", selector, maxsplit=1)[0]


def imports_upwards(folder: Path) -> list[str]:
    """Pages stand on parts, parts on lib. Pages know their own files: jobs.js imports jobs-columns.js."""
    return [
        f"{name} imports {target}: pages import their own files, parts and lib; parts import parts and lib; "
        "lib imports lib; only lib/ui.js imports preact and htm"
        for name, text in sources(folder, ".js")
        for target in [*STATIC_IMPORT.findall(text), *DYNAMIC_IMPORT.findall(text)]
        if not may_import(name, target)
    ]


def may_import(name: str, target: str) -> bool:
    if not target.startswith("."):
        return target not in LIBRARIES_OF_UI or name == "lib/ui.js"
    layer, target_layer = name.split("/", maxsplit=1)[0], resolved(name, target, {}).split("/")[0]
    if layer not in LAYERS:
        return True  # what stands above all layers: main.js
    if target_layer not in LAYERS or LAYERS.index(target_layer) < LAYERS.index(layer):
        return False
    return target_layer != "pages" or page_of(resolved(name, target, {})) == page_of(name)


def page_of(name: str) -> str:
    """The page that a module belongs to: jobs for pages/jobs-columns.js."""
    return re.split(r"[-.]", name.removeprefix("pages/"), maxsplit=1)[0]


def first_page(folder: Path) -> set[str]:
    """The files that a browser fetches to show the list of jobs."""
    texts = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in folder.rglob("*.js")
    }
    named = libraries((folder / "index.html").read_text(encoding="utf-8"))
    scripts = with_imports(["main.js", "pages/jobs.js"], texts, named)
    return {"index.html", "icon.svg", "style.css", "pages/jobs.css", *scripts}


def heavy_first_page(folder: Path) -> list[str]:
    sizes = {name: len(gzip.compress((folder / name).read_bytes(), 9)) for name in first_page(folder)}
    total = sum(sizes.values())
    largest = sorted(sizes.items(), key=lambda row: -row[1])
    told = ", ".join(f"{name} {size:,}" for name, size in largest[:8])
    return [] if total <= MOST_BYTES else [f"index.html: the first page has {total:,} bytes: {told}, …"]
