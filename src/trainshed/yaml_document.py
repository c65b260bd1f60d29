"""A YAML file of fields: read as YAML 1.2 reads plain words, its form checked, its lines remembered.

The command line reads job files with it, and the server those that are pasted into a page. It opens no files,
takes no longer than the text is, and knows nothing of jobs.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, TypeAlias, cast

import yaml

Json: TypeAlias = dict[str, Any]

LARGEST = 4 << 20  # bytes of a file, and characters once each alias is replaced by what it stands for
DEEPEST = 100  # levels: a job has less than ten, and Python's own stack ends somewhere
_NODE = 8  # characters that any value counts for, however short it is


class _Loader(yaml.SafeLoader):
    """YAML 1.2's reading of plain words: `yes` is a word, `12:30` is no number, a date is its text.

    It stops at DEEPEST levels, before the rest of the file is read.
    """

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.depth += 1
        if self.depth > DEEPEST:
            raise _too_deep(cast(Any, self).peek_event().start_mark)
        node: Any = cast(Any, super()).compose_node(parent, index)
        self.depth -= 1
        return node

    def fetch_flow_collection_start(self, TokenClass: Any) -> None:
        """The scanner reads ahead of what is composed, and takes longer for each bracket that is open."""
        scanner = cast(Any, self)
        if scanner.flow_level > DEEPEST:
            raise _too_deep(scanner.get_mark())
        cast(Any, super()).fetch_flow_collection_start(TokenClass)


def _too_deep(mark: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=f"this is nested more than {DEEPEST} levels deep", problem_mark=mark)


_WORDS = (
    ("null", r"(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"(?:[-+]?(?:0|[1-9][0-9]*)|0x[0-9a-fA-F]+)$", list("-+0123456789")),
    (
        "float",
        r"(?:[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
        list("-+0123456789."),
    ),
    ("merge", r"<<$", ["<"]),
)
_Loader.yaml_implicit_resolvers = {}
for _word, _pattern, _first in _WORDS:
    cast(Any, _Loader).add_implicit_resolver(f"tag:yaml.org,2002:{_word}", re.compile(_pattern), _first)


class YamlFault(Exception):
    """Why a text cannot be used: a sentence that begins with its name, and lines that say more."""

    def __init__(self, message: str, details: list[str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = details or []


def read_document(
    name: str, text: str | bytes, example: str = "", before: int = 0
) -> tuple[Json, dict[str, int]]:
    """The fields, and the line of each by its path, folded. What else it holds is told with the example.

    `before` is how many lines of the file stand before the text.
    """
    try:
        content, lines = _parsed(name, text, example, before)
    except yaml.MarkedYAMLError as error:
        raise YamlFault(*_explained(name, error)) from error
    except yaml.YAMLError as error:
        raise YamlFault(f"{name} is not YAML: {' '.join(str(error).split())}") from error
    except ValueError as error:
        raise YamlFault(f"{name} has a value that cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise YamlFault(
            f"{name} does not hold a job: fields were expected; a small one reads:", example.splitlines()
        )
    fields = cast(Json, content)
    try:
        json.dumps(fields, allow_nan=False)
    except ValueError as error:
        raise YamlFault(f"{name} has a value that JSON cannot carry: {error}") from error
    return fields, lines


def _parsed(name: str, text: str | bytes, example: str, before: int) -> tuple[object, dict[str, int]]:
    loader: Any = _Loader(text)
    loader.line = before  # PyYAML counts on from there
    root: Any = loader.get_single_node()
    if root is None:
        raise YamlFault(f"{name} is empty; a small job reads:", example.splitlines())
    _check_aliases(name, root)
    faults = list(_faults(name, root))
    if faults:
        raise YamlFault(f"{name} cannot be used", faults)
    lines = dict(_lines(root, ""))  # before construction: that dissolves merge keys
    return loader.construct_document(root), lines


def folded(path: str) -> str:
    """snake_case and camelCase are one: `job_spec.worker_pool_specs[0]` is `jobspec.workerpoolspecs[0]`."""
    return path.replace("_", "").lower()


def _lines(node: Any, path: str) -> Iterator[tuple[str, int]]:
    if path:
        yield folded(path), node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in cast(list[tuple[Any, Any]], node.value):
            if isinstance(key, yaml.ScalarNode):
                inner = f"{path}.{key.value}" if path else str(key.value)
                yield from _lines(value, inner)
                yield folded(inner), key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for at, value in enumerate(cast(list[Any], node.value)):
            yield from _lines(value, f"{path}[{at}]")


def _check_aliases(name: str, root: Any) -> None:
    """Refuse one inside itself, and more than LARGEST or DEEPEST once each is written out.

    All that comes later follows each alias as if it were written out. This looks at each node once, so it
    takes no longer than the file is. An alias stands behind what it means, so it does not go deep either.
    """
    measures: dict[int, tuple[int, int]] = {}  # size and depth of each node; depth 0: it is being looked at

    def measure(node: Any) -> tuple[int, int]:
        if (known := measures.get(id(node))) is not None:
            if not known[1]:
                raise YamlFault(f"{name}:{node.start_mark.line + 1}: this part contains itself")
            return known
        measures[id(node)] = (0, 0)
        if isinstance(node, yaml.MappingNode):
            inner = [measure(item) for pair in cast(list[tuple[Any, Any]], node.value) for item in pair]
        else:
            inner = [measure(item) for item in cast(list[Any], node.value)] if _is_list(node) else []
        own = 0 if inner or not isinstance(node.value, str) else len(node.value)
        size, depth = own + sum(item[0] for item in inner), max((item[1] for item in inner), default=0)
        measures[id(node)] = (size + _NODE, depth + 1)
        return measures[id(node)]

    size, depth = measure(root)
    if size > LARGEST or depth > DEEPEST:
        more = f"{LARGEST >> 20} MiB" if size > LARGEST else f"{DEEPEST} levels"
        raise YamlFault(f"{name} has more than {more} once its aliases (*NAME) are written out")


def _is_list(node: Any) -> bool:
    return isinstance(node, yaml.SequenceNode)


def _faults(name: str, node: Any) -> Iterator[str]:
    """What YAML lets pass and nobody means: a key twice, a key that is no name."""
    if isinstance(node, yaml.SequenceNode):
        for value in cast(list[Any], node.value):
            yield from _faults(name, value)
    if not isinstance(node, yaml.MappingNode):
        return
    first: dict[str, int] = {}
    for key, value in cast(list[tuple[Any, Any]], node.value):
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode) or key.tag not in (
            "tag:yaml.org,2002:str",
            "tag:yaml.org,2002:merge",
        ):
            yield f"{name}:{line}: a field's name is plain text; quote it if it must be {_source(key)}"
        elif key.value in first:
            yield f"{name}:{line}: {key.value} is here a second time, after line {first[key.value]}"
        else:
            first[key.value] = line
        yield from _faults(name, value)


def _source(node: Any) -> str:
    return repr(node.value) if isinstance(node, yaml.ScalarNode) else "something else"


def _explained(name: str, error: yaml.MarkedYAMLError) -> tuple[str, list[str]]:
    mark: Any = error.problem_mark or error.context_mark
    where = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
    problem = error.problem or "it cannot be read"
    details: list[str] = []
    if mark and (snippet := mark.get_snippet(indent=0)):
        details += cast(str, snippet).splitlines()
    if "'\\t'" in problem:
        details.append("indent with spaces: YAML allows no tabs there")
    elif re.search(r"mapping values are not allowed", problem):
        details.append("a text with a colon and a space in it needs quotes; or the indentation is off")
    elif "single document" in str(error.context):
        details.append("one file is one job: submit each part after --- by itself")
    return f"{where}: {problem}", details
