"""`python -m trainshed.backup`: what `trainshed backup` and `trainshed restore` become.

take PATH [--home DIR] [--json]
restore PATH [--home DIR] [--check] [--json]
rebuild-index [--home DIR] [--json]
"""

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import FrameType

from trainshed.backup.contents import BUCKETS, DATABASE
from trainshed.backup.home_use import server_of
from trainshed.backup.progress import CopyProgress
from trainshed.backup.put_back import Restore
from trainshed.backup.take import BackupTaker
from trainshed.buckets.index_rebuild import LOST, IndexRebuild
from trainshed.cli.words import size as size_words
from trainshed.core.errors import Conflict, NotFound, TrainshedError
from trainshed.settings.table import Settings, SettingsError
from trainshed.store.lock import FileLock


def main(args: Sequence[str]) -> int:
    given = _parser().parse_args(args)
    os.umask(0o077)  # the token is among what is written
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _break_off)
    try:
        settings = Settings.from_args(["--home", given.home] if given.home else [])
        lines, values = _done(given, settings)
    except (SettingsError, TrainshedError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"error: {where}{error.strerror or error}; nothing is left behind", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("broken off; nothing is left behind", file=sys.stderr)
        return 130
    if given.as_json:
        print(json.dumps(values, indent=2))
    else:
        print("\n".join(lines))
    return 0


def _break_off(number: int, frame: FrameType | None) -> None:
    for later in (signal.SIGINT, signal.SIGTERM):
        signal.signal(later, signal.SIG_IGN)  # a second one must not keep the first from cleaning up
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trainshed.backup")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("take", "restore", "rebuild-index"):
        command = commands.add_parser(name)
        if name != "rebuild-index":
            command.add_argument("path", type=Path)
        command.add_argument("--home", default="")
        command.add_argument("--json", dest="as_json", action="store_true")
        if name == "restore":
            command.add_argument("--check", action="store_true")
    return parser


def _done(given: argparse.Namespace, settings: Settings) -> tuple[list[str], dict[str, object]]:
    match given.command:
        case "take":
            return _take(settings, given.path)
        case "restore":
            return _restore(given.path, None if given.check else settings.home)
        case _:
            return _rebuild(settings.home)


def _take(settings: Settings, path: Path) -> tuple[list[str], dict[str, object]]:
    taken = BackupTaker(settings, path).take()
    jobs = "no jobs" if taken.jobs is None else _count(taken.jobs, "job")
    objects = f"{_count(taken.objects, 'object')} in {_count(taken.buckets, 'bucket')}"
    lines = [
        f"{taken.path}: {jobs}, {objects}, {taken.files} files and folders, {size_words(taken.bytes)}",
        *(f"note: {note}" for note in taken.left_out),
        *(f"note: damaged in the home already: {damage}" for damage in taken.damaged),
    ]
    return lines, asdict(taken)


def _restore(backup: Path, home: Path | None) -> tuple[list[str], dict[str, object]]:
    restored = Restore(backup, home).run()
    what = f"{restored.files} files and folders, {size_words(restored.bytes)}, saved {restored.made}"
    lines = [f"{backup} is whole: {what}"] if home is None else [f"{restored.home}: {what}"]
    lines += [f"note: {note}" for note in restored.left_out]
    if home is not None:
        lines.append(f"start it with: trainshed up --home {restored.home}")
    return lines, asdict(restored)


def _rebuild(home: Path) -> tuple[list[str], dict[str, object]]:
    if not home.is_dir():
        raise NotFound(f"There is no home {home}: name it with --home.")
    if pid := server_of(home):
        raise Conflict(f"A server (pid {pid}) uses {home}. Stop it first.")
    lock = FileLock(home / f"{DATABASE}.lock")
    lock.take()
    try:
        progress = CopyProgress("read", 0)
        rebuilt = IndexRebuild(home / BUCKETS, lambda _, size: progress.reach(size)).make()
    finally:
        lock.release()
    lines = [
        f"{home / BUCKETS}: {_count(rebuilt.objects, 'object')} in {_count(rebuilt.buckets, 'bucket')}, "
        f"{size_words(rebuilt.bytes)}",
        LOST,
        f"put aside in {rebuilt.aside}: the old index, and {rebuilt.nameless} files whose names only it knew",
        *(f"not an object: {path}" for path in rebuilt.passed_over),
    ]
    return lines, {**asdict(rebuilt), "lost": LOST}


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
