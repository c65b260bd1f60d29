import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainshed.core.errors import Invalid
from trainshed.wire.json_body import parse_json, parse_object


@pytest.mark.parametrize(
    "body",
    ['{"a": 1, "b": [{"c": "\\u00fc\\ud83d\\ude00"}]}', "\ufeff{}", " {} ", '{"a":' * 250 + "1" + "}" * 250],
)
def test_plain_json_is_read(body: str) -> None:
    assert isinstance(parse_object(body.encode()), dict)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ('{"displayName": "a", "displayName": "a"}', "displayName"),
        ('{"a": {"b": [{"c": 1, "d": 2, "c": 3}]}}', "c"),
        ('{"\\ud800": 1, "\\ud800": 2}', "\ufffd"),
    ],
)
def test_a_name_that_is_given_twice_is_named(body: str, field: str) -> None:
    with pytest.raises(Invalid, match="given twice") as refused:
        parse_object(body.encode())
    assert refused.value.violations[0].field == field


@pytest.mark.parametrize(
    ("body", "field"),
    [('{"a": [1, {"b": "x\\ud800"}]}', "a[1].b"), ('{"a": {"\\udfff": 1}}', "a"), ('{"\\uD800": 1}', "")],
)
def test_half_of_a_surrogate_pair_is_refused_with_its_place(body: str, field: str) -> None:
    with pytest.raises(Invalid, match="valid Unicode") as refused:
        parse_object(body.encode())
    assert refused.value.violations[0].field == field


@pytest.mark.parametrize(
    "body",
    [
        b"1e400",
        b"-1e400",
        b"NaN",
        b"Infinity",
        b"9" * 4400,
        b"9" * 301,
        b"[" * 100_000,
        b"[" * 251 + b"]" * 251,
        b'{"a":' * 251 + b"1" + b"}" * 251,
        b'{"a":' * 900 + b'"\\u0041"' + b"}" * 900,
        b'"\xed\xa0\x80"',
        b"\xff\xfe{\0}\0",
        b"{",
        b"{}{}",
        b"",
    ],
)
def test_what_no_parser_behind_it_could_keep_is_refused(body: bytes) -> None:
    with pytest.raises(Invalid):
        parse_json(body)


@pytest.mark.parametrize("body", [b"[]", b"1", b"null", b'"x"'])
def test_what_is_not_an_object_is_refused_where_one_is_wanted(body: bytes) -> None:
    with pytest.raises(Invalid, match="must be a JSON object"):
        parse_object(body)


@given(st.binary() | st.text(alphabet='{}[]",:\\ud80123eE+-.tfn ').map(str.encode))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    try:
        parse_json(body)
    except Invalid as error:
        str(error).encode()  # can be sent
