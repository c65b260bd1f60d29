from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainshed.core.errors import Invalid
from trainshed.core.query import (
    NEWEST_FIRST,
    OLDEST_FIRST,
    AllOf,
    AnyOf,
    Compare,
    Condition,
    JobOrder,
    NotOf,
    Operator,
    QueryField,
)
from trainshed.wire.job_filter import parse_filter, parse_order_by

A = Compare(QueryField.STATE, Operator.EQ, "RUNNING")
B = Compare(QueryField.STATE, Operator.EQ, "FAILED")
C = Compare(QueryField.DISPLAY_NAME, Operator.EQ, "c")
TIME = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_no_filter_is_no_condition(text: str) -> None:
    assert parse_filter(text) is None


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ('display_name="c"', C),
        ("displayName = c", C),
        ('display_name!="c"', Compare(QueryField.DISPLAY_NAME, Operator.NE, "c")),
        ('display_name:"my_job_*"', Compare(QueryField.DISPLAY_NAME, Operator.LIKE, "my_job_*")),
        ('display_name="my_job_*"', Compare(QueryField.DISPLAY_NAME, Operator.LIKE, "my_job_*")),
        ('display_name!="my_*"', NotOf(Compare(QueryField.DISPLAY_NAME, Operator.LIKE, "my_*"))),
        ("display_name:job", Compare(QueryField.DISPLAY_NAME, Operator.LIKE, "*job*")),
        ('state="JOB_STATE_RUNNING"', A),
        ("state=RUNNING", A),
        ("state!=JOB_STATE_FAILED", Compare(QueryField.STATE, Operator.NE, "FAILED")),
        ("state=EXPIRED", Compare(QueryField.STATE, Operator.EQ, "EXPIRED")),
        ('create_time>="2026-01-31T12:00:00Z"', Compare(QueryField.CREATED, Operator.GE, TIME)),
        ("createTime<2026-01-31T13:00:00+01:00", Compare(QueryField.CREATED, Operator.LT, TIME)),
        ('update_time="2026-01-31T12:00:00Z"', Compare(QueryField.UPDATED, Operator.EQ, TIME)),
        ('startTime!="2026-01-31T12:00:00Z"', Compare(QueryField.STARTED, Operator.NE, TIME)),
        ('end_time > "2026-01-31T12:00:00.000Z"', Compare(QueryField.ENDED, Operator.GT, TIME)),
        ("labels.k=v", Compare(QueryField.LABEL, Operator.EQ, "v", "k")),
        ('labels."k"!="v"', Compare(QueryField.LABEL, Operator.NE, "v", "k")),
        ("labels.my-key:*", Compare(QueryField.LABEL, Operator.LIKE, "*", "my-key")),
        ("labels.k=v*", Compare(QueryField.LABEL, Operator.LIKE, "v*", "k")),
        ("labels:k", Compare(QueryField.LABEL, Operator.LIKE, "*", "k")),
        ('name="projects/p/locations/l/customJobs/12"', Compare(QueryField.ID, Operator.EQ, "12")),
    ],
)
def test_a_comparison_is_understood(text: str, condition: Condition) -> None:
    assert parse_filter(text) == condition


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("state=RUNNING AND state=FAILED", AllOf((A, B))),
        ("state=RUNNING state=FAILED", AllOf((A, B))),
        ("state=RUNNING OR state=FAILED", AnyOf((A, B))),
        ("display_name=c AND state=RUNNING OR state=FAILED", AllOf((C, AnyOf((A, B))))),
        ("(display_name=c AND state=RUNNING) OR state=FAILED", AnyOf((AllOf((C, A)), B))),
        ("NOT state=RUNNING", NotOf(A)),
        ("-state=RUNNING", NotOf(A)),
        ("NOT (state=RUNNING OR state=FAILED) display_name=c", AllOf((NotOf(AnyOf((A, B))), C))),
    ],
)
def test_comparisons_are_combined_as_in_googles_lists(text: str, condition: Condition) -> None:
    assert parse_filter(text) == condition


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("colour=red", '"colour" is not known here; display_name, state'),
        ("job_spec.network=x", '"job_spec.network" is not known'),
        ("labels.a.b=x", "not known"),
        ("state=BROKEN", '"BROKEN" is not a state; QUEUED'),
        ("state>RUNNING", "> cannot be used here; = != can"),
        ("create_time:x", ": cannot be used here"),
        ("create_time>yesterday", "must be a time"),
        ("labels.k>v", "> cannot be used with labels"),
        ("labels=x", "labels.KEY"),
        ("display_name=~x", "=~ is not known here"),
        ("state", '"state" must be compared'),
        ("state=", "A value is expected behind ="),
        ("(state=RUNNING", "A parenthesis is not closed"),
        ("state=RUNNING)", "is not expected here"),
        ("state=RUNNING AND", "but the filter ends"),
        ("OR state=RUNNING", 'not "OR"'),
        ("=RUNNING", "is expected here"),
        ('state="RUNNING', "never closed"),
        ("(" * 60 + "state=RUNNING" + ")" * 60, "nested"),
        ("state=FAILED " * 201, "more than 200 comparisons"),
        ("NOT " * 60 + "state=FAILED", "nested"),
        ("x" * 20_001, "characters long"),
    ],
)
def test_what_is_not_understood_is_refused_with_a_sentence(text: str, told: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_filter(text)
    (violation,) = caught.value.violations
    assert violation.field == "filter"
    assert told in violation.description


@given(st.text(alphabet='state=!:<>()"-.* ANDORT\\x', max_size=40) | st.text(max_size=40))
def test_any_text_is_understood_or_refused(text: str) -> None:
    try:
        parse_filter(text)
    except Invalid as error:
        assert error.violations


def text_in(word: str) -> Compare:
    return Compare(QueryField.TEXT, Operator.LIKE, word)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("digits", text_in("digits")),
        ('"two words"', text_in("two words")),
        ("'one' two", AllOf((text_in("one"), text_in("two")))),
        ("-digits", NotOf(text_in("digits"))),
        ("state", text_in("state")),
        ("state=RUNNING gpu-test", AllOf((A, text_in("gpu-test")))),
        ("v1.2 OR state=FAILED", AnyOf((text_in("v1.2"), B))),
        ("projects/p/locations/l/customJobs/12", text_in("12")),
        ("kind=pipeline", Compare(QueryField.KIND, Operator.EQ, "pipeline")),
        ("submitter:ada", Compare(QueryField.SUBMITTER, Operator.LIKE, "*ada*")),
        ("project!=p", Compare(QueryField.PROJECT, Operator.NE, "p")),
        ("location=l", Compare(QueryField.LOCATION, Operator.EQ, "l")),
    ],
)
def test_our_own_lists_understand_words_and_more_fields_and_others_refuse_them(
    text: str, condition: Condition
) -> None:
    assert parse_filter(text, is_own=True) == condition
    with pytest.raises(Invalid):
        parse_filter(text)


