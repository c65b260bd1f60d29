"""The settings of a bucket: versioning and lifecycle rules. Settings that buckets here lack are refused.

For `api/storage_buckets.py`. A setting that is off, empty or null is accepted, since clients send those
along.
"""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any, cast

from trainshed.core.bucket_rule import LifecycleRule
from trainshed.core.errors import Invalid, Violation

Json = dict[str, Any]
MOST_NUMBER = 1_000_000  # days, or versions

_MISSING = {
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


_RULE = "lifecycle.rule"
_NUMBERS = {
    "age": "age",
    "numNewerVersions": "newer_versions",
    "daysSinceNoncurrentTime": "noncurrent_days",
}
_DATES = {"createdBefore": "created_before", "noncurrentTimeBefore": "noncurrent_before"}
_LISTS = {"matchesPrefix": "prefixes", "matchesSuffix": "suffixes"}
MOST_RULES = 100
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def parse_versioning(body: Mapping[str, object], old: bool) -> bool:
    if "versioning" not in body:
        return old
    given = body["versioning"]
    enabled = cast("Json", given).get("enabled") if isinstance(given, dict) else given
    if enabled is not None and not isinstance(enabled, bool):
        raise fault("versioning", 'versioning must be {"enabled": true} or {"enabled": false}.')
    return bool(enabled)


def parse_lifecycle(body: Mapping[str, object], old: tuple[LifecycleRule, ...]) -> tuple[LifecycleRule, ...]:
    if "lifecycle" not in body:
        return old
    given = body["lifecycle"]
    rules: object = cast("Json", given).get("rule") if isinstance(given, dict) else given
    if rules is None:
        return ()
    listed = cast("list[object]", rules) if isinstance(rules, list) else None
    if listed is None or len(listed) > MOST_RULES:
        raise fault("lifecycle", f'lifecycle must be {{"rule": [...]}} with at most {MOST_RULES} rules.')
    return tuple(_rule(f"{_RULE}[{at}]", rule) for at, rule in enumerate(listed))


def _rule(where: str, given: object) -> LifecycleRule:
    rule = cast("Json", given) if isinstance(given, dict) else {}
    action: object = rule.get("action")
    condition: object = rule.get("condition")
    kind: object = cast("Json", action).get("type") if isinstance(action, dict) else None
    if kind != "Delete":
        raise fault(f"{where}.action", f"{where}.action.type must be Delete, not {str(kind)[:40]!r}.")
    if not isinstance(condition, dict) or not condition:
        raise fault(f"{where}.condition", f"{where}.condition must have a condition at least, such as age.")
    fields: dict[str, Any] = {}
    for key, value in cast("Json", condition).items():
        name = f"{where}.condition.{key[:40]}"
        if key in _NUMBERS:
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_NUMBER:
                raise fault(name, f"{name} must be a whole number of 0 to {MOST_NUMBER}.")
            fields[_NUMBERS[key]] = value
        elif key in _DATES:
            fields[_DATES[key]] = _date(name, value)
        elif key in _LISTS:
            texts = cast("list[object]", value) if isinstance(value, list) else []
            if not texts or not all(isinstance(text, str) and text for text in texts):
                raise fault(name, f"{name} must be a list of texts.")
            for text in texts:
                check_line(name, str(text))
            fields[_LISTS[key]] = tuple(texts)
        elif key == "isLive" and isinstance(value, bool):
            fields["is_live"] = value
        else:
            known = ", ".join((*_NUMBERS, *_DATES, *_LISTS, "isLive (true or false)"))
            raise fault(name, f"{name} is not understood here: there are {known}.")
    return LifecycleRule(**fields)


def _date(name: str, value: object) -> str:
    try:
        return date.fromisoformat(str(value)).isoformat()
    except ValueError as error:
        raise fault(name, f"{name} must be a date such as 2026-01-31, not {str(value)[:40]!r}.") from error


def render_lifecycle(rules: tuple[LifecycleRule, ...]) -> Json:
    return {"rule": [{"action": {"type": "Delete"}, "condition": _condition(rule)} for rule in rules]}


def _condition(rule: LifecycleRule) -> Json:
    texts = {key: value for key, field in _DATES.items() if (value := getattr(rule, field))}
    numbers = {
        key: value
        for key, field in (*_NUMBERS.items(), ("isLive", "is_live"))
        if (value := getattr(rule, field)) is not None
    }
    lists = {key: list(value) for key, field in _LISTS.items() if (value := getattr(rule, field))}
    return {**numbers, **texts, **lists}


def check_bucket(body: Mapping[str, object]) -> None:
    wrong = [
        Violation(field, f"{sentence}: leave out {field}.")
        for field, sentence in _MISSING.items()
        if _asks(body.get(field))
    ]
    if wrong:
        raise Invalid(tuple(wrong))


def check_line(field: str, value: str) -> None:
    """Refuse a stored text that no header, list or terminal could show: one with control characters."""
    if _CONTROL.search(value):
        raise fault(field, f"{field} must not have control characters, as {value[:60]!r} does.")


def fault(field: str, sentence: str) -> Invalid:
    return Invalid((Violation(field, sentence),))


def _asks(value: object) -> bool:
    """Whether the value, or any value inside, is not empty."""
    if isinstance(value, dict):
        return any(_asks(item) for item in cast("dict[str, object]", value).values())
    if isinstance(value, list):
        return any(_asks(item) for item in cast("list[object]", value))
    return bool(value) and value != "0"
