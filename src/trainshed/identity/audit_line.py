"""A row of the audit log as a line of JSON, and back. For `audit_files` and `audit_pages`."""

import json
from dataclasses import asdict
from datetime import datetime

from trainshed.core.accounts.audit import AuditRow

_MOST_TEXT = 1000  # characters of a path, of what was changed, or of a reason
_LEFT_OUT: dict[str, object] = {"count": 1}  # values that say nothing, beside empty texts


def line_of(row: AuditRow) -> bytes:
    fields = asdict(row) | {"at": row.at.isoformat()}
    fields |= {name: str(fields[name])[:_MOST_TEXT] for name in ("path", "what", "reason")}
    written = {name: value for name, value in fields.items() if value not in ("", _LEFT_OUT.get(name))}
    return json.dumps(written).encode() + b"\n"


def row_of(line: bytes) -> AuditRow:
    """Raises ValueError for a line that was cut off or damaged."""
    try:
        fields = json.loads(line)
        names = ("token", "address", "verb", "path", "permission", "project", "what", "reason")
        return AuditRow(
            at=datetime.fromisoformat(str(fields["at"])),
            who=str(fields["who"]),
            code=int(str(fields["code"])),
            count=int(str(fields.get("count", 1))),
            **{name: str(fields.get(name, "")) for name in names},
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(str(error)) from error
