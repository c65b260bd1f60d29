"""Programs that look at everything a start can make different, each a sentence about what it looks at.

They print facts as lines. What has to differ (pids, times, the folder of the run) they do not print, or the
comparison (ways.py) puts a word in its place.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Program:
    what: str
    words: Words  # after the interpreter
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    signal: int = 0  # sent once it has printed "ready"


def code(what: str, text: str, *args: str, **env: str) -> Program:
    return Program(what, ("-c", text, *args), env=env)


def script(what: str, text: str, *args: str, **env: str) -> Program:
    return Program(what, ("train.py", *args), {"train.py": text}, env)


MAIN = """
import sys
main = sys.modules["__main__"]
for name in sorted(vars(main)):
    if name not in ("main", "sys"):
        print(name, str(getattr(main, name)).partition(" at 0x")[0])
print(list(vars(main)), main.__dict__ is globals(), sys._getframe().f_back)
"""

STREAMS = """
import os, sys
for stream in (sys.stdin, sys.stdout, sys.stderr, sys.__stdout__):
    print(stream.name, stream.mode, stream.encoding, stream.errors, stream.line_buffering)
    print(stream.fileno(), stream.isatty(), stream.seekable(), type(stream.buffer).__name__, stream.newlines)
    print(stream.write_through)
print(sys.stdin.read() == "", os.isatty(0), sys.__stderr__ is sys.stderr)
for number in (0, 1, 2):
    print(os.readlink(f"/proc/self/fd/{number}"), os.get_blocking(number), os.get_inheritable(number))
import fcntl
print([fcntl.fcntl(n, fcntl.F_GETFL) for n in (0, 1, 2)])
os.write(1, b"first\\n"); print("second"); os.write(1, b"third\\n")
sys.stderr.write("no newline"); sys.stdout.write("neither")
"""

SIGNALS = """
import signal
for line in open("/proc/self/status"):
    if line.startswith(("SigBlk", "SigIgn", "SigCgt", "SigPnd", "ShdPnd")):
        print(line.strip())
print({s: str(signal.getsignal(s)).partition(" at 0x")[0] for s in sorted(signal.valid_signals())})
print(signal.pthread_sigmask(signal.SIG_BLOCK, ()), signal.getitimer(0))
"""

TREE = """
import os
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(os.getpid() == os.getsid(0) == os.getpgid(0), status["Threads"].strip(), status["Name"].strip())
print(open(f"/proc/{os.getppid()}/comm").read().strip()[:6], open("/proc/self/oom_score_adj").read().strip())
keeper = dict(line.split(":", 1) for line in open(f"/proc/{os.getppid()}/status"))
print(keeper["Threads"].strip(), keeper["SigBlk"].strip(), int(keeper["SigIgn"], 16) & ~(3 << 31))
print(os.listdir(f"/proc/{os.getppid()}/fd"))
print(os.readlink(f"/proc/{os.getppid()}/cwd"), os.getsid(os.getppid()) == os.getppid())
print(open("/proc/self/cmdline").read().split("\\0"))
print(sorted(open("/proc/self/environ").read().split("\\0")))
print(open("/proc/self/environ").read().split("\\0")[:-1] == [f"{k}={v}" for k, v in os.environ.items()])
print(os.readlink("/proc/self/exe"), os.readlink("/proc/self/cwd"), open("/proc/self/comm").read())
import ctypes
death = ctypes.c_int(); ctypes.CDLL(None).prctl(2, ctypes.byref(death)); print(death.value)
import re
print(re.sub(rf"\\b{os.getpid()}\\b", "PID", open("/proc/self/cgroup").read()))
"""

SPAWN = """
import multiprocessing, os, sys
class Point:
    def __init__(self, x): self.x = x
def double(point, queue):
    queue.put((Point(point.x * 2), __name__, sys.argv, os.getcwd()))
if __name__ == "__main__":
    print(multiprocessing.current_process().name, multiprocessing.parent_process())
    for method in ("spawn", "fork", "forkserver"):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        child = context.Process(target=double, args=(Point(21), queue))
        child.start()
        point, *rest = queue.get()
        child.join()
        print(method, point.x, type(point).__module__, rest, child.exitcode)
