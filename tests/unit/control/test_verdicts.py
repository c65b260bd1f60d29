"""How verdicts come into what is written: over real decisions, with a log of our own."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from tests.builders import (
    a_job,
    a_node,
    a_pool,
    a_rule,
    admitted,
    all_alive,
    at,
    ended,
    key,
    running,
    with_replica,
)
from tests.unit.control.engine import Engine, NoLogs
from tests.unit.control.stepped import SteppedClock, in_stepped_time
from trainshed.control.verdicts import Reporter
from trainshed.core.errors import Unavailable
from trainshed.core.event import Reason
from trainshed.core.jobs.decide import Plan, decide
from trainshed.core.jobs.job import Job, JobState, RestartRule
from trainshed.core.jobs.replica import Exit, Observation, Replica
from trainshed.core.jobs.verdict import Cause, Verdict
from trainshed.core.jobs.withhold import withhold
from trainshed.core.logs import Line, LogQuery, OutputStream
from trainshed.core.view import Storing
from trainshed.data.verdict_rules import load_rules
from trainshed.testing.backend import FakeMachine

RAISED = ("Traceback (most recent call last):", '  File "a.py", line 1, in <module>', "KeyError: 'x'")
ONCE = a_rule(disabled=True)


@dataclass(slots=True)
class ToldLogs(NoLogs):
    """A log in which each task's error stream has these lines."""

    told: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    asked: list[LogQuery] = field(default_factory=list[LogQuery])
    broken: bool = False
    room: bool = True

    def has_room(self) -> bool:
        return self.room

    async def read(self, job: str, query: LogQuery) -> tuple[Line, ...]:
        self.asked.append(query)
        if self.broken:
            raise Unavailable("The disk is gone.")
        texts = self.told.get(query.task or "", ()) if query.stream is OutputStream.STDERR else ()
        lines = [Line(job, 0, 0, 0, OutputStream.STDERR, at, at, text) for at, text in enumerate(texts)]
        return tuple(reversed(lines))[: query.limit]


async def explained(job: Job, seen: list[Observation], logs: ToldLogs) -> Plan:
    return await Reporter(logs, load_rules).explain(job, decide(job, seen, at(10)), seen)


def verdict_of(plan: Plan) -> Verdict:
    assert plan.status.state is JobState.FAILED
    assert plan.status.failure is not None
    assert plan.status.failure.verdict is not None
    return plan.status.failure.verdict


async def test_a_failed_job_has_its_verdict_in_status_and_event():
    job = running(a_job())
    plan = await explained(job, [ended(key(job), 1)], ToldLogs(told={"workerpool0-0": RAISED}))
    verdict = verdict_of(plan)
    assert (verdict.cause, verdict.summary, verdict.lines) == (Cause.USER_EXCEPTION, "KeyError: 'x'", RAISED)
    failure = plan.status.failure
    assert failure is not None
    assert failure.message.startswith("workerpool0-0 exited with code 1")
    assert "KeyError" not in failure.message
    assert plan.events[-1].message == f"{failure.message} {verdict.sentence}"


async def test_the_replica_that_ended_first_is_blamed_whoever_ended_the_job():
    job = running(a_job(a_pool(), a_pool(2), rule=ONCE))
    seen = [
        ended(key(job), 1, at(3)),
        ended(key(job, 1, 0), Exit(signal=11), at(2)),
        ended(key(job, 1, 1), Exit(signal=15), at(4)),
    ]
    plan = await explained(job, seen, ToldLogs(told={"workerpool0-0": RAISED}))
    verdict = verdict_of(plan)
    assert (verdict.task, verdict.cause) == ("workerpool1-0", Cause.SEGMENTATION_FAULT)
    assert plan.status.failure is not None
    assert plan.status.failure.task == "workerpool0-0"


async def test_a_log_that_cannot_be_read_makes_a_poorer_verdict_not_a_missing_one():
    job = running(a_job())
    verdict = verdict_of(await explained(job, [ended(key(job), 1)], ToldLogs(broken=True)))
    assert (verdict.cause, verdict.lines) == (Cause.PROGRAM_EXIT, ())


async def test_only_the_run_that_failed_is_read_about():
    job = running(a_job(rule=a_rule(codes=((1, 255),), restarts=2, retries=0)), attempt=0, run=2)
    logs = ToldLogs()
    await explained(job, [ended(key(job, run=2), 1)], logs)
    assert {(q.attempt, q.task, q.newest_first) for q in logs.asked} == {(0, "workerpool0-0", True)}
    since = logs.asked[0].since_ns
    assert since is not None
    assert at(-1).timestamp() * 1e9 < since < at(0).timestamp() * 1e9
    assert max(q.limit for q in logs.asked) <= 300


async def test_a_job_that_does_not_fail_costs_no_look_at_its_log():
    job = running(a_job())
    logs = ToldLogs(told={"workerpool0-0": RAISED})
    for seen in (all_alive(job), [ended(key(job), 0)]):
        before = decide(job, seen, at(10))
        assert await Reporter(logs, load_rules).explain(job, before, seen) is before
    assert logs.asked == []


