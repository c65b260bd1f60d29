"""InotifyWatcher: reports the next change of a file, once per `arm`, by the kernel's inotify through ctypes.

The stores of logs and of metrics use it. A watch fires once and is gone; asking again is the caller's
matter. A program that floods its log thus costs one wakeup and, while nobody asks again, nothing. Where the
kernel has no inotify, or no watches are left, `arm` says False and the caller has to look by itself.
"""

import ctypes
import os
import struct

WRITTEN = 0x2  # bytes of a file were changed
ENTERED = 0x80 | 0x100  # a folder has a new name: moved there, or made
_OVERFLOW = 0x4000
_ONESHOT = 0x80000000
_EVENT = struct.Struct("iIII")

_libc = ctypes.CDLL(None, use_errno=True)


class InotifyWatcher:
    """Watches by path, names by any key of the caller's. Not for two threads."""

    def __init__(self) -> None:
        self.descriptor = -1
        init = getattr(_libc, "inotify_init1", None)
        if init is not None:
            self.descriptor = init(os.O_NONBLOCK | os.O_CLOEXEC)
        self._paths: dict[int, str] = {}
        self._numbers: dict[str, int] = {}

    @property
    def works(self) -> bool:
        return self.descriptor >= 0

    def arm(self, path: str, change: int = WRITTEN) -> bool:
        """Ask to be told of the next change of that file or folder. False where nobody will tell."""
        if self.descriptor < 0:
            return False
        number = _libc.inotify_add_watch(
            self.descriptor, os.fsencode(path), ctypes.c_uint32(change | _ONESHOT)
        )
        if number < 0:
            return False
        self._paths[number] = path
        self._numbers[path] = number
        return True

    def disarm(self, path: str) -> None:
        number = self._numbers.pop(path, None)
        if number is not None:
            self._paths.pop(number, None)
            _libc.inotify_rm_watch(self.descriptor, number)

    def fired(self) -> set[str]:
        """What has changed since it was armed; all of them where the kernel lost count."""
        result: set[str] = set()
        try:
            data = os.read(self.descriptor, 65536)
        except BlockingIOError:
            return result
        at = 0
        while at < len(data):
            number, mask, _, length = _EVENT.unpack_from(data, at)
            at += _EVENT.size + length
            if mask & _OVERFLOW:
                result.update(self._numbers)
            elif (path := self._paths.get(number)) is not None:
                result.add(path)
        for path in result:
            number = self._numbers.pop(path, None)
            if number is not None:
                self._paths.pop(number, None)
        return result

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
        self._paths.clear()
        self._numbers.clear()