"""

PACKAGE = {
    "pack/__init__.py": "",
    "pack/__main__.py": "import sys; print(sys.argv, sys.path, __name__, __package__, __spec__.name)",
    "pack/part.py": "import sys; print(sys.argv, sys.path[0], vars().keys())\nfrom . import other",
    "pack/other.py": "raise ValueError('deep')",
    "pack/ok.py": "import sys\nprint(sys.argv, __file__, __cached__, type(__loader__), __builtins__)",
    "pack/leave.py": "import sys; sys.exit(9)",
    "pack/interrupt.py": "raise KeyboardInterrupt",
}

BELOW = """
import os, posix, subprocess
print(posix.environ, flush=True)
subprocess.run(["env"])
print(os.getenv("A"))
"""

SYS = """
import sys
print(sys.path, sys.flags, sys.executable, sys.prefix, sys.warnoptions, sys._xoptions, sys.argv)
print([str(hook).split(" at ")[0] for hook in (*sys.path_hooks, *sys.meta_path)])
print(sys.dont_write_bytecode, sys.getrecursionlimit(), sys.gettrace(), sys.getprofile())
print(sys.excepthook, sys.displayhook, sys.stdout is sys.__stdout__)
print(hasattr(sys, "last_value"), hasattr(sys, "last_exc"), sys.exc_info())
print(sys.getfilesystemencoding(), sys.getdefaultencoding(), sys.getswitchinterval(), sys.version)
"""

LIMITS = """
import os, resource
print({n: resource.getrlimit(getattr(resource, n)) for n in dir(resource) if n.startswith("RLIMIT")})
print(oct(os.umask(0)), os.nice(0), os.sched_getaffinity(0), os.sched_getscheduler(0))
print(os.getgroups(), os.getresuid(), os.getresgid(), os.getpriority(os.PRIO_PROCESS, 0))
"""

THREADS = """
import os, threading
main = threading.main_thread()
print(threading.enumerate() == [main], main.name, main.daemon, main.native_id == os.getpid())
print(threading.current_thread() is main, main.ident == threading.get_ident())
print(len(os.listdir("/proc/self/task")), threading.active_count())
"""

CHILDREN = """
import subprocess, sys
code = "import sys; print(sys.flags, sys.path); sys.exit(3)"
print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True))
print(subprocess.getoutput("echo $0; ulimit -a"))
"""

FORKS = """
import os
child = os.fork()
if child == 0:
    print("child", flush=True)
    os._exit(6)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

ASYNCIO = """
import asyncio
async def main():
    asyncio.get_running_loop().add_signal_handler(15, print, "term")
    child = await asyncio.create_subprocess_exec("echo", "hi")
    print(await child.wait())
asyncio.run(main())
"""

LOCALE = """
import locale
print(locale.getlocale(), locale.setlocale(locale.LC_ALL), locale.getpreferredencoding())
"""

BUILTINS = """
import builtins, site
print(dir(builtins), exit, copyright, site.ENABLE_USER_SITE, __builtins__ is builtins)
"""

STAY = "print('ready'); import time; time.sleep(1000)"