@pytest.mark.parametrize("text", ["AND", "a OR", "(digits", "colour=red", "state=", "word " * 201])
def test_our_own_lists_refuse_what_is_not_understood(text: str) -> None:
    with pytest.raises(Invalid):
        parse_filter(text, is_own=True)


@given(st.text(alphabet='state=!:<>()"-.* ANDORT\\x', max_size=40) | st.text(max_size=40))
def test_any_text_is_understood_or_refused_by_our_own_lists(text: str) -> None:
    try:
        parse_filter(text, is_own=True)
    except Invalid as error:
        assert error.violations


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("", NEWEST_FIRST),
        ("create_time desc", NEWEST_FIRST),
        ("createTime desc", NEWEST_FIRST),
        ("create_time", OLDEST_FIRST),
        ("create_time asc", OLDEST_FIRST),
    ],
)
def test_the_order_is_by_time_of_creation(text: str, order: JobOrder) -> None:
    assert parse_order_by(text) == order


def test_our_own_lists_have_more_orders() -> None:
    assert parse_order_by("display_name", is_own=True) == JobOrder(
        QueryField.DISPLAY_NAME, is_descending=False
    )
    assert parse_order_by("endTime desc", is_own=True) == JobOrder(QueryField.ENDED)
    with pytest.raises(Invalid, match='"state" or "state desc", not "colour"'):
        parse_order_by("colour", is_own=True)


@pytest.mark.parametrize(
    "text", ["display_name", "create_time up", "create_time,state", "create_time desc desc"]
)
def test_another_order_is_refused_with_those_there_are(text: str) -> None:
    with pytest.raises(Invalid, match='must be "create_time" or "create_time desc"'):
        parse_order_by(text)


@pytest.mark.parametrize(
    ("text", "meets"),
    [
        ('kind_of = "custom"', True),
        ('kindOf != "custom"', False),
        ("kind_of : ust", True),
        ("kind_of = cus*", True),
        ("kind_of != cus*", False),
        ("kind_of = c.stom", False),
        ("kind_of != other", True),
    ],
)
def test_what_is_the_same_in_all_is_always_met_or_never(text: str, meets: bool) -> None:
    assert parse_filter(text, {"kind_of": "custom"}) == (AllOf(()) if meets else AnyOf(()))


def test_what_is_the_same_in_all_has_no_order_and_is_unknown_elsewhere() -> None:
    with pytest.raises(Invalid, match="cannot be used here"):
        parse_filter("kind_of > a", {"kind_of": "custom"})
    with pytest.raises(Invalid, match="is not known here"):
        parse_filter("kind_of = a")


@pytest.mark.parametrize("text", [f'kind="{"*" * 60}x"', f'kind="{"*e" * 60}x"', f'kind:"{"*" * 60}x"'])
def test_many_wildcards_in_a_field_that_is_always_the_same_are_compared_at_once(text: str) -> None:
    assert parse_filter(text, {"kind": "schema/custom_task_1.0.0.yaml" * 4}) == AnyOf(())
