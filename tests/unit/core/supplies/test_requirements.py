"""Which lines a job may bring: packages, yes; other files, other places, other people's secrets, no."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainshed.core.supplies.requirements import MOST_LINES, faults, normal

GOOD = [
    "numpy",
    "numpy>=2",
    "numpy >=2, <3",
    "torch==2.13.0+cpu",
    "scikit-learn[alldeps]~=1.9",
    'pywin32==306; sys_platform == "win32"',
    "pandas==3.1.1  # frames",
    "six (>=1.0)",
    "name @ https://example.com/name-1.0-py3-none-any.whl",
    "git+https://example.com/x.git@main#egg=x",
    "https://example.com/x.tar.gz",
    "https://127.example.com:8443/x.tar.gz",
    "six==1.17.0 --hash=sha256:0123abcd",
    "--pre",
    "--prefer-binary",
    "",
    "   ",
    "# a comment",
]
BAD = {
    "-r other.txt": "-r reads another file",
    "--requirement=other.txt": "--requirement reads another file",
    "-c constraints.txt": "-c reads another file",
    "-e .": "-e needs a folder",
    "--index-url https://example.com": "--index-url is not for a job to say",
    "--extra-index-url=https://example.com": "--extra-index-url is not for a job to say",
    "-i https://example.com": "-i is not for a job to say",
    "--find-links /wheels": "--find-links is not for a job to say",
    "--trusted-host example.com": "--trusted-host is not for a job to say",
    "./package": "names a file",
    "../package": "names a file",
    "/srv/package": "names a file",
    "~/package": "names a file",
    "package-1.0-py3-none-any.whl": "names a file",
    "name @ file:///srv/name": "names a file",
    "file:///srv/name": "names a file",
    "https://${TOKEN}@example.com/x.whl": "variable of the server",
    "http://169.254.169.254/x.whl": "own machine or network",
    "https://user:pass@127.0.0.1:8080/x.whl": "own machine or network",
    "git+https://localhost/x.git": "own machine or network",
    "name @ http://metadata.google.internal/x.whl": "own machine or network",
    "http://[::1]/x.whl": "own machine or network",
    "http://2130706433/x.whl": "own machine or network",
    "http://a@b@127.0.0.1/x.whl": "is not a requirement",
    "http://a\\@127.0.0.1/x.whl": "is not a requirement",
    "numpy; os_name == 'x'; more": "is not a requirement",
    "two words": "is not a requirement",
    "numpy=2": "is not a requirement",
    "numpy --global-option=x": "is not a requirement",
    "nu\x00mpy": "do not print",
    "x" * 501: "501 characters",
}


@pytest.mark.parametrize("line", GOOD)
def test_what_names_a_package_is_taken(line: str):
    assert faults([line]) == ()


@pytest.mark.parametrize(("line", "why"), BAD.items())
def test_what_would_lead_elsewhere_is_refused_with_a_sentence(line: str, why: str):
    [(number, sentence)] = faults([line])
    assert number == 0
    assert why in sentence
    assert sentence.endswith(".")


def test_every_violation_is_named_by_its_line():
    assert [number for number, _ in faults(["numpy", "-r x", "six", "./y"])] == [1, 3]


def test_too_many_lines_are_one_violation():
    [(_, sentence)] = faults(["six"] * (MOST_LINES + 1))
    assert f"at most {MOST_LINES}" in sentence


def test_the_same_wishes_in_another_order_or_with_comments_are_the_same():
    assert normal(["b==2", "a>=1   # why", "", "--pre", "b==2"]) == ("--pre", "a>=1", "b==2")


@given(st.lists(st.text(max_size=60), max_size=5))
def test_any_lines_at_all_get_an_answer_and_keep_it_when_normalised(lines: list[str]):
    wrong = faults(lines)
    assert len(wrong) <= len(lines)
    if not wrong:
        assert faults(normal(lines)) == ()
        assert normal(normal(lines)) == normal(lines)