async def test_a_restart_says_why_where_that_is_more_than_the_signal():
    job = running(a_job(rule=RestartRule()))
    killed = ended(key(job), Exit(signal=9))
    logs = ToldLogs(told={"workerpool0-0": RAISED})
    plain = await explained(job, [killed], logs)
    assert plain.events == decide(job, [killed], at(10)).events
    starved = replace(killed, out_of_memory="the kernel killed it")
    (told,) = (await explained(job, [starved], logs)).events
    assert told.reason is Reason.REPLICA_RESTARTED
    assert told.message.endswith("HOST_OUT_OF_MEMORY: the kernel killed it")


async def test_a_new_attempt_says_what_ended_the_one_before():
    job = running(a_job(rule=a_rule(codes=((1, 255),), restarts=0)))
    told = (await explained(job, [ended(key(job), 1)], ToldLogs(told={"workerpool0-0": RAISED}))).events
    assert [event.reason for event in told] == [Reason.JOB_RETRIED]
    assert told[0].message.endswith("USER_EXCEPTION: KeyError: 'x'")


async def test_a_replica_left_behind_points_at_the_one_that_was_restarted():
    job = running(a_job(a_pool(), a_pool()))
    job = with_replica(job, Replica(pool=1, index=0, run=1, not_before=at(99)))
    lost = (*RAISED[:2], "RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [::1]:4")
    seen = [ended(key(job), 1)]
    verdict = verdict_of(await explained(job, seen, ToldLogs(told={"workerpool0-0": lost})))
    assert verdict.cause is Cause.PEER_LOST
    assert verdict.advice.endswith("Restarted before that: workerpool1-0.")


async def test_a_job_that_never_began_has_a_verdict_too():
    job = a_job()
    job = replace(
        job, spec=replace(job.spec, scheduling=replace(job.spec.scheduling, max_wait=at(5) - at(0)))
    )
    logs = ToldLogs()
    assert verdict_of(await explained(job, [], logs)).cause is Cause.NEVER_ADMITTED
    assert logs.asked == []


@in_stepped_time
async def test_the_end_and_its_verdict_are_written_together():
    engine = Engine(FakeMachine(clock=SteppedClock(), nodes=(a_node(),)))
    engine.loop.logs = ToldLogs(told={"workerpool0-0": RAISED})
    engine.loop.rules = load_rules
    rung: list[Job] = []
    engine.loop.ring = rung.append
    job = await engine.store.insert(admitted(a_job(replace(a_pool(), command=("exit", "1")))), ())
    await engine.loop.turn(job.id)
    (last,) = (one for one in rung if one.is_final)
    assert last.status.failure is not None
    assert last.status.failure.verdict is not None
    assert last.status.failure.verdict.cause is Cause.USER_EXCEPTION


async def test_of_outputs_that_were_lost_the_programs_last_words_say_nothing():
    job, logs = running(a_job()), ToldLogs(told={"workerpool0-0": RAISED})
    seen = [ended(key(job), 0)]
    plan = withhold(decide(job, seen, at(10)), Storing(fault="There is no bucket."), at(10))
    plan = await Reporter(logs, load_rules).explain(job, plan, seen)
    verdict = verdict_of(plan)
    assert (verdict.cause, verdict.lines, verdict.task) == (Cause.OUTPUTS_LOST, (), "")
    assert plan.events[-1].message.count("here is no bucket") == 1
    assert verdict.sentence in plan.events[-1].message


async def test_a_verdict_does_not_repeat_the_jobs_token():
    job, token = running(a_job()), f"job.1.{'q' * 43}"
    said = (*RAISED[:2], f"Forbidden: 403 POST http://127.0.0.1:8080/t/{token}/b/x: no")
    plan = await explained(job, [ended(key(job), 1)], ToldLogs(told={"workerpool0-0": said}))
    assert verdict_of(plan).summary == "Forbidden: 403 POST http://127.0.0.1:8080/t/job.1.…/b/x: no"
    assert token not in repr(plan)


@pytest.mark.parametrize("room", [True, False])
async def test_a_program_that_fails_without_room_for_its_output_is_restarted_and_the_event_says_why(
    room: bool,
):
    job, logs = running(a_job()), ToldLogs(room=room)
    seen = await Reporter(logs, load_rules).with_last_words(job, (ended(key(job), 1),))
    plan = await explained(job, list(seen), logs)
    if room:
        assert plan.status.state is JobState.FAILED
    else:
        assert plan.status.state is JobState.RUNNING
        assert [event.reason for event in plan.events] == [Reason.REPLICA_RESTARTED]
        assert "DISK_FULL: the disk that holds its output was full" in plan.events[0].message


async def test_a_job_without_retries_that_had_no_room_for_its_output_says_so():
    job, logs = running(a_job(rule=ONCE)), ToldLogs(room=False)
    seen = await Reporter(logs, load_rules).with_last_words(job, (ended(key(job), 1),))
    verdict = verdict_of(await explained(job, list(seen), logs))
    assert (verdict.cause, verdict.retry_may_help) == (Cause.DISK_FULL, True)
