"""The judge: history, the programs' own notes and the final state in; every broken promise out. Pure.

acknowledged is kept     nothing is twice     an end is true and stays     nothing is left behind
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.history import Fact
from tests.chaos.kinds import CANCELLED, FAILED, KINDS, SUCCEEDED, Kind
from tests.chaos.notes import Note
from tests.live import FINAL

QUEUED, PENDING, RUNNING, CANCELLING = (
    f"JOB_STATE_{word}" for word in ("QUEUED", "PENDING", "RUNNING", "CANCELLING")
)
# What may be seen after what. Steps between two looks are not seen, so this is the transitive closure.
MAY_FOLLOW = {
    QUEUED: {QUEUED, PENDING, RUNNING, CANCELLING, *FINAL},
    PENDING: {PENDING, RUNNING, CANCELLING, *FINAL},
    RUNNING: {PENDING, RUNNING, CANCELLING, *FINAL},
    CANCELLING: {CANCELLING, *FINAL},
    SUCCEEDED: {SUCCEEDED},
    FAILED: {FAILED},
    CANCELLED: {CANCELLED},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Final:
    """What there is once everything has settled."""

    jobs: Sequence[dict[str, Any]] = ()  # as listed
    lines: dict[str, list[tuple[str, str]]] = field(default_factory=dict[str, list[tuple[str, str]]])
    left: Sequence[str] = ()  # processes, directories, cgroups, slots: each a sentence


@dataclass(frozen=True, slots=True)
class Case:
    """All that is known, by job."""

    facts: Sequence[Fact]
    notes: Sequence[Note]
    final: Final

    def of(self, what: str, outcome: str = "") -> list[Fact]:
        return [f for f in self.facts if f.what == what and outcome in ("", f.outcome)]

    def kinds(self) -> dict[str, Kind]:
        return {f.job: KINDS[f.data["kind"]] for f in self.of("kind")}

    def states(self) -> dict[str, dict[str, Any]]:
        return {identity(job): job for job in self.final.jobs}

    def asked(self, what: str) -> set[str]:
        return {f.job for f in self.of(what)}


def identity(job: dict[str, Any]) -> str:
    return str(job["name"].rsplit("/", 1)[-1])


def check(facts: Sequence[Fact], notes: Sequence[Note], final: Final) -> list[str]:
    """Every broken promise, as a sentence. None: the run was good."""
    case = Case(facts, notes, final)
    return [sentence for rule in RULES for sentence in rule(case)]


def acknowledged_jobs_exist_once(case: Case) -> Iterator[str]:
    by_key: dict[str, set[str]] = defaultdict(set)
    for fact in case.of("submit"):
        if fact.outcome == "refused":
            yield f"submit with key {fact.key} was refused: {fact.data}"
        if fact.outcome == "ok":
            by_key[fact.key].add(fact.job)
    gone = case.asked("delete")
    for key, jobs in by_key.items():
        if len(jobs) > 1 and not jobs & gone:
            yield f"key {key} was acknowledged as different jobs: {sorted(jobs)}"
    there = Counter(identity(job) for job in case.final.jobs)
    acknowledged = {job for jobs in by_key.values() for job in jobs}
    for job in acknowledged - gone:
        if there[job] != 1:
            yield f"job {job} was acknowledged and is there {there[job]} times"
    for job in set(there) - acknowledged:
        yield f"job {job} is there, and nobody was ever told of it"


def deleted_jobs_are_gone(case: Case) -> Iterator[str]:
    states = case.states()
    tries = Counter(f.job for f in case.of("delete"))
    for fact in case.of("delete"):
        job = fact.job
        if fact.outcome == "ok" and (job in states or case.final.lines.get(job)):
            yield f"job {job} was deleted and is still there"
        if fact.outcome == "refused" and not (fact.data["status"] == 404 and tries[job] > 1):
            yield f"deleting job {job}, seen as ended, was refused: {fact.data}"


def lists_are_complete(case: Case) -> Iterator[str]:
    told = [(f.job, f.at) for f in case.of("submit", "ok")]
    doomed = {f.job: f.begun for f in reversed(case.of("delete"))}
    gone = {f.job: f.at for f in case.of("delete", "ok")}
    for listing in case.of("list", "refused"):
        yield f"a list was refused: {listing.data}"
    for listing in case.of("list", "ok"):
        seen = Counter(job for job, _ in listing.data["jobs"])
        for job, count in seen.items():
            if count > 1:
                yield f"job {job} was listed {count} times at once"
            if gone.get(job, listing.begun) < listing.begun:
                yield f"job {job} was listed after it had been deleted"
        for job, at in told:
            if at < listing.begun and doomed.get(job, listing.at) >= listing.at and not seen[job]:
                yield f"job {job} had been acknowledged and was missing from a list"


def states_only_move_on(case: Case) -> Iterator[str]:
    before: dict[str, str] = {}
    last = [(job, str(body["state"])) for job, body in case.states().items()]
    for seen in [*(f.data["jobs"] for f in case.of("list", "ok")), last]:
        for job, state in seen:
            if state not in MAY_FOLLOW[before.get(job, QUEUED)]:
                yield f"job {job} was {before[job]} and then {state}"
            before[job] = state


def nothing_runs_twice(case: Case) -> Iterator[str]:
    starts = Counter(note.run for note in case.notes if note.what == "start")
    for run, count in starts.items():
        if count > 1:
            yield f"run {run} was started {count} times"
    for note in case.notes:
        if note.what == "twice":
            yield f"run {note.run} was started while it lived"
        if note.what == "together":
            yield f"run {note.run} was started while {note.other} of the same job lived"
    known = {f.job for f in case.of("submit", "ok")}
    for job in {note.job for note in case.notes} - known:
        yield f"job {job} ran, and nobody was ever told of it"


def runs_are_those_expected(case: Case) -> Iterator[str]:
    """Nothing is restarted without need: a server's death is no reason."""
    runs: dict[tuple[str, str], set[tuple[int, int]]] = defaultdict(set)
    for note in case.notes:
        if note.what == "start":
            runs[note.job, note.replica].add((note.attempt, note.restart))
    touched, cancelled = case.asked("kill-run"), case.asked("cancel")
    for job, kind in case.kinds().items():
        replicas = [f"{pool}.{i}" for pool, (_, count) in enumerate(kind.pools) for i in range(count)]
        for replica in replicas:
            found = runs.pop((job, replica), set())
            if not touched & {job}:
                if found - kind.runs:
                    yield f"job {job} ({kind.name}): {replica} had runs {sorted(found)}, which nobody needed"
                if kind.exactly and job not in cancelled and found != kind.runs:
                    what = f"{sorted(found)}, not {sorted(kind.runs)}"
                    yield f"job {job} ({kind.name}): {replica} had runs {what}"
            for attempt, restart in found:
                if restart and (attempt, restart - 1) not in found:
                    yield f"job {job}: {replica} skipped a restart before {restart} of attempt {attempt}"
    for job, replica in runs:
        if job in case.kinds():
            yield f"job {job} has no replica {replica}, and it ran"


