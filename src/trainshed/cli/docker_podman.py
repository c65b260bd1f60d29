"""docker's commands by a program of this machine that knows them too: Podman, or a real Docker.

What it prints and how it ends is passed on. Where an image's registry stands elsewhere it is pulled from
there, and pushed there; the server has it afterwards under the name that jobs will ask for.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trainshed.cli.docker_words import SERVER, Asked, Registries, bases, for_podman
from trainshed.cli.failure import CommandFailed
from trainshed.cli.options import connect
from trainshed.cli.trouble import say

PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class PodmanCommand:
    program: str  # its path
    registries: Registries
    is_podman: bool = True

    def run(self, asked: Asked, argv: list[str]) -> int:
        match asked.verb:
            case "build":
                return self._build(asked, argv)
            case "push":
                return self._push(asked)
            case "pull" if asked.words and (there := self.registries.elsewhere(asked.words[-1])):
                return self._pull(there, asked.words[-1])
            case "run" if asked.words:
                return self._run(asked, argv)
            case "login" | "logout" if asked.words:
                place = self.registries.place(asked.words[-1] + "/")
                return self._call(*argv[:-1], place if place not in ("", SERVER) else argv[-1])
            case _:
                return self._call(*argv)

    def _build(self, asked: Asked, argv: list[str]) -> int:
        file = asked.value("-f", "--file")
        text: str | None = None
        if file == "-" or asked.words == ("-",):
            text = sys.stdin.read()
        if text is None:
            for image in bases(_read(file, asked.words[-1] if asked.words else ".")):
                self._bring(image)
            return self._call(*argv)
        for image in bases(text):
            self._bring(image)
        return self._call(*argv, feed=text)

    def _run(self, asked: Asked, argv: list[str]) -> int:
        self._bring(asked.words[0])
        if not self.is_podman:
            return self._call(*argv)
        words, notes = for_podman(asked, os.path.exists)
        for note in notes:
            say(f"note: {note}")
        return self._call("run", *words)

    def _push(self, asked: Asked) -> int:
        name = asked.words[-1] if asked.words else ""
        place = self.registries.place(name)
        if not place:
            return self._call("push", *asked.words)
        if place == SERVER:
            return self._hand_over(name)
        there = self.registries.elsewhere(name)
        code = self._call("tag", name, there) or self._call("push", there)
        if code == 0:
            say(f"pushed {name} as {there}")
            self._name_at_the_server(there, name)
        return code

    def _hand_over(self, name: str) -> int:
        """The server gets the image itself, unless it sees the same ones as we do."""
        identity = self._asked("image", "inspect", "--format", "{{.Id}}", name)
        if not identity:
            say(f"error: there is no image {name} here")
            return 1
        with connect("", "", "") as client:
            for item in client.images().all():
                if identity.removeprefix("sha256:") in str(item.get("id")) and name in item.get("names", ()):
                    say(f"{name} is on the server, and nothing has to be pushed")
                    return 0
            saving = subprocess.Popen([self.program, "save", name], stdout=subprocess.PIPE)
            assert saving.stdout is not None
            for step in client.images().load(_pieces(saving)):
                say(str(step.get("message", "")))
            return saving.wait()

    def _name_at_the_server(self, there: str, name: str) -> None:
        """Jobs ask for it by the name it had here. A server that has no engine is told so by them."""
        try:
            with connect("", "", "") as client:
                images = client.images()
                for step in images.pull(there):
                    say(str(step.get("message", "")))
                images.tag(there, name)
        except CommandFailed as error:
            say(f"note: the server does not have it as {name}: {error.message}")

    def _bring(self, image: str) -> None:
        """An image whose registry stands elsewhere, under its own name."""
        if (there := self.registries.elsewhere(image)) and not self._asked("image", "inspect", image):
            self._pull(there, image)

    def _pull(self, there: str, image: str) -> int:
        return self._call("pull", there) or self._call("tag", there, image)

    def _call(self, *words: str, feed: str | None = None) -> int:
        sys.stdout.flush()
        done = subprocess.run([self.program, *words], input=feed, text=True, check=False)
        return 128 - done.returncode if done.returncode < 0 else done.returncode

    def _asked(self, *words: str) -> str:
        done = subprocess.run([self.program, *words], capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""


def _pieces(saving: "subprocess.Popen[bytes]") -> Iterator[bytes]:
    assert saving.stdout is not None
    while piece := saving.stdout.read(PIECE):
        yield piece


def _read(file: str, folder: str) -> str:
    """What is to be built; nothing where it cannot be read, which the engine will say."""
    paths = [Path(file)] if file else [Path(folder, name) for name in ("Dockerfile", "Containerfile")]
    existing = next((path for path in paths if path.is_file()), None)
    return existing.read_text(encoding="utf-8", errors="replace") if existing else ""
