"""What can go wrong when talking to a server: it said no, it did not answer, or it stopped in the middle.

    ClientError
    ├── ApiError       the server answered with an error: google.rpc.Status, read
    ├── Unreachable    nothing answered at the address
    └── Interrupted    an answer began and broke off

Nothing here knows how HTTP is spoken: what goes wrong there is translated in `connection.py`.
"""

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class ApiViolation:
    """One thing wrong with a request: the path of the field and a sentence about it."""

    __slots__ = ("description", "field")

    def __init__(self, field: str, description: str) -> None:
        self.field = field
        self.description = description

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ApiViolation) and self._both == other._both

    def __hash__(self) -> int:
        return hash(self._both)

    def __repr__(self) -> str:
        return f"Violation{self._both!r}"

    @property
    def _both(self) -> tuple[str, str]:
        return self.field, self.description


class ClientError(Exception):
    """Something went wrong between this client and the server."""


class Unreachable(ClientError):
    """Nothing answers at the address."""

    def __init__(self, url: str, cause: str) -> None:
        self.url = url
        self.cause = cause
        super().__init__(f"no server answers at {url} ({cause})")


class Interrupted(ClientError):
    """The answer broke off; a read may simply be asked again."""


class ApiError(ClientError):
    """The server's own error: `code` is HTTP's number, `status` the word scripts may rely on."""

    def __init__(
        self, code: int, status: str, message: str, violations: "tuple[ApiViolation, ...]" = ()
    ) -> None:
        self.code = code
        self.status = status
        self.message = message
        self.violations = violations
        super().__init__(f"{status}: {message}")

    @classmethod
    def read(cls, code: int, reason: str, body: bytes) -> "ApiError":
        """The error in an answer. Whatever stands between (a proxy's HTML page, say) is shown as it is."""
        from trainshed.client.notation import loads

        try:
            answer: object = loads(body)
        except ValueError:
            answer = None
        error = _mapping(_mapping(answer).get("error"))
        if not error:
            text = " ".join(body[:300].decode("utf-8", "replace").split())
            problem = f"the answer is not in Trainshed's form: HTTP {code} {reason}".rstrip()
            status = reason.upper().replace(" ", "_") or str(code)
            return cls(code, status, f"{problem}: {text}" if text else problem)
        return cls(code, str(error.get("status", code)), str(error.get("message", "")), _violations(error))


def _violations(error: "Mapping[str, Any]") -> "tuple[ApiViolation, ...]":
    violations: list[ApiViolation] = []
    for detail in _list(error.get("details")):
        for item in map(_mapping, _list(_mapping(detail).get("fieldViolations"))):
            violations.append(ApiViolation(str(item.get("field", "")), str(item.get("description", ""))))
    return tuple(violations)


def _mapping(value: object) -> "Mapping[str, Any]":
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _list(value: object) -> "list[object]":
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]
