"""A row of the table, compiled. `{name}` matches one part of a path, `{name...}` all the rest.

A method of the storage API is matched before decoding, and its parameters are decoded after: an object's
name may have slashes. All others are matched decoded. Verbs (`…:cancel`) come first in the table.
"""

import re
from functools import cached_property
from urllib.parse import unquote

from trainshed.api.call import Method
from trainshed.api.permitted import permitted
from trainshed.api.request_gate import AdmittedRequest


class Route:
    def __init__(self, method: Method) -> None:
        self.method = method
        self.answer = method.worded(permitted(method))
        # The fixed text at both ends: it tells most routes apart, and costs less than their patterns.
        self._start, self._end = method.path.partition("{")[0], method.path.rpartition("}")[2]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """Compiled at the first path that may match: all of them together would take long at the start."""
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(self.method.path))
        return re.compile(re.sub(r"\\{(\w+)\\\.\\\.\\\.\\}", r"(?P<\1>.+)", pattern), re.DOTALL)

    def match(self, target: AdmittedRequest) -> dict[str, str] | None:
        if not self.method.storage:
            return None if target.token else self._values(target.path)
        if self.method.keyed and not target.token:
            return None
        if (values := self._values(target.sent)) is None:
            return None
        # Bytes that are not UTF-8 become characters that no name may have, and are refused later.
        return {key: unquote(value, errors="surrogateescape") for key, value in values.items()}

    def _values(self, path: str) -> dict[str, str] | None:
        if not (path.startswith(self._start) and path.endswith(self._end)):
            return None
        match = self._pattern.fullmatch(path)
        return match.groupdict() if match else None
