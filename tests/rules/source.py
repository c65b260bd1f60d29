"""The source as the rules see it: files, their syntax trees, and where in them something is."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "trainshed"


@dataclass(frozen=True)
class Module:
    """One Python file, named relative to the folder the rule looks at."""

    path: Path
    name: str

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.name)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        for node in self.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node

    def imports(self) -> Iterator[tuple[int, str]]:
        """Line and full name of every module imported, at the top or anywhere below."""
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield node.lineno, alias.name
            elif isinstance(node, ast.ImportFrom):
                yield node.lineno, "." * node.level + (node.module or "")


@cache
def modules(folder: Path) -> list[Module]:
    """Read and parsed once: every rule looks at the same."""
    found = sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)
    return [Module(path, path.relative_to(folder).as_posix()) for path in found]
