"""Which orders may be started warm: those a fresh interpreter would have read the same for."""

from dataclasses import replace

import pytest

from trainshed.backends.process.keeper import StartRequest
from trainshed.backends.process.warm.fitness import MOST, WarmImports, unfit

PYTHON = "/venv/bin/python"
SHARED = {"PATH": "/venv/bin:/bin", "HOME": "/home/a", "PYTHONUNBUFFERED": "1"}
PLATFORM = {
    "RANK": "1",
    "WORLD_SIZE": "4",
    "MASTER_ADDR": "127.0.0.1",
    "TF_CONFIG": "{}",
    "CLUSTER_SPEC": "{}",
    "CUDA_VISIBLE_DEVICES": "0,1",
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    "TMPDIR": "/t",
    "TRAINSHED_RUN_DIR": "/r",
    "AIP_MODEL_DIR": "gs://b/model/",
    "NCCL_DEBUG": "INFO",
}
HEAT = WarmImports(python=PYTHON, env=SHARED, asked=frozenset({"MY_IMPORT_FLAG"}))


def order(*words: str, **env: str) -> StartRequest:
    return StartRequest(
        run="/r",
        work="/w",
        argv=words or (PYTHON, "train.py"),
        env=SHARED | PLATFORM | env,
        stdout="/o",
        stderr="/e",
    )


@pytest.mark.parametrize(
    "words",
    [
        (PYTHON, "train.py"),
        (PYTHON, "train.py", "-O", "--epochs", "5"),
        (PYTHON, "-c", "print(1)"),
        (PYTHON, "-m", "trainer.task", "-u"),
        (PYTHON, "/abs/dir"),
    ],
)
def test_a_program_with_what_the_platform_gives_it_fits(words: tuple[str, ...]):
    assert unfit(order(*words), HEAT) is None


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("/bin/sh", "-c", "x"), "/bin/sh"),
        (("/venv/bin/python3", "train.py"), "python3"),
        ((PYTHON,), "no program"),
        ((PYTHON, ""), "no program"),
        ((PYTHON, "-"), "flag"),
        ((PYTHON, "-u", "train.py"), "-u"),
        ((PYTHON, "-O", "train.py"), "-O"),
        ((PYTHON, "-X", "dev", "train.py"), "-X"),
        ((PYTHON, "-cprint(1)"), "-cprint"),
        ((PYTHON, "-c"), "-c"),
        ((PYTHON, "-m"), "-m"),
        ((PYTHON, "a\0b"), "hold"),
        ((PYTHON, "a" * MOST), "too long"),
    ],
)
def test_what_is_not_simply_a_program_is_started_afresh(words: tuple[str, ...], named: str):
    assert named in (unfit(order(*words), HEAT) or "")


@pytest.mark.parametrize(
    "name",
    [
        *(
            "PYTHONPATH",
            "PYTHONHASHSEED",
            "PYTHONUNBUFFERED",
            "LD_PRELOAD",
            "LANG",
            "LC_ALL",
            "GLIBC_TUNABLES",
        ),
        *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "KMP_AFFINITY", "OPENBLAS_NUM_THREADS", "MALLOC_ARENA_MAX"),
        *("TORCH_LOGS", "TORCHDYNAMO_X", "PYTORCH_CUDA_ALLOC_CONF", "TF_CPP_MIN_LOG_LEVEL", "XLA_FLAGS"),
        *("JAX_PLATFORMS", "NVIDIA_TF32_OVERRIDE", "CUDA_LAUNCH_BLOCKING", "MY_IMPORT_FLAG", "HOME"),
    ],
)
def test_a_variable_read_before_the_program_is_a_reason(name: str):
    assert name in (unfit(order(**{name: "other"}), HEAT) or "")


def test_a_variable_with_the_value_that_was_read_is_none():
    heat = WarmImports(python=PYTHON, env=SHARED | {"OMP_NUM_THREADS": "1"})
    assert unfit(order(OMP_NUM_THREADS="1"), heat) is None
    assert unfit(order(), heat) is not None


@pytest.mark.parametrize("name", ["", "A=B"])
def test_a_variable_no_program_can_have_is_left_to_the_fresh_start(name: str):
    assert unfit(order(**{name: "x"}), HEAT) is not None


def test_an_empty_home_is_as_good_as_the_one_the_warm_interpreter_found_empty() -> None:
    request = order(HOME="/run/jobs/1/0/0-0/home")
    assert "HOME" in str(unfit(request, HEAT))
    assert unfit(replace(request, new_home=True), HEAT) is None
    asked = replace(HEAT, asked=frozenset({"HOME"}))  # by what was imported: that has its path
    assert "HOME" in str(unfit(replace(request, new_home=True), asked))
