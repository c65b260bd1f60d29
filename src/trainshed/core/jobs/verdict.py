"""A verdict: why a job failed, judged by how a replica ended and by its last output. Pure.

`control/verdicts.py` calls `judge`. The rules are data (data/verdicts.toml); this module applies them. A
verdict never says more than the evidence: a kill is put down to memory only where the kernel counted one.
Where nothing is known the cause is UNKNOWN, and the verdict shows the last lines.
"""

import re
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from trainshed.core.event import Reason
from trainshed.core.jobs.last_words import (
    MOST_LINES,
    Chain,
    find_chains,
    lines_that_matter,
    shown,
    spoken,
)
from trainshed.core.jobs.replica import Exit, signal_name

NEWEST = 12  # lines that are searched where there is no traceback
FURTHER = 60  # ... and those that are searched by rules with `anywhere`


class Cause(StrEnum):
    """All classes of causes. Scripts may rely on these words."""

    HOST_OUT_OF_MEMORY = "HOST_OUT_OF_MEMORY"
    PROCESS_LIMIT = "PROCESS_LIMIT"
    CUDA_OUT_OF_MEMORY = "CUDA_OUT_OF_MEMORY"
    CUDA_ERROR = "CUDA_ERROR"
    IMPORT_ERROR = "IMPORT_ERROR"
    SYNTAX_ERROR = "SYNTAX_ERROR"
    BAD_ARGUMENTS = "BAD_ARGUMENTS"
    COMMAND_NOT_FOUND = "COMMAND_NOT_FOUND"
    MISSING_FILE = "MISSING_FILE"
    PERMISSION = "PERMISSION"
    DISK_FULL = "DISK_FULL"
    PORT_IN_USE = "PORT_IN_USE"
    NETWORK_TIMEOUT = "NETWORK_TIMEOUT"
    NETWORK_ERROR = "NETWORK_ERROR"
    COLLECTIVE_TIMEOUT = "COLLECTIVE_TIMEOUT"
    PEER_LOST = "PEER_LOST"
    SEGMENTATION_FAULT = "SEGMENTATION_FAULT"
    ABORTED = "ABORTED"
    KILLED = "KILLED"
    LOST = "LOST"
    USER_EXCEPTION = "USER_EXCEPTION"
    PROGRAM_EXIT = "PROGRAM_EXIT"
    JOB_TIMED_OUT = "JOB_TIMED_OUT"
    NEVER_ADMITTED = "NEVER_ADMITTED"
    HUNG = "HUNG"
    NO_SUCH_PACKAGE = "NO_SUCH_PACKAGE"
    NO_SUCH_IMAGE = "NO_SUCH_IMAGE"
    CONFLICTING_REQUIREMENTS = "CONFLICTING_REQUIREMENTS"
    BUILD_FAILED = "BUILD_FAILED"
    OUTPUTS_LOST = "OUTPUTS_LOST"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    cause: Cause
    task: str = ""  # the replica that failed first
    ending: str = ""  # how it ended, in words
    summary: str = ""  # one line: the exception, or the most similar line
    lines: tuple[str, ...] = ()
    retry_may_help: bool = False
    advice: str = ""

    @property
    def sentence(self) -> str:
        """The verdict on one line, to follow a sentence that says how it ended."""
        if self.summary == f"it {self.ending}":
            return f"{self.cause.value}: {self.advice}"
        return f"{self.cause.value}: {_stopped(self.summary)} {self.advice}".strip()

    @property
    def text(self) -> str:
        """The whole verdict, for people."""
        who = f"Failed first: {self.task}, which {self.ending}.\n" if self.task else ""
        retry = "A retry may help." if self.retry_may_help else "A retry would most likely fail the same way."
        head = f"Cause: {self.cause.value}: {self.summary}\n{who}{self.advice} {retry}"
        return "\n".join([head, *(f"  {line}" for line in self.lines)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One row of the data file: its conditions, and the verdict it gives."""

    cause: Cause
    advice: str
    retry: bool
    summary: str = ""
    signals: frozenset[int] = frozenset()  # one of these killed it; also as a shell's exit code, 128 + number
    codes: frozenset[int] = frozenset()
    reasons: frozenset[Reason] = frozenset()
    lost: bool = False
    exited: bool = False  # with any code
    abrupt: bool = False  # the program could not say why: its output is not taken for the reason
    out_of_memory: bool = False  # only where the kernel counted a kill for memory
    process_limit: bool = False  # only where it had too many processes, or was refused one
    disk_full: bool = False  # only where it was killed for that
    no_room: bool = False  # only where the disk of its output was full when it ended
    no_gcs: bool = False  # only where it had no /gcs
    without_gpus: bool = False  # only where it asked for GPUs and was given none
    traceback: bool = False  # only where there is one
    pattern: re.Pattern[str] | None = None
    anywhere: bool = False  # without a traceback: search further back as well


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    ends: tuple[Rule, ...] = ()  # decided by how the run ended
    words: tuple[Rule, ...] = ()  # decided by the output
    rest: tuple[Rule, ...] = ()  # tried last, where no rule for the output matches
    wrappers: re.Pattern[str] | None = None  # exceptions that only wrap another one, printed before


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The input of a verdict. The lines are the newest there are, oldest first."""

    reason: Reason
    exit: Exit | None = None
    task: str = ""
    stdout: Sequence[str] = ()
    stderr: Sequence[str] = ()
    out_of_memory: str = ""  # a sentence, where the kernel counted a kill for memory during the run
    process_limit: str = ""  # a sentence, where it had too many processes, or was refused one
    no_gcs: str = ""  # why it had no /gcs, where it had none
    disk_full: str = ""  # a sentence, where it was killed because its disk was full
    no_room: bool = False  # the disk of its output was full when it ended
    without_gpus: bool = False  # it asked for GPUs and got none


@dataclass(frozen=True, slots=True)
class _ParsedOutput:
    """The output of the program, parsed."""

    stderr: list[str]
    stdout: list[str]
    chain: Chain

    def places(self) -> Iterator[str]:
        """The texts that may have the reason, the likeliest first."""
        if self.chain:
            yield from (raised.text for raised in reversed(self.chain))
        else:
            yield from reversed(self.stderr[-NEWEST:])
            yield from reversed(self.stdout[-NEWEST:])


def judge(evidence: Evidence, rules: Rules) -> Verdict:
    output = _parse_output(evidence, rules)
    rule, line = _decide(evidence, output, rules)
    if rule.abrupt:
        output = replace(output, chain=())
    return Verdict(
        cause=rule.cause,
        task=evidence.task,
        ending=in_words(evidence.exit) if evidence.exit is not None else "",
        summary=shown(_summary(evidence, output, rule, line)),
        lines=_lines(output, line),
        retry_may_help=rule.retry,
        advice=rule.advice,
    )


def in_words(end: Exit) -> str:
    """How a run ended, with what the number means."""
    if end.signal is not None:
        return f"was killed by signal {_named(end.signal)}"
    if end.code is not None and (number := _signal_of(end)) is not None:
        return f"exited with code {end.code}, as shells say of a program killed by signal {_named(number)}"
    return str(end)


def _named(number: int) -> str:
    meaning = signal.strsignal(number) if 0 < number < signal.NSIG else None
    return f"{number} ({signal_name(number)}{f', {meaning.lower()}' if meaning else ''})"


def _signal_of(end: Exit | None) -> int | None:
    if end is None or end.signal is not None:
        return end.signal if end else None
    return end.code - 128 if end.code is not None and 128 < end.code <= 160 else None


def _parse_output(evidence: Evidence, rules: Rules) -> _ParsedOutput:
    stderr, stdout = spoken(evidence.stderr), spoken(evidence.stdout)
    chain: Chain = ()
    for item in (stderr, stdout):
        if chains := find_chains(item):
            own = [c for c in chains if not (rules.wrappers and rules.wrappers.search(c[-1].line))]
            chain = (own or chains)[-1]
            break
    return _ParsedOutput([text for text in stderr if text], [text for text in stdout if text], chain)


def _decide(evidence: Evidence, output: _ParsedOutput, rules: Rules) -> tuple[Rule, str]:
    """The rule that matches, and the line it matched in; empty where it needs none."""
    for rule in rules.ends:
        if _ends_so(rule, evidence, output):
            return rule, ""
    possible = [rule for rule in rules.words if _ends_so(rule, evidence, output)]
    for place in output.places():
        for rule in possible:
            if rule.pattern and (match := rule.pattern.search(place)):
                return rule, _line_of(place, match.start())
    everything = "" if output.chain else "\n".join((*output.stdout[-FURTHER:], *output.stderr[-FURTHER:]))
    for rule in possible:
        if everything and rule.anywhere and rule.pattern and (match := rule.pattern.search(everything)):
            return rule, _line_of(everything, match.start())
    for rule in rules.rest:
        if _ends_so(rule, evidence, output):
            return rule, ""
    return Rule(cause=Cause.UNKNOWN, advice="Its log may tell more.", retry=False), ""


def _ends_so(rule: Rule, evidence: Evidence, output: _ParsedOutput) -> bool:
    """Whether all conditions of the rule but its pattern are met."""
    end = evidence.exit
    if rule.reasons and evidence.reason not in rule.reasons:
        return False
    if rule.lost and (end is None or not end.lost):
        return False
    if rule.exited and (end is None or end.code is None):
        return False
    if rule.out_of_memory and not evidence.out_of_memory:
        return False
    if rule.process_limit and not evidence.process_limit:
        return False
    if rule.disk_full and not evidence.disk_full:
        return False
    if rule.no_room and not evidence.no_room:
        return False
    if rule.no_gcs and not evidence.no_gcs:
        return False
    if rule.without_gpus and not evidence.without_gpus:
        return False
    if rule.traceback and not output.chain:
        return False
    if rule.signals or rule.codes:
        code = end.code if end else None
        return _signal_of(end) in rule.signals or (code is not None and code in rule.codes)
    return True


def _summary(evidence: Evidence, output: _ParsedOutput, rule: Rule, line: str) -> str:
    if rule.out_of_memory:
        return evidence.out_of_memory
    if rule.process_limit:
        return evidence.process_limit
    if rule.disk_full:
        return evidence.disk_full
    if rule.no_gcs:
        return f"/gcs is not available on this machine because {evidence.no_gcs}"
    if rule.summary:
        return rule.summary
    if output.chain and not line:
        return output.chain[-1].line
    if not line and evidence.exit is not None and (rule.abrupt or evidence.exit.code is None):
        return f"it {in_words(evidence.exit)}"
    last = line or next(reversed(output.stderr), "") or next(reversed(output.stdout), "")
    return last.strip() or (f"it {in_words(evidence.exit)} and said nothing" if evidence.exit else "")


def _lines(output: _ParsedOutput, line: str) -> tuple[str, ...]:
    if output.chain:
        lines = lines_that_matter(output.chain)
    else:
        lines = tuple(map(shown, (output.stderr or output.stdout)[-MOST_LINES:]))
    first = shown(line)
    if not line or any(first.strip() in item for item in lines):
        return lines
    return (first, *lines[1 - MOST_LINES :])


def _line_of(text: str, at: int) -> str:
    end = text.find("\n", at)
    return text[text.rfind("\n", 0, at) + 1 : len(text) if end < 0 else end].lstrip(" |+")


def _stopped(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
