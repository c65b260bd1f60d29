"""The restart rule by itself: what an exit means, and how long to wait."""

import pytest

from tests.builders import KILLED, LOST, a_rule, seconds
from trainshed.core.jobs.job import RestartRule
from trainshed.core.jobs.replica import Exit
from trainshed.core.jobs.restart import Meaning, backoff, meaning


def test_the_default_budgets_are_five_restarts_and_three_retries():
    assert (RestartRule().replica_restarts, RestartRule().job_retries) == (5, 3)


def test_an_exit_of_zero_is_done():
    assert meaning(Exit(code=0), a_rule()) is Meaning.DONE


@pytest.mark.parametrize("code", [1, 2, 126, 127, 128])
def test_an_exit_of_1_to_128_is_the_programs_own_failure(code: int):
    assert meaning(Exit(code=code), a_rule()) is Meaning.OWN_FAILURE


@pytest.mark.parametrize("code", [129, 137, 143, 255])
def test_an_exit_of_129_to_255_came_from_outside(code: int):
    assert meaning(Exit(code=code), a_rule()) is Meaning.INTERRUPTED


@pytest.mark.parametrize("end", [KILLED, Exit(signal=15), Exit(signal=11), LOST])
def test_a_signal_or_a_loss_came_from_outside(end: Exit):
    assert meaning(end, a_rule()) is Meaning.INTERRUPTED


@pytest.mark.parametrize("end", [KILLED, Exit(code=137)])
def test_one_that_was_over_its_own_limit_failed_by_itself(end: Exit):
    assert meaning(end, a_rule(), over_limit=True) is Meaning.OWN_FAILURE


def test_one_that_was_over_its_own_limit_is_tried_again_where_every_failure_is():
    assert meaning(KILLED, a_rule(codes=((1, 255),)), over_limit=True) is Meaning.INTERRUPTED


def test_one_that_had_no_room_for_its_output_was_interrupted_whatever_it_exited_with():
    assert meaning(Exit(code=1), a_rule(), no_room=True) is Meaning.INTERRUPTED
    assert meaning(Exit(code=0), a_rule(), no_room=True) is Meaning.DONE
    assert meaning(KILLED, a_rule(), over_limit=True, no_room=True) is Meaning.OWN_FAILURE


def test_a_job_may_name_other_codes_worth_a_retry():
    rule = a_rule(codes=((3, 3), (10, 12)))
    worth = [c for c in range(1, 256) if meaning(Exit(code=c), rule) is Meaning.INTERRUPTED]
    assert worth == [3, 10, 11, 12]


def test_back_off_doubles_up_to_its_most():
    waits = [backoff(RestartRule(), tries) for tries in range(8)]
    assert waits == [seconds(s) for s in (0.5, 1, 2, 4, 8, 16, 30, 30)]


def test_back_off_after_very_many_tries_is_still_its_most():
    assert backoff(RestartRule(), 10_000) == RestartRule().backoff_most


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (Exit(code=3), "exited with code 3"),
        (KILLED, "was killed by signal 9 (SIGKILL)"),
        (Exit(signal=99), "was killed by signal 99 (signal 99)"),
        (LOST, "was lost: it is gone and nobody saw how it ended"),
    ],
)
def test_an_exit_says_in_words_how_it_came(end: Exit, words: str):
    assert str(end) == words
