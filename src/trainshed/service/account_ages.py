"""AccountAges: since when there is each account. Shares ask it, to tell two users of one name apart.

The same mapping comes until an account is added or removed: who compares shares need not look into it. A
directory changes with every token, and is looked at once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from trainshed.core.accounts.directory import Directory


@dataclass(slots=True)
class AccountAges:
    directory: Callable[[], Directory]
    _seen: Directory | None = None
    _known: Mapping[str, datetime] = field(default_factory=dict[str, datetime])

    def __call__(self) -> Mapping[str, datetime]:
        if (directory := self.directory()) is not self._seen:
            self._seen = directory
            ages = {name: account.created_at for name, account in directory.accounts.items()}
            if ages != self._known:
                self._known = ages
        return self._known
