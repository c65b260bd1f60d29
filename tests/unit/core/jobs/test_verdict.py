"""Judging failures by recorded last words. The rules are the ones that ship."""

import pytest

from trainshed.core.event import Reason
from trainshed.core.jobs.replica import Exit
from trainshed.core.jobs.verdict import Cause, Evidence, Rules, Verdict, in_words, judge
from trainshed.data.verdict_rules import load_rules, read_rules

# As TensorFlow and Google's client tell of Google's hosts, where nothing leads them to this server.
_TF, _HTTP = "tensorflow.python.framework.errors_impl.", "Error executing an HTTP request: "
UNRESOLVED = (
    f"{_TF}AbortedError: All 10 retry attempts failed. The last failure: {_HTTP}libcurl code 6 meaning "
    "'Could not resolve hostname', error details: Could not resolve host: storage.googleapis.com"
)
ANONYMOUS = (
    f"{_TF}PermissionDeniedError: {_HTTP}HTTP response code 401 with body 'Anonymous caller does not have "
    "storage.objects.get access to the Google Cloud Storage object.'"
)
POOL = (
    "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='storage.googleapis.com', port=443): "
    "Max retries exceeded with url: /storage/v1/b/data/o"
)


def judged(
    stderr: str = "",
    *,
    stdout: str = "",
    code: int | None = 1,
    signal: int | None = None,
    memory: str = "",
    no_room: bool = False,
    processes: str = "",
    reason: Reason = Reason.PROGRAM_FAILED,
) -> Verdict:
    end = Exit(code=None if signal else code, signal=signal)
    evidence = Evidence(
        reason=reason,
        exit=end,
        task="workerpool0-0",
        stderr=stderr.splitlines(),
        stdout=stdout.splitlines(),
        out_of_memory=memory,
        no_room=no_room,
        process_limit=processes,
    )
    return judge(evidence, load_rules())


def traceback(raised: str) -> str:
    return (
        f'Traceback (most recent call last):\n  File "train.py", line 7, in <module>\n    main()\n{raised}\n'
    )


def unbuilt(said: str) -> Verdict:
    """Of what pip says when a runtime cannot be built."""
    end = Exit(code=1)
    evidence = Evidence(reason=Reason.PREPARATION_FAILED, exit=end, stderr=said.splitlines())
    return judge(evidence, load_rules())


def without_gcs(raised: str, why: str = "no mount namespace can be made") -> Verdict:
    evidence = Evidence(
        reason=Reason.PROGRAM_FAILED, exit=Exit(code=1), stderr=traceback(raised).splitlines(), no_gcs=why
    )
    return judge(evidence, load_rules())


CONFLICT = "ERROR: Cannot install a==1 and b==2 because these package versions have conflicting dependencies."
CUDA = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
    "14.58 GiB of which 1.21 GiB is free. Of the allocated memory 12.87 GiB is allocated by PyTorch."
)
LOADER = "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed. "
WATCHDOG = (
    "[rank1]:[E1115 10:00:00.1 ProcessGroupNCCL.cpp:616] [Rank 1] "
    "Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600010 "
    "milliseconds before timing out."
)
PEER = (
    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer "
    "[127.0.0.1]:40123"
)
GLOO = (
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 3000ms "
    "for recv operation to complete"
)

REFUSED = "the kernel refused it a process or a thread: its limit is 64 processes and threads"
EAGAIN = traceback("BlockingIOError: [Errno 11] Resource temporarily unavailable")

