"""Tokens of jobs: made from nothing but the job and the home's secret, and by nobody else."""

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainshed.identity.job_token import SignedJobTokens

JOB = "1794777072957917925"


@pytest.fixture
def tokens(tmp_path: Path) -> SignedJobTokens:
    return SignedJobTokens(tmp_path / "job-secret")


def test_a_token_is_that_of_its_job(tokens: SignedJobTokens) -> None:
    assert tokens.read(tokens.issue(JOB)) == JOB
    assert tokens.issue(JOB) != tokens.issue(JOB[:-1] + "0")


def test_another_start_of_the_same_home_knows_it(tokens: SignedJobTokens, tmp_path: Path) -> None:
    assert SignedJobTokens(tmp_path / "job-secret").read(tokens.issue(JOB)) == JOB


def test_another_home_does_not_know_it(tokens: SignedJobTokens, tmp_path: Path) -> None:
    assert SignedJobTokens(tmp_path / "other").read(tokens.issue(JOB)) is None


def test_the_secret_is_in_a_file_of_its_own_that_only_its_owner_reads(tmp_path: Path) -> None:
    tokens = SignedJobTokens(tmp_path / "job-secret")
    assert stat.S_IMODE((tmp_path / "job-secret").stat().st_mode) == 0o600
    assert (tmp_path / "job-secret").read_text() not in tokens.issue(JOB)


def test_a_token_that_is_cut_changed_or_given_to_another_job_is_none(tokens: SignedJobTokens) -> None:
    token = tokens.issue(JOB)
    for cut in range(len(token)):
        assert tokens.read(token[:cut]) is None
    for at in range(len(token)):
        assert tokens.read(token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]) is None
    assert tokens.read(token.replace(JOB, "1")) is None
    assert tokens.read(token + "A") is None
    assert tokens.read(token.removeprefix("job.")) is None


@given(st.text())
def test_no_text_is_a_token_by_chance(text: str) -> None:
    tokens = _shared()
    assert tokens.read(text) is None
    assert tokens.read(f"job.{text}") is None
    assert tokens.read(f"job.{JOB}.{text}") is None


_made: list[SignedJobTokens] = []


def _shared() -> SignedJobTokens:
    if not _made:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            _made.append(SignedJobTokens(Path(folder) / "job-secret"))
    return _made[0]
