"""Parses the filter of AI Platform Training's list of jobs, as its documents write it, into a Condition.

    jobId:census*        jobId:rnn* AND state:FAILED        state=PREPARING        labels.team=vision

The tokens are translated to the language of `job_filter`: `jobId` becomes the display name, and the older
API's names of states become ours. Refusals use the older names again.
"""

from dataclasses import replace

from trainshed.core.errors import Invalid, Violation
from trainshed.core.jobs.job import JobState
from trainshed.core.query import Condition
from trainshed.dialects.ai_platform.job import STATES
from trainshed.wire.filter_tokens import Token, TokenKind, tokens
from trainshed.wire.job_filter import parse_tokens

_NAMES = {"jobId": "display_name", "job_id": "display_name"}
_STATES = {name: state.value for state, name in STATES.items()}


def parse_training_filter(text: str) -> Condition | None:
    """The condition; None where the filter is empty."""
    all_tokens = tokens(text)
    try:
        return parse_tokens([_translated(all_tokens, number) for number in range(len(all_tokens))])
    except Invalid as error:
        raise Invalid(
            tuple(Violation(v.field, _in_older_words(v.description)) for v in error.violations)
        ) from error


def _translated(all_tokens: list[Token], number: int) -> Token:
    token = all_tokens[number]
    before, two_before = all_tokens[max(0, number - 1)], all_tokens[max(0, number - 2)]
    follows = all_tokens[min(number + 1, len(all_tokens) - 1)]
    if token.kind is TokenKind.WORD and follows.kind is TokenKind.OPERATOR:
        return replace(token, text=_NAMES.get(token.text, token.text))
    if number and token.kind is TokenKind.OPERATOR and before.is_word("state") and token.text == ":":
        return replace(token, text="=")  # a job has one state: "has" means "equals"
    if number > 1 and before.kind is TokenKind.OPERATOR and two_before.is_word("state"):
        return replace(token, text=_STATES.get(token.text, token.text))
    return token


def _in_older_words(sentence: str) -> str:
    return sentence.replace("display_name", "jobId").replace(JobState.PENDING, STATES[JobState.PENDING])
