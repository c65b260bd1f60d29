"""gcloud's --format: json, yaml, value(…), csv(…), table(…), none; each with keys to choose, some need them.

Fields stand in the order of their names, as gcloud prints them, so that outputs can be compared.
"""

import csv
import functools
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import click

from trainshed.cli.ai.path import Path
from trainshed.cli.failure import Misuse
from trainshed.cli.spreadsheet import cell
from trainshed.client import Json

KINDS = ("json", "yaml", "value", "get", "csv", "table", "text", "flattened", "none", "disable")
_FORMAT = re.compile(r"(?P<kind>[a-z]+)(?:\[(?P<with>[^\]]*)\])?(?:\((?P<keys>.*)\))?", re.DOTALL)
_TABLE = "name.basename():label=ID,displayName:label=NAME,state,createTime"


@dataclass(frozen=True, slots=True)
class Column:
    path: Path
    label: str

    @classmethod
    def parse(cls, text: str) -> "Column":
        key, *attributes = text.strip().split(":")
        path = Path.parse(key.strip())
        labels = [
            attribute.removeprefix("label=").strip("'\"")
            for attribute in attributes
            if attribute.startswith("label=")
        ]
        return cls(path, labels[0] if labels else path.label)


@dataclass(frozen=True, slots=True)
class Output:
    kind: str
    columns: tuple[Column, ...]
    attributes: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, table: str = _TABLE) -> "Output":
        """`table` is what a table shows that names no columns."""
        match = _FORMAT.fullmatch(text.strip())
        if match is None or match["kind"] not in KINDS:
            raise Misuse(f"argument --format: there is no format [{text}]; there are {', '.join(KINDS)}")
        kind, keys = match["kind"], match["keys"] or ""
        if kind == "table" and not keys:
            keys = table
        if kind in ("value", "get", "csv") and not keys:
            raise Misuse(f"argument --format: [{kind}] needs keys, such as {kind}(name,state)")
        columns = tuple(Column.parse(part) for part in _parts(keys))
        return cls(kind, columns, tuple(filter(None, (match["with"] or "").split(","))))

    def show(self, item: Json) -> None:
        match self.kind:
            case "json":
                click.echo(json_text(self._chosen(item)))
            case "yaml":
                click.echo(yaml_text(self._chosen(item)))
            case _:
                self.many([item])

    def many(self, items: Sequence[Json]) -> None:
        match self.kind:
            case "json":
                click.echo(json_text([self._chosen(item) for item in items]))
            case "yaml":
                click.echo("".join(f"---\n{yaml_text(self._chosen(item))}\n" for item in items), nl=False)
            case "value" | "get":
                for item in items:
                    click.echo("\t".join(_text(column.path.get(item)) for column in self.columns))
            case "csv":
                self._csv(items)
            case "table":
                self._table(items)
            case "text" | "flattened":
                for item in items:
                    click.echo("---")
                    click.echo("\n".join(f"{key}: {value}" for key, value in _flat(self._chosen(item), "")))
            case _:
                pass

    def _chosen(self, item: Json) -> Any:
        if not self.columns:
            return item
        chosen: Json = {}
        for column in self.columns:
            names = [step for step in column.path.steps if isinstance(step, str)]
            inner = chosen
            for name in names[:-1]:
                inner = cast(Json, inner.setdefault(name, {}))
            inner[names[-1] if names else column.path.text] = column.path.get(item)
        return chosen

    def _csv(self, items: Sequence[Json]) -> None:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        if "no-heading" not in self.attributes:
            writer.writerow([_heading(column) for column in self.columns])
        writer.writerows([cell(_text(column.path.get(item))) for column in self.columns] for item in items)

    def _table(self, items: Sequence[Json]) -> None:
        from trainshed.cli.table import table

        rows = [[_text(column.path.get(item)) for column in self.columns] for item in items]
        text = table([column.label for column in self.columns], rows) if rows else ""
        if text:
            click.echo(text.partition("\n")[2] if "no-heading" in self.attributes else text)


def _parts(text: str) -> list[str]:
    """Split at the commas that are not inside parentheses or quotes."""
    return [part for part in re.split(r",(?![^()]*\))", text) if part.strip()]


def _heading(column: Column) -> str:
    return column.label if column.label != column.path.label else column.label.lower()


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        return ";".join(f"{key}={_text(inner)}" for key, inner in sorted(cast(Json, value).items()))
    if isinstance(value, list):
        return ";".join(map(_text, cast(list[Any], value)))
    return str(value)


def _flat(value: Any, path: str) -> list[tuple[str, str]]:
    if isinstance(value, dict):
        fields = sorted(cast(Json, value).items())
        return [row for key, inner in fields for row in _flat(inner, f"{path}.{key}" if path else key)]
    if isinstance(value, list):
        items = cast(list[Any], value)
        return [row for at, inner in enumerate(items) for row in _flat(inner, f"{path}[{at}]")]
    return [(path, str(value))]


def json_text(value: Any) -> str:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)


def yaml_text(value: Any) -> str:
    """Block style; a text of several lines as such, so that a program in a job stays readable."""
    import yaml

    text: str = yaml.dump(
        value, Dumper=_dumper(), default_flow_style=False, sort_keys=True, allow_unicode=True, width=1 << 20
    )
    return text.rstrip("\n").removesuffix("\n...")


@functools.cache
def _dumper() -> Any:
    import yaml

    # The one in C writes a thousand jobs in a tenth of the time, where PyYAML was built with it.
    base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

    def represent(dumper: Any, text: str) -> Any:
        style = "|" if "\n" in text.rstrip("\n") else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    def never(dumper: Any, data: Any) -> bool:
        return True

    dumper = type("Dumper", (base,), {"ignore_aliases": never})
    cast(Any, dumper).add_representer(str, represent)
    return dumper
