"""Which modules a page needs, read from their own import statements.

The server names them all in the page it sends, so that a browser asks for every module at once: none waits
until the one that imports it was read.
"""

import re
from collections.abc import Iterable, Mapping
from posixpath import dirname, join, normpath

STATIC_IMPORT = re.compile(
    r"""^(?:import|(?:import|export)\b[^;'"(]*?\bfrom)\s*["']([^"']+)["']""", re.MULTILINE
)
_LIBRARY = re.compile(r'"([^"]+)": "\{files\}/([^"]+)"')  # in the import map of index.html
_ONE_OF = {"jobs": "job", "studies": "study"}  # a list to the page of one thing in it
_TAB_AT = 4  # jobs/PROJECT/LOCATION/ID/TAB


def pages_at(address: str) -> list[str]:
    """The files of pages/, without ending, that main.js shows at an address behind /console/."""
    parts = [part for part in address.split("/") if part] or ["jobs"]
    if len(parts) == 1 or parts[0] not in _ONE_OF:
        return [parts[0]]
    page = _ONE_OF[parts[0]]
    return [page, f"{page}-{parts[_TAB_AT] if len(parts) > _TAB_AT else 'overview'}"]


def libraries(index: str) -> dict[str, str]:
    """The names by which modules import the libraries of others, and their files."""
    return dict(_LIBRARY.findall(index))


def with_imports(roots: Iterable[str], texts: Mapping[str, str], named: Mapping[str, str]) -> list[str]:
    """The modules, with all that they import and that is here, sorted."""
    wanted, seen = list(roots), set[str]()
    while wanted:
        name = wanted.pop()
        if name in seen or name not in texts:
            continue
        seen.add(name)
        wanted += [resolved(name, target, named) for target in STATIC_IMPORT.findall(texts[name])]
    return sorted(seen)


def resolved(name: str, target: str, named: Mapping[str, str]) -> str:
    """The file that `target` means in module `name`."""
    return normpath(join(dirname(name), target)) if target.startswith(".") else named.get(target, target)