EXAMPLES = [
    (Cause.PROCESS_LIMIT, judged(EAGAIN, processes=REFUSED)),
    (Cause.CUDA_OUT_OF_MEMORY, judged(traceback(CUDA))),
    (Cause.CUDA_OUT_OF_MEMORY, judged("terminate called\n  what():  CUDA error: out of memory", signal=6)),
    (Cause.HOST_OUT_OF_MEMORY, judged(signal=9, memory="the kernel killed a process")),
    (Cause.HOST_OUT_OF_MEMORY, judged(code=137, memory="the kernel killed a process")),
    (Cause.HOST_OUT_OF_MEMORY, judged(traceback(LOADER), memory="the kernel killed a process")),
    (Cause.HOST_OUT_OF_MEMORY, judged(traceback("MemoryError"))),
    (
        Cause.HOST_OUT_OF_MEMORY,
        judged(
            traceback("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB for an array")
        ),
    ),
    (Cause.HOST_OUT_OF_MEMORY, judged("terminate called after throwing 'std::bad_alloc'", signal=6)),
    (Cause.KILLED, judged(traceback(LOADER))),
    (Cause.KILLED, judged(signal=9)),
    (Cause.KILLED, judged(traceback("KeyboardInterrupt"), signal=2)),
    (Cause.KILLED, judged(signal=15)),
    (Cause.KILLED, judged(signal=24)),
    (Cause.KILLED, judged(signal=13)),
    (Cause.DISK_FULL, judged(traceback("OSError: [Errno 28] No space left on device: 'model.pt'"))),
    (Cause.PORT_IN_USE, judged(traceback("OSError: [Errno 98] Address already in use"))),
    (
        Cause.PORT_IN_USE,
        judged(traceback("torch.distributed.DistNetworkError: The server socket has failed: EADDRINUSE")),
    ),
    (
        Cause.COLLECTIVE_TIMEOUT,
        judged(traceback("torch.distributed.DistStoreError: Timed out after 2 seconds waiting for clients.")),
    ),
    (
        Cause.COLLECTIVE_TIMEOUT,
        judged(traceback("torch.distributed.DistNetworkError: The client socket has timed out after 1000ms")),
    ),
    (Cause.USER_EXCEPTION, judged(traceback("subprocess.TimeoutExpired: 'make' timed out after 3 seconds"))),
    (Cause.COLLECTIVE_TIMEOUT, judged(traceback(GLOO))),
    (Cause.COLLECTIVE_TIMEOUT, judged(WATCHDOG + "\nmore\n" * 20, signal=6)),
    (Cause.PEER_LOST, judged(traceback(PEER))),
    (Cause.IMPORT_ERROR, judged(traceback("ModuleNotFoundError: No module named 'torchvision'"))),
    (Cause.IMPORT_ERROR, judged("/usr/bin/python3: No module named trainer")),
    (
        Cause.IMPORT_ERROR,
        judged(
            traceback("OSError: libcudart.so.12: cannot open shared object file: No such file or directory")
        ),
    ),
    (
        Cause.SYNTAX_ERROR,
        judged('  File "train.py", line 1\n    def f(:\n          ^\nSyntaxError: invalid syntax'),
    ),
    (Cause.COMMAND_NOT_FOUND, judged("sh: 1: trane: not found", code=127)),
    (Cause.COMMAND_NOT_FOUND, judged(code=127)),
    (Cause.PERMISSION, judged("sh: 1: ./train.sh: Permission denied", code=126)),
    (Cause.PERMISSION, judged(code=126)),
    (
        Cause.CUDA_ERROR,
        judged(
            "trainshed: the container cannot be started: setting up CDI devices: "
            "unresolvable CDI devices nvidia.com/gpu=0",
            code=126,
        ),
    ),
    (
        Cause.MISSING_FILE,
        judged(
            "trainshed: the container cannot be started: mounting volume x-nfs-0-0: mount: /v/_data: "
            "unknown filesystem type 'nfs'.",
            code=126,
        ),
    ),
    (
        Cause.PERMISSION,
        judged(
            "trainshed: the container cannot be started: unable to find user ghost: no matching", code=126
        ),
    ),
    (
        Cause.MISSING_FILE,
        judged("trainshed: the container cannot be started: chdir to cwd (/opt): no such file", code=126),
    ),
    (Cause.PERMISSION, judged(traceback("PermissionError: [Errno 13] Permission denied: '/data'"))),
    (
        Cause.MISSING_FILE,
        judged(traceback("FileNotFoundError: [Errno 2] No such file or directory: 'x.csv'")),
    ),
    (Cause.MISSING_FILE, judged("python: can't open file '/w/train.py': [Errno 2] No such file", code=2)),
    (
        Cause.NETWORK_TIMEOUT,
        judged(traceback("requests.exceptions.ReadTimeout: HTTPConnectionPool: timed out")),
    ),
    (Cause.NETWORK_TIMEOUT, judged(traceback("TimeoutError: [Errno 110] Connection timed out"))),
    (Cause.NETWORK_ERROR, judged(traceback("ConnectionRefusedError: [Errno 111] Connection refused"))),
    (Cause.NETWORK_ERROR, judged(traceback(UNRESOLVED))),
    (Cause.NETWORK_ERROR, judged(traceback(ANONYMOUS))),
    (Cause.CUDA_ERROR, judged(traceback("RuntimeError: No CUDA GPUs are available"))),
    (
        Cause.BAD_ARGUMENTS,
        judged("usage: train.py [-h]\ntrain.py: error: unrecognized arguments: --epoch", code=2),
    ),
    (Cause.SEGMENTATION_FAULT, judged("step 3", signal=11)),
    (Cause.SEGMENTATION_FAULT, judged(code=139)),
    (Cause.SEGMENTATION_FAULT, judged(signal=7)),
    (Cause.SEGMENTATION_FAULT, judged(traceback(LOADER.replace("Killed", "Bus error")))),
    (Cause.SEGMENTATION_FAULT, judged(traceback(LOADER.replace("Killed", "Segmentation fault")))),
    (Cause.ABORTED, judged(signal=6)),
    (Cause.ABORTED, judged(signal=4)),
    (Cause.LOST, judged(code=None)),
    (Cause.USER_EXCEPTION, judged(traceback("trainer.errors.Diverged: the loss is nan"))),
    (Cause.PROGRAM_EXIT, judged("no data for today")),
    (Cause.JOB_TIMED_OUT, judged(traceback("ValueError"), reason=Reason.TIMED_OUT)),
    (Cause.HUNG, judged(traceback("KeyboardInterrupt"), reason=Reason.HUNG)),
    (Cause.OUTPUTS_LOST, judge(Evidence(reason=Reason.OUTPUTS_LOST), load_rules())),
    (Cause.NEVER_ADMITTED, judge(Evidence(reason=Reason.WAITED_TOO_LONG), load_rules())),
    (Cause.NO_SUCH_PACKAGE, unbuilt("ERROR: No matching distribution found for nosuchthing==1")),
    (Cause.CONFLICTING_REQUIREMENTS, unbuilt(f"{CONFLICT}\nERROR: ResolutionImpossible: for help visit")),
    (Cause.NETWORK_ERROR, unbuilt("WARNING: Retrying (Retry(total=0)) after NewConnectionError")),
    (Cause.PERMISSION, unbuilt("fatal: unable to access 'https://x/': CONNECT tunnel failed, response 403")),
    (Cause.DISK_FULL, unbuilt("ERROR: Could not install: [Errno 28] No space left on device: 'x'")),
    (Cause.BUILD_FAILED, unbuilt("error: subprocess-exited-with-error\nERROR: Failed building wheel for x")),
    (Cause.BUILD_FAILED, unbuilt("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE FILE.\n  Got 946d")),
    (
        Cause.BUILD_FAILED,
        unbuilt("Image 'trainshed/python:3.9' cannot run here: the interpreter is Python 3.11."),
    ),
    (Cause.BUILD_FAILED, unbuilt("error: command 'gcc' failed: No such file or directory")),
    (
        Cause.BUILD_FAILED,
        unbuilt("x.c:1:9: error: expected ';'\nerror: command '/bin/cc' failed with exit code 1"),
    ),
    (Cause.BUILD_FAILED, unbuilt(traceback("ModuleNotFoundError: No module named 'numpy'"))),
    (Cause.BUILD_FAILED, unbuilt(traceback("FileNotFoundError: [Errno 2] No such file: 'README.md'"))),
    (Cause.NETWORK_ERROR, unbuilt("fatal: Could not resolve host: x\nerror: subprocess-exited-with-error")),
    (
        Cause.NO_SUCH_PACKAGE,
        unbuilt("ERROR: t-1-py3-none-win32.whl is not a supported wheel on this platform."),
    ),
    (Cause.NO_SUCH_PACKAGE, unbuilt(traceback("pip.InvalidMarker: Invalid marker: 'x', parse error"))),
    (Cause.UNKNOWN, judge(Evidence(reason=Reason.REPLICA_KILLED, exit=Exit(signal=40)), load_rules())),
    (Cause.MISSING_FILE, without_gcs("PermissionError: [Errno 13] Permission denied: '/gcs'")),
    (
        Cause.CUDA_ERROR,
        judge(
            Evidence(
                reason=Reason.PROGRAM_FAILED,
                exit=Exit(code=1),
                stderr=traceback(
                    "ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!"
                ).splitlines(),
                without_gpus=True,
            ),
            load_rules(),
        ),
    ),
    (Cause.CUDA_ERROR, judged(traceback("ValueError: ProcessGroupNCCL is only supported with GPUs"))),
    (
        Cause.DISK_FULL,
        judge(
            Evidence(
                reason=Reason.REPLICA_KILLED, exit=Exit(signal=9), disk_full="it filled 2 GiB, and may 1 GiB"
            ),
            load_rules(),
        ),
    ),
    (Cause.DISK_FULL, judged("OSError: [Errno 28] No space left on device", no_room=True)),
    (Cause.DISK_FULL, judged("epoch 3", no_room=True)),
    (Cause.USER_EXCEPTION, judged(traceback("KeyError: 'x'"), no_room=True)),
]


