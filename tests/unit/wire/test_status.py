import pytest

from trainshed.core import bucket, errors
from trainshed.wire.status import INTERNAL, to_http, to_storage


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (errors.Conflict("It is running."), 400, "FAILED_PRECONDITION"),
        (errors.Unauthenticated(), 401, "UNAUTHENTICATED"),
        (errors.Forbidden(), 403, "PERMISSION_DENIED"),
        (errors.NotFound(), 404, "NOT_FOUND"),
        (errors.AlreadyExists(), 409, "ALREADY_EXISTS"),
        (errors.Exhausted(), 429, "RESOURCE_EXHAUSTED"),
        (errors.Unavailable(), 503, "UNAVAILABLE"),
    ],
)
def test_an_error_becomes_googles_status(error: errors.TrainshedError, code: int, status: str) -> None:
    assert to_http(error) == (
        code,
        {"error": {"code": code, "message": error.message, "status": status}},
    )


# Those of the core: what an adapter raises for itself is translated before it gets here.
CLASSES = [cls for cls in errors.TrainshedError.__subclasses__() if cls.__module__ == errors.__name__]


def test_every_violation_is_in_the_details() -> None:
    violations = (errors.Violation("a.b", "is required."), errors.Violation("c", "is wrong."))
    code, body = to_http(errors.Invalid(violations, "Two things."))
    assert code == 400
    assert body["error"]["status"] == "INVALID_ARGUMENT"
    assert body["error"]["details"] == [
        {
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [
                {"field": "a.b", "description": "is required."},
                {"field": "c", "description": "is wrong."},
            ],
        }
    ]


def test_every_class_of_error_has_a_status_of_its_own() -> None:
    found = {to_http(cls(()) if cls is errors.Invalid else cls())[1]["error"]["status"] for cls in CLASSES}
    assert len(found) == len(CLASSES)
    assert "INTERNAL" not in found


def test_an_error_without_a_class_is_an_internal_one() -> None:
    assert to_http(errors.TrainshedError("?")) == (500, INTERNAL)


def test_the_storage_api_has_numbers_of_its_own() -> None:
    for error, reads, expected in (
        (bucket.PreconditionFailed(), True, (412, "conditionNotMet")),
        (bucket.NotModified(), True, (304, "notModified")),
        (bucket.NotModified(), False, (412, "conditionNotMet")),
        (bucket.OutOfRange(9), True, (416, "requestedRangeNotSatisfiable")),
        (bucket.DiskFull(), False, (507, "insufficientStorage")),
        (bucket.DamagedObject(), True, (409, "damaged")),
        (errors.Conflict(), False, (409, "conflict")),
        (errors.TrainshedError(), False, (500, "internalError")),
    ):
        assert to_storage(error, reads=reads) == expected
    for cls in CLASSES:
        assert to_storage(cls(()) if cls is errors.Invalid else cls())[0] != 500
