"""The filter of AI Platform Training's list of jobs, in the words its documents use, as a Condition.

    jobId:census*        jobId:rnn* AND state:FAILED        state=PREPARING        labels.team=vision

It is the language of `job_filter`: `jobId` is the job's name there, and its states have other names here.
"""

from dataclasses import replace

from trainshed.core.errors import Invalid, Violation
from trainshed.core.job import JobState
from trainshed.core.query import Condition
from trainshed.wire.filter_tokens import Token, TokenKind, tokens
from trainshed.wire.job_filter import parse_tokens
from trainshed.wire.legacy_job import STATES

_NAMES = {"jobId": "display_name", "job_id": "display_name"}
_STATES = {told: state.value for state, told in STATES.items()}


def parse_legacy_filter(text: str) -> Condition | None:
    """The condition, or None where the text asks for nothing."""
    found = tokens(text)
    try:
        return parse_tokens([_translated(found, number) for number in range(len(found))])
    except Invalid as error:
        raise Invalid(tuple(Violation(v.field, _told(v.description)) for v in error.violations)) from error


def _translated(found: list[Token], number: int) -> Token:
    token = found[number]
    before, two_before = found[max(0, number - 1)], found[max(0, number - 2)]
    follows = found[min(number + 1, len(found) - 1)]
    if token.kind is TokenKind.WORD and follows.kind is TokenKind.OPERATOR:
        return replace(token, text=_NAMES.get(token.text, token.text))
    if number and token.kind is TokenKind.OPERATOR and before.is_word("state") and token.text == ":":
        return replace(token, text="=")  # of a state, to have it is to be it
    if number > 1 and before.kind is TokenKind.OPERATOR and two_before.is_word("state"):
        return replace(token, text=_STATES.get(token.text, token.text))
    return token


def _told(sentence: str) -> str:
    return sentence.replace("display_name", "jobId").replace(JobState.PENDING, STATES[JobState.PENDING])