@pytest.mark.parametrize(("cause", "verdict"), EXAMPLES)
def test_a_recorded_failure_is_recognised(cause: Cause, verdict: Verdict) -> None:
    assert verdict.cause is cause
    assert verdict.summary or cause is Cause.UNKNOWN
    assert verdict.advice.endswith(".")
    assert "\n" not in verdict.sentence


def test_every_row_of_the_data_file_has_an_example() -> None:
    rules = load_rules()
    rows = {(rule.cause, rule.advice) for rule in (*rules.ends, *rules.words, *rules.rest)}
    assert rows <= {(verdict.cause, verdict.advice) for _, verdict in EXAMPLES}
    elsewhere = {Cause.NO_SUCH_IMAGE}  # what registries say: tests/unit/backends/test_unpulled.py
    assert {cause for cause, _ in EXAMPLES} == set(Cause) - elsewhere


def test_a_path_below_gcs_is_put_down_to_its_absence_only_where_it_is_absent() -> None:
    raised = "FileNotFoundError: [Errno 2] No such file or directory: '/gcs/b/x'"
    told = without_gcs(raised)
    assert "/gcs is not available on this machine because no mount namespace can be made" in told.summary
    assert "TRAINSHED_MODEL_DIR" in told.advice
    assert without_gcs(raised, why="").summary == raised
    assert without_gcs("FileNotFoundError: 'data/gcs/x'").summary == "FileNotFoundError: 'data/gcs/x'"


