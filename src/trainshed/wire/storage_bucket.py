"""What a bucket cannot be here. Whoever asks for versions or rules that delete is told no, not left to
believe in them. What is off, empty or null asks for nothing, and passes: clients send such things along.
"""

from collections.abc import Mapping
from typing import cast

from trainshed.core.errors import Invalid, Violation

_MISSING = {
    "versioning": "Buckets here keep no old versions of objects",
    "lifecycle": "Buckets here have no rules that delete or change objects",
    "retentionPolicy": "Buckets here do not keep objects from being deleted",
    "objectRetention": "Buckets here do not keep objects from being deleted",
    "defaultEventBasedHold": "Objects here cannot be held",
    "encryption": "Buckets here have no keys of their own",
    "website": "Buckets here are not served as websites",
    "cors": "Web pages cannot reach buckets here",
    "logging": "Buckets here write no logs of their use",
    "billing": "Nobody is billed here",
    "autoclass": "Buckets here do not change the storage class of objects",
    "hierarchicalNamespace": "Buckets here have no folders of their own",
    "ipFilter": "Buckets here do not tell callers apart by address",
}


def check_bucket(body: Mapping[str, object]) -> None:
    wrong = [
        Violation(field, f"{sentence}: leave out {field}.")
        for field, sentence in _MISSING.items()
        if _asks(body.get(field))
    ]
    if wrong:
        raise Invalid(tuple(wrong))


def _asks(value: object) -> bool:
    """Whether it asks for anything, at whatever depth."""
    if isinstance(value, dict):
        return any(_asks(one) for one in cast("dict[str, object]", value).values())
    if isinstance(value, list):
        return any(_asks(one) for one in cast("list[object]", value))
    return bool(value) and value != "0"
