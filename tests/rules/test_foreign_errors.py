"""The status numbers and the wording of container engines are known in one file; all others use its kinds."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.rules.source import PACKAGE, Module, modules

CONTAINER = PACKAGE / "backends" / "container"
KNOWS = frozenset({"engine_errors.py", "engine.py"})
_SEARCHES = frozenset({"search", "match", "fullmatch", "findall"})
_EXAMINES = frozenset({"lower", "startswith", "endswith", "find", "index", "count"})


def _reads(node: ast.AST, *names: str) -> bool:
    return any(isinstance(item, ast.Attribute) and item.attr in names for item in ast.walk(node))


def examined(module: Module) -> Iterator[str]:
    """Where an error's status is compared, or its message searched instead of shown."""
    for node in module.nodes:
        match node:
            case ast.Compare():
                wrong = _reads(node, "message") or any(
                    isinstance(side, ast.Attribute) and side.attr == "status"
                    for side in (node.left, *node.comparators)
                )
            case ast.Call(func=ast.Attribute(attr=name, value=value), args=args):
                searched = name in _SEARCHES and any(_reads(arg, "message") for arg in args)
                wrong = searched or (name in _EXAMINES and _reads(value, "message"))
            case _:
                continue
        if wrong:
            yield f"{module.name}:{node.lineno} examines an engine's error: engine_errors.py gives it a kind"


def test_only_one_file_recognises_the_errors_of_container_engines():
    wrong = [text for module in modules(CONTAINER) if module.name not in KNOWS for text in examined(module)]
    assert not wrong, "\n".join(wrong)


def test_a_status_or_a_text_that_is_examined_is_an_offence(tmp_path: Path):
    lines = (
        "error.status == 404",
        "error.status in (404, 409)",
        "'no such' in error.message",
        "'no such' in error.message.lower()",
        "GONE.search(fault.message)",
        "error.message.startswith('no')",
    )
    fine = ("log.info('%s', error.message)", "error.message.rstrip('.')", "state.get('status') == 'created'")
    (tmp_path / "a.py").write_text("\n".join((*lines, *fine)))
    [module] = modules(tmp_path)
    assert {text.split()[0] for text in examined(module)} == {f"a.py:{n}" for n in range(1, len(lines) + 1)}