@pytest.mark.parametrize(
    "verdict",
    [
        judged(EAGAIN, processes=REFUSED),
        judged(traceback("RuntimeError: can't start new thread"), processes=REFUSED),
        judged("bash: fork: retry: Resource temporarily unavailable\n", code=254, processes=REFUSED),
        judged("libgomp: Thread creation failed: Resource temporarily unavailable\n", processes=REFUSED),
        judged("", processes=REFUSED),
        judged("terminate called\n", signal=6, processes=REFUSED),
        judged("", signal=9, processes="it was ended: it had 70 processes and threads, and its limit is 64"),
    ],
)
def test_who_may_have_no_more_processes_is_told_the_limit_and_the_setting(verdict: Verdict) -> None:
    assert verdict.cause is Cause.PROCESS_LIMIT
    assert "its limit is 64" in verdict.summary
    assert "--processes-per-replica" in verdict.advice and not verdict.retry_may_help


def test_who_was_refused_a_process_and_failed_for_another_reason_is_told_the_other_one() -> None:
    assert judged(traceback("KeyError: 'x'"), processes=REFUSED).cause is Cause.USER_EXCEPTION
    assert judged(EAGAIN).cause is not Cause.PROCESS_LIMIT


def test_a_kill_without_evidence_is_not_put_down_to_memory() -> None:
    verdict = judged(traceback("MemoryError"), signal=9)
    assert verdict.cause is Cause.KILLED
    assert verdict.summary == "it was killed by signal 9 (SIGKILL, killed)"
    assert "not known" in verdict.advice


def test_the_kernels_word_on_memory_counts_only_for_what_was_killed() -> None:
    verdict = judged(traceback("KeyError: 'x'"), memory="the kernel killed a process")
    assert (verdict.cause, verdict.summary) == (Cause.USER_EXCEPTION, "KeyError: 'x'")


