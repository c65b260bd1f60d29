"""JSON and TOML of others may be nested deeper than Python's stack: who reads it says that it is wrong."""

import ast

from tests.rules.source import PACKAGE, Module, modules

FOLDERS = ("api", "cli", "dialects", "wire")
_READERS = {"load", "loads"}


def _reads(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="json" | "tomllib"), attr=name)):
            return name in _READERS
        case _:
            return False


def unready(module: Module) -> list[str]:
    """Where a ValueError of such a text is caught, and a RecursionError is not."""
    return [
        f"{module.name}:{node.lineno} catches no RecursionError"
        for node in module.nodes
        if isinstance(node, ast.Try) and any(_reads(item) for line in node.body for item in ast.walk(line))
        if not any("RecursionError" in ast.unparse(handler.type) for handler in node.handlers if handler.type)
    ]


def test_who_reads_a_text_of_others_is_ready_for_a_deep_one():
    wrong = [text for folder in FOLDERS for module in modules(PACKAGE / folder) for text in unready(module)]
    assert not wrong, "\n".join(wrong)
