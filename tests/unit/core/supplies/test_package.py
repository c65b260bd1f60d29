"""Which addresses may name a package."""

import pytest

from trainshed.core.supplies.package import MOST, Package, fault, faults, file_name, split

GOOD = (
    "gs://staging/trainer-0.1.tar.gz",
    "s3://staging/a/b/trainer-0.1.zip",
    "gs://staging/trainer-0.1-py3-none-any.whl",
    "gs://staging/torch-2.1.0+cpu-1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "gs://staging/größe: 大/../trainer #1?.tar.gz",  # a name in a bucket is never a path
)
WRONG = {
    "": "must be an address",
    "gs://b\n": "must be an address",
    "trainer.tar.gz": "own machine",
    "./trainer.tar.gz": "own machine",
    "/srv/trainer.tar.gz": "own machine",
    "~/trainer.tar.gz": "own machine",
    "file:/trainer.tar.gz": "own machine",
    "file:///trainer.tar.gz": "own machine",
    "FILE://host/trainer.tar.gz": "own machine",
    "http://example.com/trainer.tar.gz": "own network",
    "https://example.com/trainer.tar.gz": "own network",
    "git+https://example.com/trainer.zip": "own network",
    "ftp://example.com/trainer.tar.gz": "own network",
    "gs:/bucket/trainer.tar.gz": "own network",
    "GS://bucket/trainer.tar.gz": "own network",
    "gs://169.254.169.254/latest.tar.gz": "names a machine",
    "s3://127.0.0.1:9000/trainer.tar.gz": "names a machine",
    "s3://2130706433/trainer.tar.gz": "names a machine",
    "s3://key:secret@bucket/trainer.tar.gz": "names a machine",
    "gs://metadata.google.internal/trainer.tar.gz": "names a machine",
    "gs://localhost/trainer.tar.gz": "names a machine",
    "gs://bucket": "must name an object",
    "gs://bucket/": "must name an object",
    "gs:///trainer.tar.gz": "cannot be the address",
    "gs://UPPER/trainer.tar.gz": "cannot be the address",
    "gs://bucket/" + "x" * 2000 + ".tar.gz": "cannot be the address",
    "gs://bucket/trainer": "no Python package by its name",
    "gs://bucket/trainer.tar.bz2": "no Python package by its name",
    "gs://bucket/trainer.egg": "no Python package by its name",
    "gs://bucket/.tar.gz": "no Python package by its name",
    "gs://bucket/trainer.whl": "name of a wheel",
    "gs://bucket/a b-1-py3-none-any.whl": "name of a wheel",
}


@pytest.mark.parametrize("uri", GOOD)
def test_an_object_in_a_bucket_with_the_name_of_a_package_may_be_one(uri: str):
    assert fault(uri) == ""


@pytest.mark.parametrize("uri", WRONG)
def test_anything_else_is_refused_with_a_sentence(uri: str):
    assert WRONG[uri] in fault(uri)


def test_every_fault_is_told_by_its_number_and_too_many_are_refused():
    assert [number for number, _ in faults(["x", GOOD[0], "y"])] == [0, 2]
    [(number, why)] = faults([GOOD[0]] * (MOST + 1))
    assert number == MOST and str(MOST) in why


def test_a_file_is_called_as_its_object_as_far_as_a_file_can_be():
    assert file_name(GOOD[2]) == "trainer-0.1-py3-none-any.whl"
    assert file_name("gs://b/-r größe #1.tar.gz") == "r_gr_e_1.tar.gz"
    assert file_name("gs://b/..tar.gz") == "tar.gz"
    assert len(file_name(f"gs://b/{'x' * 900}.tar.gz")) == 120
    assert split("gs://b/a/b.zip") == ("gs", "b", "a/b.zip")
    package = Package(uri="gs://b/a.zip", sha256="ab", size=3)
    assert package.name == "a.zip" and "sha256 ab, 3 bytes" in package.sentence
