"""The filter language of the logs: what each client's text means, and what no text can do."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainshed.core.errors import Invalid
from trainshed.wire.filter_tokens import LONGEST
from trainshed.wire.log_filter import DEEPEST, MOST_EXPRESSIONS, bounds, instant, matches, parse

ENTRY = {
    "timestamp": "2024-05-01T12:00:00.000000100Z",
    "insertId": "l00000000000000000007",
    "severity": "WARNING",
    "logName": "projects/p1/logs/workerpool0-0",
    "resource": {"type": "ml_job", "labels": {"job_id": "42", "task_name": "workerpool0-0"}},
    "labels": {"ml.googleapis.com/task_name": "workerpool0-0", "ml.googleapis.com/attempt": "1"},
    "jsonPayload": {"message": "Epoch 3: loss=0.25", "loss": 0.25, "done": False, "tags": ["a", "b"]},
}
NOON = instant("2024-05-01T12:00:00Z") or 0


def holds(text: str) -> bool:
    return matches(parse(text), ENTRY)


@pytest.mark.parametrize(
    "text",
    [
        'resource.type="ml_job" AND resource.labels.job_id="42" '
        'AND timestamp>="1970-01-01T01:00:00.000000000Z" AND timestamp<"2024-05-01T12:00:05.000000000Z"',
        'resource.type="ml_job" AND resource.labels.job_id="42" '
        'AND resource.labels.task_name="workerpool0-0" '
        'AND timestamp>="1970-01-01T01:00:00.000000000Z" AND timestamp<"2024-05-01T12:00:05Z"',
        '(resource.type="ml_job" OR resource.type="cloudml_job") AND resource.labels.job_id="42" AND '
        '(resource.labels.task_name="workerpool0-0" OR labels.task_name="workerpool0-0")',
        'resource.type="ml_job" AND ((timestamp="2024-05-01T12:00:00.000000100Z" AND '
        'insertId>"l00000000000000000006") OR timestamp>"2024-05-01T12:00:00.000000100Z")',
        'timestamp>="2024-04-30T12:00:00.123456Z" AND resource.labels.job_id=42',
    ],
)
def test_what_gcloud_sends_finds_the_entry(text: str) -> None:
    assert holds(text)


@pytest.mark.parametrize(
    "text",
    [
        'resource.type="ml_job" AND resource.labels.job_id="43"',
        'resource.labels.job_id="42" AND timestamp<"2024-05-01T12:00:00.0000001Z"',
        '((timestamp="2024-05-01T12:00:00.000000100Z" AND insertId>"l00000000000000000007") '
        'OR timestamp>"2024-05-01T12:00:00.000000100Z")',
        '(resource.labels.task_name="workerpool1-0" OR labels.task_name="workerpool1-0")',
    ],
)
def test_what_gcloud_sends_passes_other_entries_over(text: str) -> None:
    assert not holds(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("  -- only a comment", True),
        ("epoch", True),
        ('"loss=0.25"', True),
        ("nothing", False),
        ("-nothing", True),
        ("NOT NOT epoch", True),
        ("epoch 3", True),
        ("epoch nothing", False),
        ("epoch OR nothing", True),
        # OR binds tighter than AND: nothing AND (epoch OR epoch)
        ("nothing AND epoch OR epoch", False),
        ("epoch OR epoch AND nothing", False),
        ("NOT epoch OR epoch", True),
        ("NOT (epoch OR nothing)", False),
        ("severity>=INFO", True),
        ("severity>=warning", True),
        ("severity>WARNING", False),
        ("severity<CRITICAL", True),
        ("severity=(ERROR OR WARNING)", True),
        ("severity!=ERROR", True),
        ("severity:warn", True),
        ('labels."ml.googleapis.com/task_name"="workerpool0-0"', True),
        ('labels."ml.googleapis.com/task_name":pool0', True),
        ("labels:attempt", True),
        ("jsonPayload.message:EPOCH", True),
        ("json_payload.message:(epoch AND loss)", True),
        ("jsonPayload.message:(epoch AND nothing)", False),
        ('jsonPayload.message=~"loss=[0-9.]+$"', True),
        ('jsonPayload.message=~"LOSS"', False),
        ('jsonPayload.message=~"(?i)LOSS"', True),
        ('jsonPayload.message!~"loss"', False),
        ("jsonPayload.loss<0.3", True),
        ("jsonPayload.loss=0.250", True),
        ("jsonPayload.loss>-5", True),
        ("jsonPayload.done=false", True),
        ("jsonPayload.tags=b", True),
        ("jsonPayload.loss:*", True),
        ("jsonPayload.gone:*", False),
        ("jsonPayload.gone!=1", False),
        ("NOT jsonPayload.gone=1", True),
        ("textPayload:epoch", False),
        ("timestamp=2024-05-01T14:00:00.0000001+02:00", True),
        ('timestamp>"2024-05-01"', True),
        ('timestamp>"2024-05-02"', False),
        ('insertId>="l00000000000000000007"', True),
        ("logName:workerpool0", True),
        ("resource.labels.job_id=042", False),
    ],
)
def test_a_filter_means(text: str, expected: bool) -> None:
    assert holds(text) is expected


def test_an_entry_without_a_severity_has_the_default_one() -> None:
    assert matches(parse("severity<DEBUG"), {"textPayload": "x"})


@pytest.mark.parametrize(
    ("text", "sentence", "position"),
    [
        ("(epoch", "never closed", 1),
        ("epoch)", "not expected", 6),
        ("a AND", "ends where", 6),
        ("AND a", "term was expected", 1),
        ('severity="LOUD"', "LOUD", 10),
        ('timestamp>"yesterday"', "not a time", 11),
        ('timestamp>"2024-13-01T00:00:00Z"', "not a time", 11),
        ('jsonPayload.x=~"("', "cannot be understood", 16),
        ('jsonPayload.x=~"(a)\\\\1"', "cannot be understood", 16),
        ('jsonPayload.x=~"a{1000}{1000}"', "cannot be understood", 16),
        ('jsonPayload.x=~"\\ud800"', "half of a character", 16),
        ('textPayload=~"a" ' * (MOST_EXPRESSIONS + 1), "regular expressions", 17 * MOST_EXPRESSIONS + 14),
        ('jsonPayload.x=~"[a"', "cannot be understood", 16),
        ('colour="red"', "no field 'colour'", 1),
        ('log_id("x")', "not supported", 1),
        ('textPayload="x', "never closed", 13),
        ("a = = b", "no field", 1),
        ("x" * (LONGEST + 1), "characters long", LONGEST + 1),
        ("(" * 10_000, "parentheses", DEEPEST + 1),
    ],
)
def test_a_wrong_filter_is_refused_with_its_position(text: str, sentence: str, position: int) -> None:
    with pytest.raises(Invalid) as caught:
        parse(text)
    assert sentence in caught.value.message
    assert f"at character {position} " in caught.value.message


def test_many_denials_and_the_deepest_nesting_are_understood() -> None:
    assert holds("NOT " * 2000 + "epoch")
    assert holds("(" * DEEPEST + "epoch" + ")" * DEEPEST)


@pytest.mark.parametrize("pattern", ["a*a*b", "(a+)+$", "(a|a)*b", "(.*)*x", ".*a.*b", "(?:a?){100}b"])
def test_no_regular_expression_takes_longer_than_the_text_is_long(pattern: str) -> None:
    """An engine that goes back would take hours."""
    assert not matches(parse(f'textPayload=~"{pattern}"'), {"textPayload": "a" * 200_000 + "\n"})


def test_text_that_no_encoding_has_is_searched_like_any_other() -> None:
    assert matches(parse('textPayload=~"loss$"'), {"textPayload": "\ud800 loss"})


def test_bounds_name_the_job_the_task_and_the_time() -> None:
    found = bounds(
        parse(
            'resource.type="ml_job" AND resource.labels.job_id="42" AND resource.labels.task_name="t" AND '
            'timestamp>="2024-05-01T12:00:00Z" AND timestamp<"2024-05-01T12:00:01Z"'
        )
    )
    assert found.jobs == {"42"}
    assert found.tasks == {"t"}
    assert (found.since_ns, found.until_ns) == (NOON, NOON + 10**9)
    assert found.after is None


@pytest.mark.parametrize(
    ("op", "since", "until"),
    [
        ("=", NOON, NOON + 1),
        (">", NOON + 1, None),
        (">=", NOON, None),
        ("<", None, NOON),
        ("<=", None, NOON + 1),
        ("!=", None, None),
        (":", None, None),
    ],
)
def test_each_comparison_of_the_time_bounds_it(op: str, since: int | None, until: int | None) -> None:
    found = bounds(parse(f'timestamp{op}"2024-05-01T12:00:00Z"'))
    assert (found.since_ns, found.until_ns) == (since, until)


def test_bounds_find_the_place_after_which_a_client_goes_on() -> None:
    text = '((timestamp="2024-05-01T12:00:00Z" AND insertId>"I7") OR timestamp>"2024-05-01T12:00:00Z")'
    found = bounds(
        parse(f'{text} AND timestamp<"2024-05-01T13:00:00Z" AND resource.labels.job_id=("1" OR "2")')
    )
    assert found.after == (NOON, "I7")
    assert found.since_ns == NOON
    assert found.until_ns == NOON + 3600 * 10**9
    assert found.jobs == {"1", "2"}


@pytest.mark.parametrize(
    "text",
    [
        "epoch",
        'NOT resource.labels.job_id="1"',
        'resource.labels.job_id="1" OR epoch',
        "resource.labels.job_id:1",
    ],
)
def test_bounds_promise_nothing_that_the_filter_does_not_demand(text: str) -> None:
    assert bounds(parse(text)) == bounds(parse(""))


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01.5Z", 1_500_000_000),
        ("1970-01-01T00:00:00.000000001Z", 1),
        ("1970-01-01T00:00:00.0000000019Z", 1),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T23:59:59Z", -1_000_000_000),
        ("1970-01-02", 86_400 * 10**9),
    ],
)
def test_an_instant_is_read_at_any_precision(text: str, nanoseconds: int) -> None:
    assert instant(text) == nanoseconds


signs = ["(", ")", "-", "=", "!=", ">=", "=~", "!~", ":", "~", "!", ",", '"', "'", "\\", " ", "\n", "*"]
words = ["AND", "OR", "NOT", "timestamp", "severity", "labels.", '"a/b"', ".c", "textPayload", "(a+)+", "x"]
pieces = st.sampled_from([*signs, *words, "2024-01-01T00:00:00Z"])


@given(
    st.one_of(
        st.text(max_size=60), st.lists(pieces, max_size=25).map(" ".join), st.lists(pieces).map("".join)
    )
)
def test_no_text_raises_anything_but_invalid(text: str) -> None:
    try:
        found = parse(text)
    except Invalid as error:
        assert "at character" in error.message
    else:
        matches(found, ENTRY)
        bounds(found)


times = st.integers(0, 4).map(lambda n: f'"1970-01-01T00:00:00.00000000{n}Z"')
compares = st.one_of(
    st.builds("timestamp{}{}".format, st.sampled_from(["=", ">", ">=", "<", "<="]), times),
    st.builds('insertId>"{}"'.format, st.integers(0, 3)),
    st.builds("resource.labels.job_id={}".format, st.integers(0, 2)),
    st.builds("resource.labels.task_name={}".format, st.integers(0, 2)),
)
filters = st.recursive(
    compares,
    lambda inner: st.one_of(
        inner.map("NOT ({})".format),
        st.lists(inner, min_size=2, max_size=3).map(" AND ".join).map("({})".format),
        st.lists(inner, min_size=2, max_size=3).map(" OR ".join).map("({})".format),
    ),
    max_leaves=8,
)


@given(filters, st.integers(0, 2), st.integers(0, 2))
def test_every_entry_that_matches_lies_within_the_bounds(text: str, job: int, task: int) -> None:
    parsed = parse(text)
    limits = bounds(parsed)
    for at, place in product(range(5), range(4)):
        entry = {
            "timestamp": f"1970-01-01T00:00:00.00000000{at}Z",
            "insertId": str(place),
            "resource": {"labels": {"job_id": str(job), "task_name": str(task)}},
        }
        if matches(parsed, entry):
            assert limits.jobs is None or str(job) in limits.jobs
            assert limits.tasks is None or str(task) in limits.tasks
            assert limits.since_ns is None or at >= limits.since_ns
            assert limits.until_ns is None or at < limits.until_ns
            assert limits.after is None or (at, str(place)) > limits.after
