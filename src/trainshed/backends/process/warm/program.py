"""Turns a fork of a warm interpreter into the program: what exec would have made of it, without the imports.

interpreter.py calls it in the runtime's own interpreter, alone in its process, with every signal blocked, for
a request that fitness.py found fit. It never returns to the warm interpreter: `prepare` leaves a hook, and
the exception raised after it unwinds every frame of ours, so that the interpreter's own C code runs the
program with nothing beneath it. Whatever cannot be made the same is left to exec: a fresh interpreter in the
same process.
"""

from __future__ import annotations

import builtins
import ctypes
import functools
import importlib.machinery
import mmap
import os
import signal
import struct
import sys
import threading
import time
import types
from collections.abc import Callable
from typing import Any, NoReturn, TypedDict

_PR_SET_PDEATHSIG = 1
_CLONE_NEWNS = 0x00020000
_MS_PRIVATELY = 0x4000 | 0x80000  # MS_REC | MS_SLAVE
_MS_PLAINLY = 2 | 4  # MS_NOSUID | MS_NODEV
_MS_BIND = 4096
_PR_SET_MM = 35
_PR_SET_MM_MAP = 14
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_IGNORE_COOKIE = 0x0800  # PyCF_IGNORE_COOKIE: code on a command line is UTF-8, whatever it says of itself
_KEPT_SOURCE = (3, 13)  # since then `-c` keeps its source for tracebacks, by ways not open to us
_SUFFIXES = frozenset(importlib.machinery.all_suffixes())
_CUTTABLE = (3, 11)  # since then a traceback changed on the way out stays changed

# All are set by interpreter.py: the modules of an interpreter just started, what the imports did to the
# environment, which is done again in each program, and how another user's rights are taken.
initial_modules: frozenset[str] = frozenset()
env_changes: dict[str, str | None] = {}
drop_rights: Any = None  # of rights.py

_libc = ctypes.CDLL(None, use_errno=True)
_libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
_libc.mmap.restype = ctypes.c_void_p
_libc.sbrk.argtypes = [ctypes.c_ssize_t]
_libc.sbrk.restype = ctypes.c_void_p
_libc.fopen.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
_libc.fopen.restype = ctypes.c_void_p


class UserFields(TypedDict):
    uid: int
    gid: int
    groups: list[int]
    name: str


class WarmStartRequest(TypedDict):
    """What the server sends (process.py)."""

    argv: list[str]
    env: dict[str, str]
    run: str
    work: str
    group: str
    join: list[str]  # cgroups of version 1
    stdout: str
    stderr: str
    hosts: str  # the file it finds as /etc/hosts; may be empty
    view: str  # the folder it finds as /gcs; may be empty
    lazy: bool  # its keeper mounts the view when the program opens /gcs
    user: UserFields | None  # who it is to be; None: who the server is
    customize: str  # a file to run by which the program offers its stacks; may be empty


class Become(BaseException):
    """Unwinds all frames of a forked warm interpreter."""


class _Flags(ctypes.Structure):
    """PyCompilerFlags."""

    _fields_ = (("cf_flags", ctypes.c_int), ("cf_feature_version", ctypes.c_int))


class _Unused:
    """An argument of sys.excepthook that nobody needs."""

    @classmethod
    def from_param(cls, _: object) -> ctypes.c_void_p:
        return ctypes.c_void_p(None)


class _Last(_Unused):
    """The last of them: converting it is the last thing that happens before the program runs."""

    @classmethod
    def from_param(cls, _: object) -> ctypes.c_void_p:
        wake()
        return ctypes.c_void_p(None)


def listen_to_all() -> None:
    """No signal is ignored but those Python ignores itself.

    The C library keeps two to itself and, in posix_spawn, leaves them ignored: it has to be gone around.
    """
    number = {"x86_64": 13, "aarch64": 134, "riscv64": 134}.get(os.uname().machine)
    fallback = ctypes.create_string_buffer(64)  # the kernel's struct sigaction, all zero: SIG_DFL
    for item in (32, 33):
        if number is not None:
            _libc.syscall(ctypes.c_long(number), item, fallback, None, ctypes.c_long(8))


