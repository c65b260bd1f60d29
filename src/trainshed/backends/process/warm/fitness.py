"""Decides whether a start request can be served by a fork of a warm interpreter. Pure.

The pool calls it before each fork. The answer is None, or the reason why not, in words for people. In a fork
the interpreter's flags are parsed and variables are read already. So a request fits only if a fresh start
would have read the same. Which variables Python code read during the imports is known exactly: the warm
interpreter noted them. Which ones C libraries may have read is a list of prefixes, wide on purpose: a fresh
start is slower, but never wrong.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainshed.backends.process.keeper import StartRequest

MOST = 100_000  # bytes of a request: it is sent as one message

# Read by the interpreter (by HOME it finds a user's own packages), the loader, the C library and numeric
# libraries, most of them when they are loaded.
_READ_EARLY = (
    *("PYTHON", "HOME", "LD_", "LC_", "LANG", "MALLOC_", "GLIBC_", "GCONV_", "LOCPATH"),
    *("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "GOTO_", "BLIS_", "VECLIB_", "NUMEXPR_", "TBB_"),
    *("DNNL_", "ONEDNN_", "ATEN_", "KINETO_", "TORCH", "PYTORCH", "NPY_", "NUMPY_", "NUMBA_"),
    *("TF_", "XLA_", "JAX_", "TPU_", "KERAS_", "TRITON_"),
    *("CUDA_", "CUBLAS_", "CUDNN_", "NVIDIA_", "HIP_", "ROCR_", "HSA_", "SYCL_", "ONEAPI_"),
)
# Given to each replica by the platform, and read when they are used.
_READ_LATE = frozenset({"TF_CONFIG", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmImports:
    """What a warm interpreter has read already."""

    python: str
    env: Mapping[str, str]
    asked: frozenset[str] = frozenset()


def unfit(request: StartRequest, warm: WarmImports) -> str | None:
    """Why the request needs a fresh start, or None."""
    if request.argv[0] != warm.python:
        return f"its program is {request.argv[0]}, not the runtime's interpreter"
    if reason := _odd(request.argv[1:]):
        return reason
    # A warm interpreter for programs with a user has found no packages in its HOME either.
    same = {"HOME"} - warm.asked if request.new_home else frozenset[str]()
    for name in sorted((warm.env.keys() | request.env.keys()) - same):
        if warm.env.get(name) != request.env.get(name) and _read(name, warm.asked):
            return f"it sets {name} otherwise than the warm interpreter has read it"
    paths = (request.run, request.work, request.stdout, request.stderr)
    texts = [*request.argv, *request.env, *request.env.values(), *paths]
    if sum(map(len, texts)) > MOST:
        return "its arguments and variables are too long to be handed over"
    if any("\0" in text for text in texts) or any(not name or "=" in name for name in request.env):
        return "its arguments or variables hold what no program can be given"
    return None


def _odd(words: Sequence[str]) -> str | None:
    """Programs are FILE, -c CODE or -m MODULE, and nothing before it."""
    if not words or not words[0]:
        return "it gives the interpreter no program"
    if words[0] in ("-c", "-m"):
        return None if len(words) > 1 else f"{words[0]} lacks its argument"
    if words[0].startswith("-"):
        return f"it gives the interpreter a flag ({words[0]})"
    return None


def _read(name: str, asked: frozenset[str]) -> bool:
    return name in asked or (name.startswith(_READ_EARLY) and name not in _READ_LATE)
