"""A file of Kubernetes manifests: its documents, each with the lines of its fields, mended where need be.

What the fields mean is the server's business. Here a text that is no YAML, or YAML in which fields are where
none of their kind can be, is put right if only its indentation is wrong; and that is said.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from trainshed.cli.failure import CommandFailed
from trainshed.cli.job_file import folded, load
from trainshed.cli.options import violation_text
from trainshed.client import ApiViolation, Json
from trainshed.dialects.kubernetes.cli.repair import repair
from trainshed.dialects.kubernetes.cli.shape import fits, shapes

EXAMPLE = """apiVersion: v1
kind: Pod
metadata: {name: hello}
spec:
  containers:
  - {name: hello, image: "trainshed/python:3", command: [python, -c, "print('hello')"]}
  restartPolicy: Never"""

_BREAK = re.compile(r"---(\s.*)?|---")
_SAYS = re.compile(r"\s*[^\s#]")


@dataclass(frozen=True, slots=True)
class Document:
    file: str
    fields: Json
    lines: dict[str, int]  # a field's path, folded, to its line
    moved: list[int] = field(default_factory=list[int])  # lines whose indentation was mended
    text: str = ""  # as it was read

    def located(self, violations: Iterable[ApiViolation]) -> list[str]:
        """`file:line: field: what is wrong`, in the order of the lines."""
        rows = sorted(
            ((self._line(violation.field), violation_text(violation)) for violation in violations),
            key=lambda pair: pair[0],
        )
        return [f"{self.file}:{line}: {text}" if line else f"{self.file}: {text}" for line, text in rows]

    def _line(self, field: str) -> int:
        """Of the nearest thing around the field that is in the file; 0 where nothing is."""
        path = folded(field)
        while path and path not in self.lines:
            path = path.rpartition(".")[0] if not path.endswith("]") else path.rpartition("[")[0]
        return self.lines.get(path, 0)

    @property
    def warning(self) -> str:
        """What was mended; "" where nothing was."""
        if not self.moved:
            return ""
        many = "lines" if len(self.moved) > 1 else "line"
        return f"{self.file}: the indentation of {many} {_ranges(self.moved)} was repaired"


def documents(file: str, text: str) -> list[Document]:
    """All in the file. Failure with everything that is wrong with the form of one."""
    result = [_read(file, part, before) for part, before in _parts(text)]
    if not result:
        raise CommandFailed(f"{file} is empty; a small manifest reads:", EXAMPLE.splitlines())
    return result


def _parts(text: str) -> Iterator[tuple[str, int]]:
    """Each document that says something, with the number of lines before it."""
    lines, begin = text.splitlines(), 0
    for number, line in enumerate([*lines, "---"]):
        if _BREAK.fullmatch(line):
            part = lines[begin:number]
            if any(_SAYS.match(item) for item in part):
                yield "\n".join(part) + "\n", begin
            begin = number + 1


def _read(file: str, text: str, before: int) -> Document:
    failure: CommandFailed | None = None
    try:
        _, fields, lines = load(file, text, EXAMPLE, before)
        if str(fields.get("kind")) not in shapes() or fits(fields, str(fields["kind"])):
            return Document(file, fields, lines, text=text)
    except CommandFailed as error:
        failure, fields, lines = error, {}, {}
    mended = repair(text)
    if mended is not None:
        try:
            _, better, places = load(file, mended[0], EXAMPLE, before)
            if fits(better, str(better.get("kind"))):
                return Document(file, better, places, [before + item for item in mended[1]], mended[0])
        except CommandFailed:
            pass  # what was wrong at first is told
    if failure is not None:
        raise failure
    return Document(file, fields, lines, text=text)  # the server says what is wrong with it


def _ranges(numbers: list[int]) -> str:
    """`4, 6-8`."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
