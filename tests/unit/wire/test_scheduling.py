from datetime import timedelta

import pytest

from tests.unit.wire.bodies import a_body, a_job, faults, parsed
from trainshed.core.jobs.job import RestartRule, Scheduling
from trainshed.wire.custom_job import render_custom_job


def scheduling(**fields: object) -> Scheduling:
    return parsed(a_body(scheduling=fields)).spec.scheduling


def test_nothing_said_means_the_defaults_and_so_does_a_zero_limit() -> None:
    assert scheduling() == scheduling(timeout="0s", maxWaitDuration="0s") == Scheduling()


def test_googles_fields_are_understood() -> None:
    found = scheduling(
        timeout="3600.5s", maxWaitDuration="60s", restartJobOnWorkerRestart=True, strategy="FLEX_START"
    )
    assert found == Scheduling(
        timeout=timedelta(seconds=3600.5),
        max_wait=timedelta(seconds=60),
        strategy="FLEX_START",
        restart=RestartRule(whole_gang=True),
    )


def test_disabled_retries_win_over_a_restart_of_the_job() -> None:
    rule = scheduling(restartJobOnWorkerRestart=True, disableRetries=True).restart
    assert (rule.disabled, rule.whole_gang) == (True, False)


def test_our_own_fields_are_understood() -> None:
    rule = {
        "retryExitCodes": ["129-255", "42", 7],
        "maxReplicaRestarts": 0,
        "maxJobRetries": 9,
        "backoff": "0.25s",
        "maxBackoff": "5s",
    }
    found = scheduling(priority=-3, gracePeriod="0s", drainDuration="5s", restartRule=rule)
    assert found == Scheduling(
        priority=-3,
        grace=timedelta(0),
        drain=timedelta(seconds=5),
        restart=RestartRule(
            retry_codes=((129, 255), (42, 42), (7, 7)),
            replica_restarts=0,
            job_retries=9,
            backoff=timedelta(seconds=0.25),
            backoff_most=timedelta(seconds=5),
        ),
    )


@pytest.mark.parametrize(
    "said",
    [
        {"timeout": "3600.5s", "maxWaitDuration": "60s", "strategy": "SPOT", "disableRetries": True},
        {"timeout": "1s", "restartJobOnWorkerRestart": True, "priority": 1, "gracePeriod": "0s"},
        {"timeout": "1s", "drainDuration": "1s", "restartRule": {"retryExitCodes": ["1", "3-5"]}},
        {"timeout": "1s", "successPools": [0]},
        {"timeout": "1s", "restartRule": {"maxReplicaRestarts": 0, "maxJobRetries": 0}},
        {"timeout": "1s", "restartRule": {"backoff": "40s", "maxBackoff": "50s"}},
    ],
)
def test_what_was_said_is_answered(said: dict[str, object]) -> None:
    assert render_custom_job(a_job(a_body(scheduling=said)))["jobSpec"]["scheduling"] == said


@pytest.mark.parametrize("pool", [-1, 10, "x", None, [0]])
def test_what_is_no_pool_cannot_be_one_of_the_success_pools(pool: object) -> None:
    assert list(faults(a_body(scheduling={"success_pools": [0, pool]}))) == [
        "job_spec.scheduling.success_pools[1]"
    ]


def test_a_first_backoff_above_the_usual_ceiling_raises_it() -> None:
    assert scheduling(restartRule={"backoff": "60s"}).restart.backoff_most == timedelta(seconds=60)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("timeout", "-1s"),
        ("timeout", "40000000s"),
        ("max_wait_duration", "-0.5s"),
        ("grace_period", "601s"),
        ("grace_period", "-1s"),
        ("drain_duration", "100000s"),
        ("success_pools", [3]),
        ("strategy", "CHEAP"),
        ("priority", "high"),
        ("disable_retries", "yes"),
    ],
)
def test_a_value_out_of_range_is_refused_at_its_field(field: str, value: object) -> None:
    assert list(faults(a_body(scheduling={field: value}))) == [f"job_spec.scheduling.{field}"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("retry_exit_codes[0]", ["0"]),
        ("retry_exit_codes[0]", ["5-3"]),
        ("retry_exit_codes[0]", ["1-256"]),
        ("retry_exit_codes[0]", [True]),
        ("retry_exit_codes[1]", ["1", "x"]),
        ("retry_exit_codes", ["1"] * 51),
        ("max_replica_restarts", -1),
        ("max_job_retries", 1001),
        ("backoff", "-1s"),
        ("max_backoff", "0.1s"),
        ("max_backoff", "3601s"),
    ],
)
def test_a_restart_rule_out_of_range_is_refused_at_its_field(field: str, value: object) -> None:
    rule = {field.split("[", maxsplit=1)[0]: value}
    assert list(faults(a_body(scheduling={"restartRule": rule}))) == [
        f"job_spec.scheduling.restart_rule.{field}"
    ]


def test_a_flexible_start_waits_for_a_day_unless_the_job_says_how_long():
    assert scheduling(strategy="FLEX_START").max_wait == timedelta(days=1)
    assert scheduling(strategy="FLEX_START", maxWaitDuration="60s").max_wait == timedelta(seconds=60)
    assert scheduling(strategy="FLEX_START", maxWaitDuration="0s").max_wait is None


@pytest.mark.parametrize("strategy", ["SPOT", "LOW_COST"])
def test_jobs_that_take_cheap_capacity_run_as_spot(strategy: str):
    assert scheduling(strategy=strategy).is_spot
    assert not scheduling(strategy="STANDARD").is_spot