def test_a_known_cause_is_found_behind_the_exception_it_led_to() -> None:
    told = (
        traceback("FileNotFoundError: [Errno 2] No such file or directory: 'a'")
        + "\nThe above exception was the direct cause of the following exception:\n\n"
        + traceback("RuntimeError: cannot load")
    )
    verdict = judged(told)
    assert verdict.cause is Cause.MISSING_FILE
    assert verdict.lines[-1] == "RuntimeError: cannot load"


def test_the_last_exception_counts_more_than_those_it_followed_from() -> None:
    told = (
        traceback("FileNotFoundError: [Errno 2] No such file or directory: 'a'")
        + "\nDuring handling of the above exception, another exception occurred:\n\n"
        + traceback("OSError: [Errno 28] No space left on device")
    )
    assert judged(told).cause is Cause.DISK_FULL


def test_a_launcher_that_tells_of_its_childs_failure_is_passed_over() -> None:
    told = traceback("KeyError: 'label'") + traceback(
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:"
    )
    verdict = judged(told)
    assert (verdict.cause, verdict.summary) == (Cause.USER_EXCEPTION, "KeyError: 'label'")


def test_a_traceback_that_was_survived_is_not_the_reason() -> None:
    verdict = judged(traceback("KeyError: 'x'") + "going on\n" * 60 + "no data for today")
    assert (verdict.cause, verdict.summary) == (Cause.PROGRAM_EXIT, "no data for today")


def test_a_traceback_on_the_output_counts_where_the_error_stream_has_none() -> None:
    assert judged(stdout=traceback("KeyError: 'x'")).summary == "KeyError: 'x'"


def test_a_word_far_from_the_end_is_no_reason_where_a_traceback_is() -> None:
    verdict = judged("CUDA out of memory, trying a smaller batch\n" + traceback("KeyError: 'x'"))
    assert verdict.cause is Cause.USER_EXCEPTION


def test_the_line_that_decided_is_always_shown() -> None:
    verdict = judged(WATCHDOG + "\n" + "more\n" * 40, signal=6)
    assert "Watchdog caught" in verdict.lines[0]
    assert "Watchdog caught" in verdict.summary
    assert len(verdict.lines) == 20


def test_an_end_is_told_in_words() -> None:
    assert in_words(Exit(code=3)) == "exited with code 3"
    assert in_words(Exit(signal=11)) == "was killed by signal 11 (SIGSEGV, segmentation fault)"
    assert "as shells say" in in_words(Exit(code=137))
    assert "lost" in in_words(Exit())


def test_without_any_rules_there_is_still_a_verdict() -> None:
    evidence = Evidence(reason=Reason.PROGRAM_FAILED, exit=Exit(code=1), stderr=["last words"])
    verdict = judge(evidence, Rules())
    assert (verdict.cause, verdict.lines) == (Cause.UNKNOWN, ("last words",))


def test_the_text_begins_with_the_cause_and_ends_with_the_lines() -> None:
    text = judged(traceback("KeyError: 'x'")).text.splitlines()
    assert text[0] == "Cause: USER_EXCEPTION: KeyError: 'x'"
    assert text[-1] == "  KeyError: 'x'"
    assert "A retry would most likely fail the same way." in text[2]


def test_a_row_with_a_misspelt_name_is_refused() -> None:
    with pytest.raises(TypeError):
        read_rules({"words": [{"cause": "KILLED", "advice": "a", "retry": True, "pattrens": []}]})
    with pytest.raises(ValueError):
        read_rules({"word": []})


@pytest.mark.parametrize("words", [UNRESOLVED, ANONYMOUS, POOL])
def test_a_program_that_asked_google_in_vain_is_told_of_gcs(words: str) -> None:
    verdict = judged(traceback(words))
    assert verdict.cause is Cause.NETWORK_ERROR
    assert "/gcs/BUCKET" in verdict.advice
    assert not verdict.retry_may_help


def test_what_this_server_refuses_under_googles_names_is_no_failure_to_reach_them() -> None:
    refused = (
        "google.api_core.exceptions.Forbidden: 403 GET https://storage.googleapis.com/storage/v1/b/x/o/y: no"
    )
    assert "/gcs/BUCKET" not in judged(traceback(refused)).advice