def die_with(parent: int) -> None:
    """Be killed when the parent ends: without a keeper nobody enforces limits."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(127)


def make_mounts(request: WarmStartRequest, end: int, parent: int, keeper: str) -> None:
    """Another /etc/hosts, and at /gcs the view, or a trigger that tells the keeper when a program opens it.

    As keeper.c does. `end` is the trigger's, or 0; `parent` is the keeper's process and `keeper` its program.
    """
    hosts = request["hosts"]
    failed = _mount(None, b"/", None, _MS_PRIVATELY) if not _libc.unshare(_CLONE_NEWNS) else True
    if hosts and not failed:
        failed = _mount(os.fsencode(hosts), b"/etc/hosts", None, _MS_BIND)
    if end and not failed:
        options = b"fd=%d,pgrp=%d,minproto=5,maxproto=5,direct" % (end, parent)
        failed = _mount(b"trainshed", b"/gcs", b"autofs", _MS_PLAINLY, options)
        os.close(end)
    if failed:
        error = ctypes.get_errno()
        _refuse("no /gcs:", "its mounts cannot be made", OSError(error, os.strerror(error)), 126)
    if request["view"] and not end:
        placing = os.posix_spawn(keeper, [keeper, "--place", request["view"]], {})
        if os.waitpid(placing, 0)[1] != 0:  # it has said why
            os._exit(126)


def _mount(
    source: bytes | None, place: bytes, kind: bytes | None, flags: int, options: bytes | None = None
) -> bool:
    """Whether it failed."""
    return _libc.mount(source, place, kind, ctypes.c_ulong(flags), options) != 0


def enter(request: WarmStartRequest, parent: int) -> None:
    """Cgroups, user, working directory, environment, and what the system shows of them."""
    own = request["group"]
    for path in (*([own + "/cgroup.procs"] if own else []), *(group + "/tasks" for group in request["join"])):
        try:
            with open(path, "w") as file:
                file.write("0")
        except OSError:
            pass  # as the keeper does: the other nets remain
    if user := request["user"]:
        try:
            drop_rights(user["uid"], user["gid"], user["groups"])
        except OSError as error:
            _refuse("cannot become user", str(user["uid"]), error, 126)
        die_with(parent)  # becoming another user has cleared it
    try:
        os.chdir(request["work"])
    except OSError as error:
        _refuse("cannot enter", request["work"], error, 126)
    env = request["env"]
    os.environ.clear()
    os.environ.update(env)
    for name, value in env_changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    show(request["argv"], env)


def show(argv: list[str], env: dict[str, str]) -> bool:
    """Make /proc/PID/cmdline and environ show the program's: by the latter its processes are found."""
    words = b"".join(os.fsencode(word) + b"\0" for word in argv)
    pairs = b"".join(os.fsencode(name) + b"=" + os.fsencode(value) + b"\0" for name, value in env.items())
    size = len(words) + len(pairs)
    base = _libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, _PRIVATE, -1, 0)
    if base in (None, ctypes.c_void_p(-1).value):
        return False
    ctypes.memmove(base, words + pairs, size)
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    code, end, data, past, heap, stack = (int(fields[n - 3]) for n in (26, 27, 45, 46, 47, 28))
    middle = base + len(words)
    shape = (code, end, data, past, heap, _libc.sbrk(0), stack, base, middle, middle, base + size, 0, 0, -1)
    packed = struct.pack("=11QQIi", *shape)
    buffer = ctypes.create_string_buffer(packed, len(packed))
    return _libc.prctl(_PR_SET_MM, _PR_SET_MM_MAP, ctypes.addressof(buffer), len(packed), 0) == 0


def prepare(request: WarmStartRequest, template: dict[str, object]) -> Module | None:
    """Make the interpreter as if just started for these words.

    The outermost frame has to run the module returned; where none is, sys.excepthook will run the program.
    """
    argv = request["argv"]
    words = argv[1:]
    _refresh()
    if request["customize"]:
        _load(request["customize"])
    if hasattr(sys, "orig_argv"):
        sys.orig_argv = list(argv)
    safe = getattr(sys.flags, "safe_path", False)
    module, hook, first = None, None, None
    if words[0] == "-c" and sys.version_info < _KEPT_SOURCE:
        hook, sys.argv = _code(words[1]), ["-c", *words[2:]]
        first = None if safe else ""
    elif words[0] == "-m" and sys.version_info >= _CUTTABLE:
        module, sys.argv = Module(words[1], alter=True), ["-m", *words[2:]]
        first = None if safe else os.getcwd()
    elif not words[0].startswith("-"):
        path = words[0] if words[0].startswith("/") else os.getcwd() + "/" + words[0]
        sys.argv = words
        if _importer(path) is None:
            hook = _file(path)
            first = None if safe else os.path.dirname(os.path.realpath(path))
        elif sys.version_info >= _CUTTABLE:  # a folder or an archive with a __main__.py
            module, first = Module("__main__", alter=False), path
    if (hook is None and module is None) or (first is not None and _hides(first)):
        start_afresh(request)
    if first is not None:
        sys.path.insert(0, first)
    main = types.ModuleType("__main__")
    vars(main).update(template, __builtins__=builtins)
    if "__annotations__" in template:
        vars(main)["__annotations__"] = {}
    old = sys.modules["__main__"]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(old))  # its frame is still to unwind
    for name in [name for name, module in sys.modules.items() if module is old]:
        sys.modules[name] = main  # multiprocessing knows it by another name
    if hook is not None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(hook))  # until Python 3.10 nobody holds it while it runs
        sys.excepthook = hook
    return module


