"""ViewChanges: what one pod has done to its view since it was last looked at, and what others have done.

`file_exchange.py` calls it, in a thread and never twice at once. It knows each file of the pod by its stamp.
What it has not seen yet, after a restart of the server, it knows by its size and time. Of two changes of a
file the newer one counts. It talks to no pod.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from trainshed.backends.cluster.local_copy import LocalCopy, are_equal
from trainshed.backends.cluster.pod_files import FILE, Brought, PodEntry
from trainshed.backends.machine.written import BASELINE, MOST_BASELINE
from trainshed.disk.regular_file import read_regular


@dataclass(slots=True)
class PodChanges:
    """What a look has found."""

    fetch: list[str] = field(default_factory=list[str])  # files to be fetched
    done: set[str] = field(default_factory=set[str])  # what was changed in the copy already
    missed: set[str] = field(default_factory=set[str])  # what the pod has not got yet


class ViewChanges:
    def __init__(self, copy: LocalCopy, *, is_shared: bool) -> None:
        """`is_shared`: other pods have the same view."""
        self._copy, self._is_shared = copy, is_shared
        self._known: dict[str, PodEntry] | None = None

    def learn(self, entries: Iterable[PodEntry]) -> None:
        """All of these are as they were brought: nobody can have changed them yet."""
        self._known = {entry.path: entry for entry in entries}

    def look(self, entries: Iterable[PodEntry], news: set[str]) -> PodChanges:
        """Take over what the pod did to folders and links; `news` are paths that others have changed."""
        changes = PodChanges()
        before, there = self._known, {entry.path: entry for entry in entries}
        known: dict[str, PodEntry] = {}
        for path, entry in there.items():
            earlier = before.get(path) if before is not None else None
            is_known = earlier is not None and earlier.is_same(entry) and earlier.target == entry.target
            if is_known or self._take_over(entry, news, changes):
                known[path] = entry
        if before is None:
            self._find_removed(there, changes)
        else:
            for path in sorted(before.keys() - there.keys() - news):
                self._copy.remove(path)
                changes.done.add(path)
        self._known = known
        return changes

    def took(self, entries: Iterable[PodEntry]) -> None:
        if self._known is not None:
            self._known |= {entry.path: entry for entry in entries}

    def wanted(self, news: Iterable[str]) -> tuple[list[Brought], list[str]]:
        """What the pod is to be brought of these, and what is to be removed there."""
        brought, removed = list[Brought](), list[str]()
        for path in sorted(news):
            item = self._copy.find(path)
            if item is None:
                removed.append(path)
                if self._known is not None:
                    self._known.pop(path, None)
            else:
                brought.append(item)
        return brought, removed

    def _take_over(self, entry: PodEntry, news: set[str], changes: PodChanges) -> bool:
        """Whether the copy has it as it is in the pod; a file that it lacks is to be fetched."""
        here = self._copy.find(entry.path)
        if here is not None and are_equal(here.entry, entry):
            return True
        if entry.kind != FILE:
            self._copy.make(entry)
            changes.done.add(entry.path)
            return True
        is_older = entry.path in news and here is not None and here.entry.changed_at > entry.changed_at
        if not is_older:  # else it is brought
            changes.fetch.append(entry.path)
        return False

    def _find_removed(self, there: dict[str, PodEntry], changes: PodChanges) -> None:
        """After a restart: what is not there was removed there, or is another pod's and not there yet."""
        baseline = self._baseline() if self._is_shared else {}
        for item in list(self._copy.all()):
            path = item.entry.path
            if path in there:
                continue
            inner = path.partition("/")[2]
            if not self._is_shared or inner in baseline:
                self._copy.remove(path)
                changes.done.add(path)
            else:
                changes.missed.add(path)

    def _baseline(self) -> dict[str, str]:
        """The files that every pod was brought."""
        try:
            path = f"{self._copy.top.removesuffix('/plain')}/{BASELINE}"
            return json.loads(read_regular(path, MOST_BASELINE))
        except (OSError, ValueError):
            return {}
