"""The rules about words as functions: a folder to the list of what is wrong and what to do."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.rules.source import Module, modules

LONGEST_LINE = 120
# Names that say nothing of what they are bound to. The cap only ever goes down.
EMPTY = {"found", "held", "one", "said", "told"}
MOST_EMPTY = 25


def repeated_classes(folder: Path) -> list[str]:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for module in modules(folder):
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module.name)
    return [
        f"{where[0]} has a class {name}, and so has {', '.join(where[1:])}: one name stands for one thing"
        for name, where in sorted(places.items())
        if len(where) > 1
    ]


def empty_names(folder: Path, most: int = MOST_EMPTY) -> list[str]:
    counts = Counter({m.name: sum(name in EMPTY for name in _bound(m)) for m in modules(folder)})
    total = counts.total()
    if total <= most:
        return []
    worst = ", ".join(f"{name} ({count})" for name, count in counts.most_common(5))
    return [
        f"{counts.most_common(1)[0][0]}: {total} variables are called {', '.join(sorted(EMPTY))}, and at "
        f"most {most} may be; say what each of them is. Most stand in {worst}"
    ]


def _bound(module: Module) -> Iterator[str]:
    for node in module.nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name.lstrip("_")
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name.lstrip("_")
            case _:
                pass


def long_document_lines(folder: Path) -> list[str]:
    """Lines inside code blocks count too: a reader scrolls for either."""
    return [
        f"{path.relative_to(folder).as_posix()}:{number} has {len(line)} characters: "
        f"break it at {LONGEST_LINE}"
        for path in sorted((*folder.glob("*.md"), *folder.glob("docs/**/*.md")))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > LONGEST_LINE
    ]
