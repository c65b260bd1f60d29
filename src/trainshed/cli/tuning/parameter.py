"""`--param NAME=SPEC` as the API's ParameterSpec. Pure: `tune` calls it before anybody is asked.

    lr=log:1e-4..1e-1        a range, searched by its logarithm      units=16..512     whole numbers
    batch=32,64,128          one of these numbers                    net=small,big     one of these words
    dropout@net=big=0.1..0.5 only where net is big

Whatever is wrong is a Misuse that names the options, their values and what is allowed: all at once.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainshed.cli import words
from trainshed.cli.failure import Misuse
from trainshed.client import Json

ALLOWED = (
    "LOW..HIGH, as 1..10: whole numbers, if both ends are written as such; 0.0..1.0: all numbers between",
    "log:LOW..HIGH or rlog:LOW..HIGH: searched finer near LOW, or near HIGH; int:LOW..HIGH: whole numbers",
    "A,B,C: one of these numbers, or one of these words",
    "NAME@PARENT=A,B=SPEC: only where the parameter PARENT is A or B",
)
SCALES = {"log": "UNIT_LOG_SCALE", "rlog": "UNIT_REVERSE_LOG_SCALE"}
MOST_VALUES = 1000
_NUMBER = r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})")
_ONE_NUMBER = re.compile(_NUMBER)
_PREFIX = re.compile(r"(log|rlog|int):")
_PARENT_FIELDS = {
    "discreteValueSpec": "parentDiscreteValues",
    "integerValueSpec": "parentIntValues",
    "categoricalValueSpec": "parentCategoricalValues",
}


@dataclass(frozen=True, slots=True)
class ParameterWord:
    """One `--param`, read: its spec, and where it applies only for some values of another, those values."""

    text: str
    name: str
    spec: Json
    parent: str = ""
    parent_values: tuple[str, ...] = ()


def parameter_specs(texts: Sequence[str]) -> list[Json]:
    """The ParameterSpecs of all `--param` together, conditional ones inside their parents."""
    if not texts:
        raise Misuse("say what to search: --param NAME=SPEC, as in --param lr=log:1e-4..1e-1", [*ALLOWED])
    given, faults = _all_words(texts)
    if not faults:  # else a parent may be missing only because it is wrong itself
        faults = [fault for word in given if word.parent for fault in _attach(word, given)]
    faults += _cycles(given)
    roots = [word for word in given if not word.parent]
    for at, word in enumerate(roots):
        if word.name in [other.name for other in roots[:at]]:
            faults.append(_fault(word.text, f"{word.name} stands twice"))
    if faults:
        raise _misuse(faults)
    return [word.spec for word in roots]


def _all_words(texts: Sequence[str]) -> tuple[list[ParameterWord], list[str]]:
    """Those that can be read, and what is wrong with the others."""
    given: list[ParameterWord] = []
    faults: list[str] = []
    for text in texts:
        try:
            given.append(parameter_word(text))
        except Misuse as error:
            faults.append(error.message)
    return given, faults


def parameter_word(text: str) -> ParameterWord:
    name, equals, rest = text.partition("=")
    name, at, parent = name.partition("@")
    values = ""
    if at:
        values, equals, rest = rest.partition("=")
    if not equals or not name or not rest or (at and not (parent and values)):
        raise _wrong(text, "is not NAME=SPEC" if not at else "is not NAME@PARENT=VALUES=SPEC")
    if any(letter.isspace() for letter in name):
        raise _wrong(text, f"{name!r} has a space in it, which a parameter's name may not")
    spec: Json = {"parameterId": name, **_value_spec(text, rest)}
    return ParameterWord(text, name, spec, parent, tuple(values.split(",")) if at else ())


def _value_spec(text: str, spec: str) -> Json:
    prefixes: list[str] = []
    while prefix := _PREFIX.match(spec):
        prefixes.append(prefix[1])
        spec = spec[prefix.end() :]
    if len(set(prefixes)) < len(prefixes) or {"log", "rlog"} <= set(prefixes):
        raise _wrong(text, f"{':'.join(prefixes)}: exclude each other")
    scales = [SCALES[word] for word in prefixes if word in SCALES]
    scale: Json = {"scaleType": scales[0]} if scales else {}
    if ends := _RANGE.fullmatch(spec):
        return {**_range(text, ends[1], ends[2], whole="int" in prefixes, is_log=bool(scale)), **scale}
    return {**_list(text, spec, prefixes), **scale}


def _range(text: str, low: str, high: str, *, whole: bool, is_log: bool) -> Json:
    ends = float(low), float(high)
    if not all(map(math.isfinite, ends)):
        raise _wrong(text, "has an end that is too large")
    if ends[0] > ends[1]:
        raise _wrong(text, f"its lower end {low} is above its upper end {high}")
    if is_log and ends[0] <= 0:
        raise _wrong(text, f"a logarithm needs values above zero, and the lowest is {low}")
    are_whole = all(end.is_integer() for end in ends)
    if whole and not are_whole:
        raise _wrong(text, "int: needs whole numbers at both ends")
    if whole or (are_whole and "." not in low + high):
        return {"integerValueSpec": {"minValue": int(ends[0]), "maxValue": int(ends[1])}}
    return {"doubleValueSpec": {"minValue": ends[0], "maxValue": ends[1]}}


def _list(text: str, spec: str, prefixes: list[str]) -> Json:
    values = spec.split(",")
    if len(values) < 2:
        raise _wrong(text, f"{spec!r} is neither a range LOW..HIGH nor a list A,B,C")
    if len(values) > MOST_VALUES:
        raise _wrong(text, f"has {len(values)} values, and at most {MOST_VALUES} are allowed")
    if not all(value.strip() == value and value for value in values):
        raise _wrong(text, "has an empty value, or one with spaces around it")
    if any(_RANGE.fullmatch(value) for value in values):
        raise _wrong(text, "is a range and a list at once")
    if not all(map(_ONE_NUMBER.fullmatch, values)):
        if prefixes:
            raise _wrong(text, f"{':'.join(prefixes)}: goes with numbers, not with words")
        if len(set(values)) < len(values):
            raise _wrong(text, "has a value twice")
        return {"categoricalValueSpec": {"values": values}}
    numbers = sorted(map(float, values))
    if len(set(numbers)) < len(numbers):
        raise _wrong(text, "has a value twice")
    if "int" in prefixes and not all(number.is_integer() for number in numbers):
        raise _wrong(text, "int: needs whole numbers")
    if {"log", "rlog"} & set(prefixes) and numbers[0] <= 0:
        raise _wrong(text, f"a logarithm needs values above zero, and the lowest is {numbers[0]:g}")
    return {"discreteValueSpec": {"values": numbers}}


def _attach(child: ParameterWord, given: list[ParameterWord]) -> list[str]:
    """Puts a conditional parameter into its parent; into each of that name that has the values.

    Returns what is wrong where none has.
    """
    parents = [word for word in given if word.name == child.parent]
    if not parents:
        names = ", ".join(dict.fromkeys(word.name for word in given if word.name != child.name))
        reason = f"there is no parameter {child.parent}; there are: {names or 'no others'}"
        return [_fault(child.text, reason)]
    faults: list[str] = []
    attached = False
    for parent in parents:
        field = next((field for field in _PARENT_FIELDS if field in parent.spec), None)
        if field is None:
            faults.append(f"{child.parent} has endless values; a condition needs a list or whole numbers")
            continue
        try:
            values = [read_value(parent.spec, value) for value in child.parent_values]
        except ValueError as error:
            faults.append(f"{child.parent} {error}")
            continue
        condition = {_PARENT_FIELDS[field]: {"values": values}, "parameterSpec": child.spec}
        parent.spec.setdefault("conditionalParameterSpecs", []).append(condition)
        attached = True
    return [] if attached else [_fault(child.text, faults[0])]


def _cycles(given: list[ParameterWord]) -> list[str]:
    parents = {word.name: word.parent for word in given}
    faults: list[str] = []
    for word in given:
        seen = {word.name}
        above = word.parent
        while above:
            if above in seen:
                faults.append(_fault(word.text, "depends on itself"))
                break
            seen.add(above)
            above = parents.get(above, "")
    return faults


def read_value(spec: Json, text: str) -> float | int | str:
    """A value of a ParameterSpec. Raises ValueError with what is allowed, to stand behind its name."""
    if categories := spec.get("categoricalValueSpec"):
        if text not in categories["values"]:
            raise ValueError(f"is one of {', '.join(categories['values'])}, not {text!r}")
        return text
    number = float(text) if _ONE_NUMBER.fullmatch(text) else math.nan
    if listed := spec.get("discreteValueSpec"):
        values = [float(value) for value in listed["values"]]
        if number not in values:
            raise ValueError(f"is one of {', '.join(f'{value:g}' for value in values)}, not {text!r}")
        return number
    ends = words.part(spec, "integerValueSpec") or words.part(spec, "doubleValueSpec")
    low, high = float(ends.get("minValue") or 0), float(ends.get("maxValue") or 0)
    is_whole = "integerValueSpec" in spec
    if not low <= number <= high or (is_whole and not number.is_integer()):
        kind = "a whole number" if is_whole else "a number"
        raise ValueError(f"is {kind} from {low:g} to {high:g}, not {text!r}")
    return int(number) if is_whole else number


def every_spec(specs: Sequence[Json]) -> Iterator[Json]:
    """The ParameterSpecs and those inside them."""
    for spec in specs:
        yield spec
        conditions = words.parts(spec, "conditionalParameterSpecs")
        yield from every_spec([words.part(condition, "parameterSpec") for condition in conditions])


def likely_mistakes(specs: Sequence[Json]) -> list[str]:
    """Remarks about specs that are right and may not be what was meant."""
    return [
        f"{spec['parameterId']} has only the values 0 and 1; write 0.0..1.0 for all numbers between"
        for spec in every_spec(specs)
        if spec.get("integerValueSpec") == {"minValue": 0, "maxValue": 1}
    ]


def _wrong(text: str, reason: str) -> Misuse:
    return _misuse([_fault(text, reason)])


def _fault(text: str, reason: str) -> str:
    return f"--param {text}: {reason}"


def _misuse(faults: Sequence[str]) -> Misuse:
    first, *others = faults
    return Misuse(first, [*others, "what is allowed:", *(f"  {line}" for line in ALLOWED)])
