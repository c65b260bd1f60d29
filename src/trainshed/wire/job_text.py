"""A job file as people write and print them, YAML or JSON, to the body of a create. For `api/job_text.py`.

It checks the form only: a body that comes out can be refused by a create. Names come out in camelCase.
"""

from typing import Any, cast

from trainshed.core.errors import Invalid, Violation
from trainshed.wire import base
from trainshed.wire.custom_job import parse_job_file

MOST_TEXT = 256 << 10  # bytes: YAML takes a second for each 200 KiB
_FREE = "labels"  # the only names in a job that somebody chose


def parse_job_text(data: bytes) -> dict[str, Any]:
    """The body of a create; Invalid with every fault of form and its line."""
    # Here, since a server that is never asked this does not need it (docs/adr/0042).
    from trainshed.yaml_document import YamlFault, read_document

    try:
        fields, _ = read_document("the text", data)
    except YamlFault as fault:
        raise Invalid((Violation("text", " ".join([fault.message, *fault.details])),)) from fault
    return cast("dict[str, Any]", _camel(parse_job_file(fields)))


def _camel(value: object) -> object:
    if isinstance(value, list):
        return [_camel(item) for item in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, object]", value)
    return {base.camel(name): item if name == _FREE else _camel(item) for name, item in fields.items()}
