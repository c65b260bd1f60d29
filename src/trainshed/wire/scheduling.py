"""The `scheduling` part of a job: limits, the restart rule and the hang watch. For the job parsers.

`priority`, `gracePeriod`, `drainDuration`, `successPools`, `holdOnFailure`, `restartRule` and `hangWatch` are
ours. Answers have them only where they differ from the default, so that a job without them looks exactly like
Google's.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from trainshed.core.jobs.hang import HangPolicy, HangRule
from trainshed.core.jobs.job import RestartRule, Scheduling
from trainshed.wire import enums, job_schema
from trainshed.wire.faults import Faults
from trainshed.wire.scalars import duration_text

LONGEST = timedelta(days=366)
LONGEST_GRACE = timedelta(seconds=600)
LONGEST_DRAIN = timedelta(days=1)
LONGEST_HOLD = timedelta(days=7)
LONGEST_BACKOFF = timedelta(hours=1)
MOST_RETRIES = 1000
FLEX_WAIT = timedelta(days=1)  # of a job with FLEX_START that says nothing else, as at Google
SHORTEST_WATCH = timedelta(seconds=1)
MOST_RANGES = 50

_NONE = timedelta()
_RULE = RestartRule()
_WATCH = HangRule()
_DEFAULT = Scheduling()


def parse_scheduling(given: job_schema.SchedulingSpec | None, path: str, faults: Faults) -> Scheduling:
    if given is None:
        return _DEFAULT

    def limited(name: str, most: timedelta, default: timedelta) -> timedelta:
        length: timedelta | None = getattr(given, name)
        if length is None:
            return default
        _within(length, most, f"{path}.{name}", faults)
        return length

    # For Google's two limits zero means absent; for ours it means zero.
    timeout = limited("timeout", LONGEST, _NONE) or _DEFAULT.timeout
    max_wait = limited("max_wait_duration", LONGEST, FLEX_WAIT if given.strategy == "FLEX_START" else _NONE)
    return Scheduling(
        timeout=timeout,
        max_wait=max_wait or None,
        strategy=given.strategy,
        priority=given.priority,
        grace=limited("grace_period", LONGEST_GRACE, _DEFAULT.grace),
        drain=limited("drain_duration", LONGEST_DRAIN, _DEFAULT.drain),
        success_pools=tuple(sorted(set(given.success_pools))),
        hold=limited("hold_on_failure", LONGEST_HOLD, _NONE),
        restart=_parse_rule(given, f"{path}.restart_rule", faults),
        hang=_parse_watch(given.hang_watch, f"{path}.hang_watch", faults),
    )


def _parse_rule(given: job_schema.SchedulingSpec, path: str, faults: Faults) -> RestartRule:
    rule = given.restart_rule or job_schema.RestartRuleSpec()
    for name in ("max_replica_restarts", "max_job_retries"):
        count: int | None = getattr(rule, name)
        if count is not None and not 0 <= count <= MOST_RETRIES:
            faults.add(f"{path}.{name}", f"must be between 0 and {MOST_RETRIES}, not {count}.")
    if len(rule.retry_exit_codes) > MOST_RANGES:
        faults.add(f"{path}.retry_exit_codes", f"must have at most {MOST_RANGES} entries.")
    backoff = _RULE.backoff if rule.backoff is None else rule.backoff
    most = max(_RULE.backoff_most, backoff) if rule.max_backoff is None else rule.max_backoff
    _within(backoff, LONGEST_BACKOFF, f"{path}.backoff", faults)
    _within(most, LONGEST_BACKOFF, f"{path}.max_backoff", faults)
    if rule.max_backoff is not None and most < backoff:
        faults.add(f"{path}.max_backoff", f"must not be shorter than backoff, {duration_text(backoff)}.")
    return RestartRule(
        retry_codes=rule.retry_exit_codes or _RULE.retry_codes,
        replica_restarts=_or(rule.max_replica_restarts, _RULE.replica_restarts),
        job_retries=_or(rule.max_job_retries, _RULE.job_retries),
        backoff=backoff,
        backoff_most=most,
        whole_gang=given.restart_job_on_worker_restart and not given.disable_retries,
        disabled=given.disable_retries,
    )


def _parse_watch(given: job_schema.HangWatchSpec | None, path: str, faults: Faults) -> HangRule:
    """A given watch applies also to a job of one replica. 0s switches it off."""
    if given is None:
        return _WATCH

    def length_of(name: str, default: timedelta) -> timedelta:
        length: timedelta | None = getattr(given, name)
        if length is None:
            return default
        if _NONE < length < SHORTEST_WATCH:
            faults.add(f"{path}.{name}", f"must be 0s for never or at least 1s, not {duration_text(length)}.")
        else:
            _within(length, LONGEST, f"{path}.{name}", faults)
        return length

    after, exit_after = length_of("after", _WATCH.after), length_of("exit_after", _WATCH.exit_after)
    policy = HangPolicy(given.policy) if given.policy else _WATCH.policy
    if policy is not HangPolicy.WARN and after == exit_after == _NONE:
        faults.add(f"{path}.policy", f"{policy.value} has nothing to act on: after and exitAfter are 0s.")
    return HangRule(after=after, exit_after=exit_after, policy=policy, asked=True)


def _within(length: timedelta, most: timedelta, path: str, faults: Faults) -> None:
    if length < _NONE:
        faults.add(path, f"must not be negative, as {duration_text(length)} is.")
    elif length > most:
        faults.add(path, f"must be at most {duration_text(most)}, not {duration_text(length)}.")


def _or(count: int | None, default: int) -> int:
    return default if count is None else count


def render_scheduling(scheduling: Scheduling, *, enum_ints: bool) -> dict[str, Any]:
    answer: dict[str, Any] = {"timeout": duration_text(scheduling.timeout)}
    rule = scheduling.restart
    if rule.whole_gang:
        answer["restartJobOnWorkerRestart"] = True
    if rule.disabled:
        answer["disableRetries"] = True
    if scheduling.max_wait is not None:
        answer["maxWaitDuration"] = duration_text(scheduling.max_wait)
    if scheduling.strategy:
        answer["strategy"] = enums.render_enum(scheduling.strategy, enums.STRATEGIES, as_ints=enum_ints)
    if scheduling.priority:
        answer["priority"] = scheduling.priority
    if scheduling.grace != _DEFAULT.grace:
        answer["gracePeriod"] = duration_text(scheduling.grace)
    if scheduling.drain != _DEFAULT.drain:
        answer["drainDuration"] = duration_text(scheduling.drain)
    if scheduling.success_pools:
        answer["successPools"] = list(scheduling.success_pools)
    if scheduling.hold:
        answer["holdOnFailure"] = duration_text(scheduling.hold)
    if ours := _render_rule(rule):
        answer["restartRule"] = ours
    if scheduling.hang.asked:
        answer["hangWatch"] = _render_watch(scheduling.hang)
    return answer


def _render_watch(rule: HangRule) -> Mapping[str, object]:
    answer: dict[str, object] = {"after": duration_text(rule.after)}
    if rule.exit_after != _WATCH.exit_after:
        answer["exitAfter"] = duration_text(rule.exit_after)
    if rule.policy is not _WATCH.policy:
        answer["policy"] = rule.policy.value
    return answer


def _render_rule(rule: RestartRule) -> Mapping[str, object]:
    if rule is _RULE:
        return {}
    answer: dict[str, object] = {}
    if rule.retry_codes != _RULE.retry_codes:
        answer["retryExitCodes"] = [f"{a}-{b}" if a != b else str(a) for a, b in rule.retry_codes]
    if rule.replica_restarts != _RULE.replica_restarts:
        answer["maxReplicaRestarts"] = rule.replica_restarts
    if rule.job_retries != _RULE.job_retries:
        answer["maxJobRetries"] = rule.job_retries
    if rule.backoff != _RULE.backoff:
        answer["backoff"] = duration_text(rule.backoff)
    if rule.backoff_most != _RULE.backoff_most:
        answer["maxBackoff"] = duration_text(rule.backoff_most)
    return answer
