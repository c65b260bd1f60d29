"""Makes the calling process another user's, without any right of root's. As drop_rights in keeper.c.

Read, not imported, by warm/interpreter.py and companion.py, which run in Pythons that the server does not
choose: it uses the standard library alone. The process has one thread. It raises OSError where it could not
become that user.
"""

from __future__ import annotations

import ctypes
import os

_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 4, 24, 38
_CAPABILITIES_3 = 0x20080522
_RIGHTS = 64  # more than there are
_NEW_KEYRING = 1
_KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219}


def drop_rights(uid: int, gid: int, groups: list[int]) -> None:
    if uid == 0 or gid == 0:
        raise OSError(22, "Programs of jobs are not to be root", "user")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    for right in range(_RIGHTS):
        libc.prctl(_PR_CAPBSET_DROP, right, 0, 0, 0)
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    header, nothing = (ctypes.c_uint32 * 2)(_CAPABILITIES_3, 0), (ctypes.c_uint32 * 6)()
    if libc.capset(header, nothing) or libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "user")
    if (keyctl := _KEYCTL.get(os.uname().machine)) is not None:  # it has the server's keys otherwise
        libc.syscall(ctypes.c_long(keyctl), ctypes.c_long(_NEW_KEYRING), None)
    libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)  # as exec would: it may look into itself