class Module:
    """A module run as a program. Its traceback begins where a fresh start's would."""

    def __init__(self, name: str, *, alter: bool) -> None:
        import runpy

        run: Any = vars(runpy)["_run_module_as_main"]
        self._run = functools.partial(run, name, alter)

    def __enter__(self) -> Callable[[], object]:
        wake()
        return self._run

    def __exit__(self, _: object, error: BaseException | None, trace: types.TracebackType | None) -> None:
        if error is not None and trace is not None:
            error.__traceback__ = trace.tb_next


def start_afresh(request: WarmStartRequest) -> NoReturn:
    """Exec a fresh interpreter: slower, always right."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    argv = request["argv"]
    try:
        os.execve(argv[0], argv, request["env"])
    except OSError as error:
        _refuse("cannot run", argv[0], error, 127 if isinstance(error, FileNotFoundError) else 126)


def wake() -> None:
    """Remove what is left of the fork: the exception, the hook, the blocked signals."""
    for name in {"last_type", "last_value", "last_traceback", "last_exc"} & vars(sys).keys():
        delattr(sys, name)
    sys.excepthook = sys.__excepthook__
    # While SIGINT still has its default action: one that came meanwhile ends the program, not us.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _refuse(what: str, name: str, error: OSError, code: int) -> NoReturn:
    os.write(2, os.fsencode(f"trainshed: {what} '{name}': {error.strerror}\n"))
    os._exit(code)


def _refresh() -> None:
    """What modules remember of the process they were imported in."""
    loaded: dict[str, Any] = sys.modules
    main: Any = threading.main_thread()
    main._set_native_id()
    if "multiprocessing.process" in loaded:
        module = loaded["multiprocessing.process"]
        module.ORIGINAL_DIR = os.getcwd()
        module.current_process().authkey = os.urandom(32)
    if "tempfile" in loaded:
        loaded["tempfile"].tempdir = None
    if "logging" in loaded:
        known = loaded["logging"]
        known._startTime = time.time_ns() if isinstance(known._startTime, int) else time.time()
    if "numpy.random" in loaded:
        loaded["numpy.random"].seed()  # as `random` does by itself
    if "torch" in loaded:
        loaded["torch"].default_generator.seed()
    time.tzset()


def _hides(folder: str) -> bool:
    """Whether the program's own folder has a module of a name that was imported from elsewhere."""
    try:
        with os.scandir(folder or ".") as entries:
            for entry in entries:
                name, dot, rest = entry.name.partition(".")
                if name not in sys.modules or name in initial_modules:
                    continue
                if dot + rest in _SUFFIXES or os.path.exists(f"{entry.path}/__init__.py"):
                    return True
    except OSError:
        pass  # an archive, or nothing that can be read
    return False


def _load(path: str) -> None:
    with open(path, "rb") as file:
        exec(compile(file.read(), path, "exec"), {"__name__": "trainshed_customize", "__file__": path})


def _importer(path: str) -> object:
    get = ctypes.pythonapi.PyImport_GetImporter
    get.restype = ctypes.py_object
    return get(ctypes.py_object(path))


def _file(path: str) -> Callable[..., int] | None:
    """As `python FILE`; None where it cannot be read, which a fresh interpreter says best."""
    name = os.fsencode(path)
    stream = _libc.fopen(name, b"rbe")
    if not stream:
        return None
    run = _runner("PyRun_SimpleFileExFlags", ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p)
    return functools.partial(run, stream, name, 1, None)


def _code(text: str) -> Callable[..., int] | None:
    """As `python -c`."""
    try:
        source = (text + "\n").encode()  # the interpreter adds one itself
    except UnicodeEncodeError:
        return None
    run = _runner("PyRun_SimpleStringFlags", ctypes.c_char_p, ctypes.POINTER(_Flags))
    flags = _Flags(_IGNORE_COOKIE, sys.version_info.minor)
    return functools.partial(run, source, ctypes.pointer(flags))


def _runner(name: str, *kinds: Any) -> Callable[..., int]:
    """A function of the interpreter's that shows what the program raises, and gives 0 or -1."""
    kinds = (*kinds, _Unused, _Unused, _Last)
    run: Any = ctypes.PYFUNCTYPE(ctypes.c_int, *kinds)((name, ctypes.pythonapi))
    run.errcheck = _finish
    return run


def _finish(result: int, *_: object) -> int:
    # Being in the hook of an uncaught exception, a program that ran to its end would exit with 1.
    if result == 0:
        raise SystemExit(0)
    return result
