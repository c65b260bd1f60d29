"""Google's enumerations: every name with its number.

A number may have several names: answers use the first, requests may use any.
"""

from collections.abc import Mapping

from trainshed.core.jobs.job import JobState

JOB_STATES: Mapping[str, int] = {
    "JOB_STATE_UNSPECIFIED": 0,
    "JOB_STATE_QUEUED": 1,
    "JOB_STATE_PENDING": 2,
    "JOB_STATE_RUNNING": 3,
    "JOB_STATE_SUCCEEDED": 4,
    "JOB_STATE_FAILED": 5,
    "JOB_STATE_CANCELLING": 6,
    "JOB_STATE_CANCELLED": 7,
    "JOB_STATE_PAUSED": 8,
    "JOB_STATE_EXPIRED": 9,
    "JOB_STATE_UPDATING": 10,
    "JOB_STATE_PARTIALLY_SUCCEEDED": 11,
}

PIPELINE_STATES: Mapping[str, int] = {
    name.replace("JOB", "PIPELINE", 1): number for name, number in JOB_STATES.items() if number <= 8
}

ACCELERATORS: Mapping[str, int] = {
    "ACCELERATOR_TYPE_UNSPECIFIED": 0,
    "NVIDIA_TESLA_K80": 1,
    "NVIDIA_TESLA_P100": 2,
    "NVIDIA_TESLA_V100": 3,
    "NVIDIA_TESLA_P4": 4,
    "NVIDIA_TESLA_T4": 5,
    "TPU_V2": 6,
    "TPU_V3": 7,
    "NVIDIA_TESLA_A100": 8,
    "NVIDIA_A100_80GB": 9,
    "TPU_V4_POD": 10,
    "TPU_V4": 10,  # not in the API, but printed in its documentation
    "NVIDIA_L4": 11,
    "TPU_V5_LITEPOD": 12,
    "NVIDIA_H100_80GB": 13,
    "NVIDIA_H100_MEGA_80GB": 14,
    "NVIDIA_H200_141GB": 15,
    "NVIDIA_B200": 16,
    "NVIDIA_GB200": 17,
    "NVIDIA_RTX_PRO_6000": 18,
}

# Ours: what to do about a job that hangs.
HANG_POLICIES: Mapping[str, int] = {"HANG_POLICY_UNSPECIFIED": 0, "WARN": 1, "RESTART": 2, "FAIL": 3}

STRATEGIES: Mapping[str, int] = {
    "STRATEGY_UNSPECIFIED": 0,
    "ON_DEMAND": 1,
    "LOW_COST": 2,
    "STANDARD": 3,
    "SPOT": 4,
    "FLEX_START": 6,
}

RESERVATIONS: Mapping[str, int] = {
    "TYPE_UNSPECIFIED": 0,
    "NO_RESERVATION": 1,
    "ANY_RESERVATION": 2,
    "SPECIFIC_RESERVATION": 3,
}

_STATE_NAMES = {state: f"JOB_STATE_{state}" for state in JobState}


def state_name(state: JobState) -> str:
    return _STATE_NAMES[state]


def render_enum(name: str, numbers: Mapping[str, int], *, as_ints: bool) -> str | int:
    """The value as name or number. A name of our own has no number and stays a name."""
    return numbers.get(name, name) if as_ints else name