def ends_are_true(case: Case) -> Iterator[str]:
    kinds, states = case.kinds(), case.states()
    cancels: dict[str, int] = {}
    for fact in case.of("cancel", "ok"):
        cancels[fact.job] = min(fact.at, cancels.get(fact.job, fact.at))
    asked = case.asked("cancel")
    for fact in case.of("cancel", "refused"):
        if fact.data["status"] not in (400, 404):
            yield f"cancelling job {fact.job} was refused: {fact.data}"
    for job, body in states.items():
        kind, state = kinds.get(job), body["state"]
        if kind is None:
            continue
        if state not in FINAL:
            yield f"job {job} ({kind.name}) never ended: it is {state}"
        elif job in cancels and state != CANCELLED:
            if not _had_ended(case, job, state, cancels[job]):
                yield f"job {job} ({kind.name}) was cancelled before it ended and became {state}"
        elif job not in asked and state != kind.state:
            yield f"job {job} ({kind.name}) became {state}, not {kind.state}: {body.get('error')}"
        told = body.get("error", {}).get("message", "")
        lost = job in case.asked("kill-run") and "was lost" in told  # its keeper was killed with it
        if state == FAILED and kind.message not in told and not lost:
            yield f"job {job} ({kind.name}) failed and says: {body.get('error')}"


def _had_ended(case: Case, job: str, state: str, at: int) -> bool:
    """Whether what that state needs had happened before the cancel was acknowledged."""
    ends = [note for note in case.notes if note.what == "end" and note.job == job and note.at < at]
    if state == SUCCEEDED:
        return any(note.code == 0 and note.replica == "0.0" for note in ends)
    return any(note.code != 0 for note in ends)


def lines_are_there_once(case: Case) -> Iterator[str]:
    started = {note.run for note in case.notes if note.what == "start"}
    printed = {note.run: note.lines for note in case.notes if note.what == "end"}
    for job in case.states():
        numbers: dict[str, list[int]] = defaultdict(list)
        for _, text in case.final.lines.get(job, []):
            run, _, number = text.rpartition(" ")
            if run not in started or not number.isdigit():
                yield f"job {job} has a line nobody printed: {text!r}"
            else:
                numbers[run].append(int(number))
        for run in (run for run in started if run.rsplit(".", 4)[0] == job):
            found = sorted(numbers[run])
            if found != list(range(len(found))) or len(found) < printed.get(run, 0):
                yield f"run {run} printed lines 0 to {printed.get(run, '?')}; there are {numbers[run]}"
            # What a program writes to one of its streams is in order; between the two there is none.
            for of_stream in ([n for n in numbers[run] if (n % 5 == 4) is err] for err in (False, True)):
                if of_stream != sorted(of_stream):
                    yield f"run {run} has its lines in the order {of_stream}"


def followers_saw_the_same(case: Case) -> Iterator[str]:
    gone = case.asked("delete")
    for fact in case.of("follow"):
        lines = [tuple(line) for line in fact.data["lines"]]
        if fact.job in gone or fact.job not in case.states():
            continue
        all_lines = case.final.lines.get(fact.job, [])
        if lines != all_lines[: len(lines)]:
            yield f"a follower of job {fact.job} saw {lines}, and later it had {all_lines}"
        if fact.outcome == "whole" and len(lines) < len(all_lines):
            yield f"a follower of job {fact.job} was sent home after {len(lines)} of {len(all_lines)} lines"


def nothing_is_left(case: Case) -> Iterator[str]:
    yield from case.final.left


Rule = Callable[[Case], Iterator[str]]
RULES: tuple[Rule, ...] = (
    acknowledged_jobs_exist_once,
    deleted_jobs_are_gone,
    lists_are_complete,
    states_only_move_on,
    nothing_runs_twice,
    runs_are_those_expected,
    ends_are_true,
    lines_are_there_once,
    followers_saw_the_same,
    nothing_is_left,
)
