"""A row of the table, compiled. `{name}` matches one part of a path, `{name...}` all the rest.

A method of the storage API is matched before decoding, and its parameters are decoded after: an object's
name may have slashes. All others are matched decoded. Verbs (`…:cancel`) come first in the table.
"""

import re
from urllib.parse import unquote

from trainshed.api.call import Method
from trainshed.api.permitted import permitted
from trainshed.api.request_gate import AdmittedRequest


class Route:
    def __init__(self, method: Method) -> None:
        self.method = method
        self.answer = method.worded(permitted(method.handler, method.permission))
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(method.path))
        self._pattern = re.compile(re.sub(r"\\{(\w+)\\\.\\\.\\\.\\}", r"(?P<\1>.+)", pattern), re.DOTALL)

    def match(self, target: AdmittedRequest) -> dict[str, str] | None:
        if not self.method.storage:
            match = self._pattern.fullmatch(target.path) if not target.token else None
            return match.groupdict() if match else None
        if self.method.keyed and not target.token:
            return None
        if (match := self._pattern.fullmatch(target.sent)) is None:
            return None
        # Bytes that are not UTF-8 become characters that no name may have, and are refused later.
        return {key: unquote(value, errors="surrogateescape") for key, value in match.groupdict().items()}
