"""Checks labels by Google's rules: number, characters, length. One more is taken: that of a Kueue queue."""

import re
from collections.abc import Mapping

from trainshed.core.jobs.launch import QUEUE_LABEL
from trainshed.wire.faults import Faults, join

MOST = 64
LONGEST = 63
_QUEUE = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


def check_labels(labels: Mapping[str, str], path: str, faults: Faults) -> None:
    if len(labels) > MOST:
        faults.add(path, f"must have at most {MOST} entries, not {len(labels)}.")
    for key, value in labels.items():
        where = join(path, key[:100])
        if key == QUEUE_LABEL:
            if len(value) > LONGEST or _QUEUE.fullmatch(value) is None:
                faults.add(
                    where,
                    f"is no name of a queue: '{value[:LONGEST]}'. Write 1 to {LONGEST} lowercase letters, "
                    "digits, dashes and dots.",
                )
            continue
        if not key or len(key) > LONGEST or not _fits(key) or not key[0].isalpha():
            faults.add(
                where,
                f"has a key that may not be: 1 to {LONGEST} lowercase letters, digits, "
                "underscores and dashes, a letter first.",
            )
        if len(value) > LONGEST or not _fits(value):
            faults.add(
                where,
                f"has a value that may not be: at most {LONGEST} lowercase letters, digits, "
                "underscores and dashes.",
            )


def _fits(text: str) -> bool:
    # Letters of scripts without case are their own lower case, and allowed.
    return all(c in "_-" or c.isdigit() or (c.isalpha() and c == c.lower()) for c in text)
