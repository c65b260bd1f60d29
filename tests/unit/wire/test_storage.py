"""Objects in the words of the storage API: the fast way and the plain one say the same."""

import json
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest

from trainshed.core.bucket import PLAIN, Attributes, ObjectInfo, Precondition
from trainshed.core.errors import Invalid
from trainshed.wire.partial import partial
from trainshed.wire.storage import (
    number,
    object_headers,
    overlay,
    precondition,
    quoted,
    render_object,
    render_objects,
)

AT = datetime(2026, 1, 2, 3, 4, 5, 678_912, tzinfo=UTC)
BASE = "http://127.0.0.1:8080/t/token"


def info(name: str = "a/b", attributes: Attributes | None = None, **more: int) -> ObjectInfo:
    return ObjectInfo(
        bucket="shed",
        name=name,
        generation=17,
        metageneration=3,
        size=9,
        crc32c="4waSgw==",
        md5="JfnnlDI7RTiF9RgfG2JNCw==",
        created_at=AT,
        updated_at=AT + timedelta(seconds=1),
        attributes=attributes or Attributes(),
        components=more.get("components", 0),
    )


@pytest.mark.parametrize("name", ["a/b", 'q"uo\\te', "größe 大 🚂", "nul\0 tab\t", "a%2Fb?#", "\x7f\u2028"])
@pytest.mark.parametrize(
    "attributes",
    [
        Attributes(),
        Attributes(content_type='x/"y', cache_control="no-store"),
        Attributes(storage_class="NEARLINE", metadata={"k": "größe"}),
        Attributes(content_encoding="gzip", custom_time="2026-01-01T00:00:00Z"),
    ],
)
def test_lists_tell_of_each_object_what_it_tells_alone(name: str, attributes: Attributes) -> None:
    objects = [info(name, attributes), info(name, attributes, components=2)]
    assert json.loads(render_objects(objects, BASE)) == [render_object(one, BASE) for one in objects]


def test_names_are_quoted_as_the_library_would() -> None:
    name = "".join(map(chr, range(0x300))) + "大🚂"
    assert quoted(name) == quote(name, safe="")


def test_numbers_are_strings_and_times_have_milliseconds() -> None:
    told = render_object(info(), BASE)
    assert (told["size"], told["generation"], told["metageneration"]) == ("9", "17", "3")
    assert (told["timeCreated"], told["updated"]) == ("2026-01-02T03:04:05.678Z", "2026-01-02T03:04:06.678Z")
    assert told["mediaLink"] == f"{BASE}/download/storage/v1/b/shed/o/a%2Fb?generation=17&alt=media"
    assert told["contentType"] == "application/octet-stream"


def test_what_a_header_cannot_hold_is_left_out_of_the_headers() -> None:
    attributes = Attributes(
        content_type="text/plain", metadata={"fine": "x", "bad": "a\r\nSet-Cookie: b", "ü": "x"}
    )
    headers = object_headers(info("x", attributes))
    assert headers["x-goog-meta-fine"] == "x"
    assert not [key for key in headers if "bad" in key or "ü" in key]
    assert "\n" not in "".join(headers.values())


def test_attributes_are_laid_over_and_null_takes_them_back() -> None:
    old = Attributes(content_type="a/b", cache_control="x", metadata={"a": "1", "b": "2"})
    new = overlay(old, {"contentType": "c/d", "cacheControl": None, "metadata": {"a": None, "c": "3"}})
    assert new == Attributes(content_type="c/d", metadata={"b": "2", "c": "3"})
    assert overlay(old, {"metadata": None}).metadata == {}
    assert overlay(old, {"acl": [], "kind": "storage#object"}) == old


@pytest.mark.parametrize(
    "body", [{"contentType": 1}, {"metadata": []}, {"metadata": {"a": 1}}, {"metadata": {"a": "x" * 70_000}}]
)
def test_attributes_of_another_kind_are_refused(body: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        overlay(Attributes(), body)


def test_preconditions_come_from_the_query() -> None:
    query = {"ifGenerationMatch": "0", "ifMetagenerationNotMatch": "4", "ifSourceGenerationMatch": "5"}
    assert precondition(query) == Precondition(generation=0, not_metageneration=4)
    assert precondition(query, "ifSource") == Precondition(generation=5)
    for wrong in ("-1", "x", "1" * 20, "²"):
        with pytest.raises(Invalid):
            precondition({"ifGenerationMatch": wrong})


def test_a_field_mask_cuts_an_answer() -> None:
    answer = {"items": [{"a": 1, "b": {"c": 2, "d": 3}}], "next": "x", "kind": "k"}
    assert partial(answer, "items(a,b/c),next") == {"items": [{"a": 1, "b": {"c": 2}}], "next": "x"}
    assert partial(answer, "items/b(c)") == {"items": [{"b": {"c": 2}}]}
    assert partial(answer, "items(*),none") == {"items": answer["items"]}
    assert partial(answer, "*") == partial(answer, "") == answer
    for wrong in ("items(a", "a)", "(" * 100, "x/" * 100, "a" * 9000):
        with pytest.raises(Invalid):
            partial(answer, wrong)


@pytest.mark.parametrize("text", ["9223372036854775808", "9999999999999999999", "²", "9" * 4400])
def test_a_number_of_more_than_64_bits_is_refused(text: str) -> None:
    assert number({"generation": "9223372036854775807"}, "generation") == 2**63 - 1
    with pytest.raises(Invalid):
        number({"generation": text}, "generation")


@pytest.mark.parametrize(
    ("stored", "sent"),
    [
        ("", "attachment"),
        ("inline", "attachment"),
        ("inline; filename=a", "attachment; filename=a"),
        ("ATTACHMENT; filename=a", "ATTACHMENT; filename=a"),
        ("attachment, inline", "attachment"),
        ("ü", "attachment"),
    ],
)
def test_a_browser_saves_an_object_whatever_is_stored(stored: str, sent: str) -> None:
    assert (
        object_headers(info(attributes=Attributes(content_disposition=stored)))["content-disposition"] == sent
    )


@pytest.mark.parametrize(
    "body",
    [
        {"contentType": "a\0b"},
        {"storageClass": "\x1b[2J"},
        {"cacheControl": "\x7f"},
        {"metadata": {"a": "\x01"}},
        {"metadata": {"a\n": "b"}},
    ],
)
def test_control_characters_in_an_attribute_are_refused_with_its_name(body: dict[str, object]) -> None:
    with pytest.raises(Invalid, match=r"control characters|NUL") as error:
        overlay(PLAIN, body)
    assert [violation.field for violation in error.value.violations] == list(body)


def test_a_value_of_metadata_may_have_several_lines() -> None:
    assert overlay(PLAIN, {"metadata": {"a": "b\r\n\tc"}}).metadata == {"a": "b\r\n\tc"}