PROGRAMS = (
    code("arguments", "import sys; print(sys.argv, sys.orig_argv)", "--epochs", "5", "", "a b", "é"),
    script("arguments of a file", "import sys; print(sys.argv, sys.orig_argv)", "--epochs", "5"),
    code(
        "the environment", "import os; print(list(os.environ.items()))", A="1", EMPTY="", ODD="a=b é \udcff"
    ),
    code(
        "the environment below Python",
        BELOW,
        A="1",
    ),
    code(
        "changing the environment",
        "import os; os.environ['B'] = '2'; os.unsetenv('A'); os.system('echo $A $B')",
        A="1",
    ),
    code("the working directory", "import os; print(os.getcwd(), os.environ.get('PWD'), os.listdir())"),
    script("streams", STREAMS),
    code("streams of -c", STREAMS),
    code("signals", SIGNALS),
    script("the process tree", TREE),
    code("the process tree of -c", TREE, "x"),
    script("__main__", MAIN),
    code("__main__ of -c", MAIN),
    code(
        "sys",
        SYS,
    ),
    script("sys.path of a file", "import sys; print(sys.path)"),
    Program(
        "a file in a folder that imports its neighbour",
        ("deep/down/../train.py",),
        {
            "deep/train.py": "import sys, side; print(sys.path[0], sys.argv, __file__, side.x)",
            "deep/side.py": "x = 1",
            "deep/down/x": "",
        },
    ),
    Program("a folder", ("pack", "1"), PACKAGE),
    Program("a folder without __main__.py", ("empty",), {"empty/x.py": ""}),
    Program("a module", ("-m", "pack.ok", "--x"), PACKAGE),
    Program("a package", ("-m", "pack", "1"), PACKAGE),
    Program("a module that fails deep down", ("-m", "pack.part", "1"), PACKAGE),
    Program("a module that leaves", ("-m", "pack.leave"), PACKAGE),
    Program("a module that is interrupted", ("-m", "pack.interrupt"), PACKAGE),
    Program("a module that is not there", ("-m", "pack.none"), PACKAGE),
    Program("a file that is not there", ("none.py",)),
    Program("a file that cannot be parsed", ("bad.py",), {"bad.py": "print('no')\nif True\n    pass\n"}),
    Program(
        "a file in another encoding",
        ("l.py",),
        {"l.py": "# -*- coding: latin-1 -*-\nprint(ascii('\u00e9'))\n"},
    ),
    code("code that cannot be parsed", "print(1\n"),
    *(
        code(f"exit {what}", f"import sys, os\n{what}")
        for what in (
            "sys.exit()",
            "sys.exit(0)",
            "sys.exit(1)",
            "sys.exit(3)",
            "sys.exit(255)",
            "sys.exit(256)",
            "sys.exit(-1)",
            "sys.exit('text')",
            "sys.exit(None)",
            "sys.exit((1, 2))",
            "sys.exit(True)",
            "os._exit(4)",
            "os.abort()",
            "exit(5)",
            "raise SystemExit",
            "os.kill(os.getpid(), 9)",
            "os.kill(os.getpid(), 11)",
            "sys.stdout.close()",
            "raise KeyboardInterrupt",
            "os.kill(os.getpid(), 2)",
        )
    ),
    script("an uncaught exception", "def f(x):\n    return 1 / x\n\n\nf(0)\n"),
    code("an uncaught exception of -c", "def f(x):\n    return 1 / x\n\nf(0)"),
    script(
        "a chain of exceptions",
        "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('b') from e\n",
    ),
    script("an exception of the user's own", "class Mine(BaseException): ...\nraise Mine('x')\n"),
    script(
        "an exception in a hook",
        "import sys\ndef hook(*a): raise OSError('hook')\nsys.excepthook = hook\n1/0\n",
    ),
    script(
        "a hook of one's own",
        "import sys\nsys.excepthook = lambda t, v, tb: print(t, v, tb.tb_lineno)\n1/0\n",
    ),
    script(
        "what is beneath", "import traceback, inspect\ntraceback.print_stack()\nprint(len(inspect.stack()))\n"
    ),
    script(
        "a thread that fails",
        "import threading\nt = threading.Thread(target=lambda: 1/0, name='T'); t.start(); t.join()\n",
    ),
    script(
        "the end",
        "import atexit, threading, time, weakref, sys\n"
        "class Last:\n    def __del__(self): print('gone', flush=True)\n"
        "last = Last()\n"
        "atexit.register(print, 'first in'); atexit.register(print, 'last in')\n"
        "weakref.finalize(last, print, 'finalized')\n"
        "threading.Thread(target=lambda: (time.sleep(0.1), print('thread'))).start()\n"
        "print('end of main'); sys.stdout.write('unflushed')\n",
    ),
    script(
        "warnings",
        "import warnings\nprint(warnings.filters)\nwarnings.warn('w')\n"
        "warnings.warn('old', DeprecationWarning)\n"
        "warnings.warn('level', stacklevel=2)\n",
    ),
    code("limits", LIMITS),
    code(
        "open files",
        "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd')), os.open('/dev/null', 0))",
    ),
    code("threads", THREADS),
    script("multiprocessing", SPAWN),
    code("subprocesses", CHILDREN),
    code("forks", FORKS),
    code("asyncio", ASYNCIO),
    code(
        "temporary files",
        "import tempfile, os; print(tempfile.gettempdir(), os.path.dirname(tempfile.mkstemp()[1]))",
    ),
    code(
        "time",
        "import time, logging, os\nprint(time.tzname, time.localtime(0)[:5])\n"
        "print(logging.makeLogRecord({}).relativeCreated < 5000, time.process_time() < 5)\n"
        "print(os.times().children_user)",
        TZ="Asia/Tokyo",
    ),
    code("locale", LOCALE),
    code(
        "garbage",
        "import gc; print(gc.isenabled(), gc.get_threshold(), gc.get_debug(), gc.garbage, gc.callbacks)",
    ),
    code("builtins", BUILTINS),
    code(
        "a pickle of its own class",
        "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A, pickle.dumps(A()))",
    ),
    code("input", "print(input())"),
    Program("SIGTERM", ("-c", STAY), signal=15),
    Program(
        "SIGTERM handled",
        ("-c", "import signal, sys; signal.signal(15, lambda *_: sys.exit(12))\n" + STAY),
        signal=15,
    ),
    Program("SIGINT", ("t.py",), {"t.py": "try:\n    " + STAY + "\nfinally: print('finally')\n"}, signal=2),
    Program(
        "SIGINT caught", ("-c", "try:\n    " + STAY + "\nexcept KeyboardInterrupt: print('caught')"), signal=2
    ),
    Program("SIGHUP", ("-c", STAY), signal=1),
    Program(
        "SIGPIPE, which Python ignores", ("-c", "import os, signal; os.kill(os.getpid(), 13); print('alive')")
    ),
    code("a flood of output", "for i in range(20000): print(i)"),
)

