"""The rules of the house as functions: a folder of source to the list of what is wrong and what to do."""

import ast
import re
import sys
from pathlib import Path

from tests.rules.source import Module, modules

MOST_LINES = 400
MOST_FUNCTION_LINES = 60
MOST_PARAMETERS = 7
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
CATCH_ALL = {"control/queue.py", "api/app.py"}
IMPURE = {
    "asyncio",
    "io",
    "os",
    "pathlib",
    "random",
    "secrets",
    "shutil",
    "socket",
    "subprocess",
    "threading",
    "time",
}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def long_files(folder: Path) -> list[str]:
    return [
        f"{m.name} has {count} lines: split it by noun or verb until each part has at most {MOST_LINES}"
        for m in modules(folder)
        if (count := len(m.text.splitlines())) > MOST_LINES
    ]


def long_functions(folder: Path) -> list[str]:
    return [
        f"{m.name}:{f.lineno} {f.name} has {length} lines: take a step with a name of its own out of it "
        f"until it has at most {MOST_FUNCTION_LINES}"
        for m in modules(folder)
        for f in m.functions()
        if (length := (f.end_lineno or f.lineno) - f.lineno + 1) > MOST_FUNCTION_LINES
    ]


def many_parameters(folder: Path) -> list[str]:
    return [
        f"{m.name}:{f.lineno} {f.name} takes {count} parameters: put what belongs together into a value, "
        f"so that it takes at most {MOST_PARAMETERS}"
        for m in modules(folder)
        for f in m.functions()
        if (count := len(_parameters(f.args))) > MOST_PARAMETERS
    ]


def _parameters(args: ast.arguments) -> list[str]:
    names = [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


def without_docstring(folder: Path) -> list[str]:
    return [
        f"{m.name} has no docstring: say why it exists, what it may assume and what it never does"
        for m in modules(folder)
        if not ast.get_docstring(m.tree)
    ]


def vague_names(folder: Path) -> list[str]:
    return [
        f"{m.name}: '{part}' says nothing; name the module after the noun or the verb it is about"
        for m in modules(folder)
        for part in m.name.removesuffix(".py").split("/")
        if part in VAGUE
    ]


def catch_alls(folder: Path) -> list[str]:
    return [
        f"{m.name}:{node.lineno} catches everything: name the errors it can do something about; only "
        f"{' and '.join(sorted(CATCH_ALL))}, where work of others is run, may catch all"
        for m in modules(folder)
        if m.name not in CATCH_ALL
        for node in m.nodes
        if isinstance(node, ast.ExceptHandler) and _catches_all(node.type) and not _only_cleans_up(node)
    ]


def _catches_all(kind: ast.expr | None) -> bool:
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(
        k is None or (isinstance(k, ast.Name) and k.id in ("Exception", "BaseException")) for k in kinds
    )


def _only_cleans_up(handler: ast.ExceptHandler) -> bool:
    """`except BaseException: …; raise` swallows nothing: it is a `finally` for the bad case."""
    last = handler.body[-1]
    everything = isinstance(handler.type, ast.Name) and handler.type.id == "BaseException"
    return everything and isinstance(last, ast.Raise) and last.exc is None


def typing_escapes(folder: Path) -> list[str]:
    return [
        f"{m.name}:{node.lineno} uses TYPE_CHECKING: move what both modules need into one below them instead"
        for m in modules(folder)
        for node in m.nodes
        if (isinstance(node, ast.Name) and node.id == "TYPE_CHECKING")
        or (isinstance(node, ast.alias) and node.name == "TYPE_CHECKING")
    ]


def impure_imports(folder: Path) -> list[str]:
    return [
        f"{m.name}:{line} imports {name}: the core does no I/O, has no clock and no third party; take what "
        "is needed as an argument, or put it behind a port"
        for m in modules(folder)
        for line, name in m.imports()
        if not _pure(name)
    ]


def _pure(name: str) -> bool:
    top = name.split(".", maxsplit=1)[0]
    if top == "trainshed":
        return name == "trainshed.core" or name.startswith("trainshed.core.")
    return top in sys.stdlib_module_names and top not in IMPURE


def unfinished(folder: Path) -> list[str]:
    return [
        f"{m.name}:{number} says {found[0]}: do it, or open an issue and say here what holds until then"
        for m in modules(folder)
        for number, line in enumerate(m.text.splitlines(), 1)
        if (found := UNFINISHED.search(line))
    ]


def open_matches(folder: Path) -> list[str]:
    """A match on a closed enum must not fall through in silence when a member is added."""
    return [
        f"{m.name}:{node.lineno} matches states without a last assert_never: a new state would fall through"
        for m in modules(folder)
        for node in m.nodes
        if isinstance(node, ast.Match) and _on_members(node) and not _is_closed(m, node)
    ]


def _on_members(node: ast.Match) -> bool:
    return all(
        isinstance(p, ast.MatchValue) for c in node.cases[:-1] for p in _alternatives(c.pattern)
    ) and any(
        isinstance(p, ast.MatchValue) and isinstance(p.value, ast.Attribute)
        for c in node.cases
        for p in _alternatives(c.pattern)
    )


def _alternatives(pattern: ast.pattern) -> list[ast.pattern]:
    return pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern]


def _is_closed(module: Module, node: ast.Match) -> bool:
    """Its last case is a default, or assert_never stands in it or right behind it."""
    last = node.cases[-1].pattern
    default = isinstance(last, ast.MatchAs) and last.pattern is None
    behind = "\n".join(module.text.splitlines()[node.lineno - 1 : (node.end_lineno or node.lineno) + 1])
    return default or "assert_never" in behind