# Forked, and then an interpreter of their own after all: what is imported already stands in their way.
HIDING = (
    Program(
        "a module beside the program with a name the warm interpreter has imported",
        ("train.py",),
        {"train.py": "import json; print(json.own)", "json.py": "own = 'mine'"},
    ),
    Program(
        "a package beside the program with a name the warm interpreter has imported",
        ("-m", "trainer"),
        {"trainer.py": "import socket; print(socket.own)", "socket/__init__.py": "own = 'mine'"},
    ),
    Program(
        "a folder that is no package, with a name the warm interpreter has imported",
        ("-c", "import json; print(json.dumps(1))"),
        {"json/data.txt": ""},
    ),
)

# These have to be started afresh, and behave so.
ODD = (
    Program("unbuffered", ("-u", "-c", "import sys; print(sys.flags)")),
    Program("optimised", ("-O", "-c", "assert False; print('no asserts')")),
    Program("isolated", ("-I", "-c", "import sys; print(sys.path)")),
    Program("a flag joined with its word", ("-cprint(1)",)),
    Program("no program", ()),
    Program("standard input", ("-",)),
    Program("its version", ("--version",)),
    code("another buffering", "import sys; print(sys.stdout.write_through)", PYTHONUNBUFFERED=""),
    code("a hash seed", "print(hash('a'))", PYTHONHASHSEED="7"),
    code("a path", "import sys; print(sys.path)", PYTHONPATH="/nowhere"),
    code("threads of OpenMP", "import os; print(os.environ['OMP_NUM_THREADS'])", OMP_NUM_THREADS="3"),
    code("a locale", "import locale; print(locale.getlocale())", LC_ALL="C"),
    code("words that grow when they are handed over", "import sys; print(len(sys.argv[1]))", "é" * 25000),
)
