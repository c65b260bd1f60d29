"""docker's commands by Trainshed's server, for a machine with no engine of its own: its images, its jobs.

`build` sends the folder, `push` finds the image where jobs will look for it, `run` is a job that is followed.
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from trainshed.cli.docker_words import SERVER, Asked, Registries
from trainshed.cli.failure import CommandFailed, Misuse
from trainshed.cli.submit_options import MACHINE
from trainshed.cli.trouble import say
from trainshed.client import Client, Json

VERSION = "Docker version 20.10.0, build trainshed"


class Server:
    def __init__(self, client: Client, registries: Registries) -> None:
        self._client, self._registries = client, registries
        self._images = client.images()

    def run(self, asked: Asked) -> int:
        match asked.verb:
            case "build":
                self._build(asked)
            case "push":
                self._push(_image_name(asked))
            case "pull":
                self._pull(_image_name(asked))
            case "tag" if len(asked.words) == 2:
                self._images.tag(*asked.words)
            case "rmi":
                self._images.remove(asked.words, force=asked.has("-f", "--force"))
            case "images":
                from trainshed.cli.images import drawn

                click.echo(drawn(self._images.all()))
            case "inspect":
                click.echo(json.dumps([self._description(name) for name in asked.words], indent=2))
            case "run":
                return self._run(asked)
            case "login":
                raise CommandFailed(
                    "the server holds the credentials of registries",
                    ["log in as the user it runs as, or start it with --registry-auth"],
                )
            case _:
                raise Misuse(
                    f"docker {asked.verb} is nothing this can do without an engine",
                    [
                        "build, push, pull, tag, images, inspect, rmi and run are",
                        "install podman for the rest",
                    ],
                )
        return 0

    def _build(self, asked: Asked) -> None:
        from trainshed.cli.context import Context

        tags = asked.values("-t", "--tag")
        if not tags:
            raise Misuse("name the image: docker build -t NAME .")
        args = {item.partition("=")[0]: item.partition("=")[2] for item in asked.values("--build-arg")}
        more = {"target": asked.value("--target")} if asked.value("--target") else {}
        more |= {"noCache": "true"} if asked.has("--no-cache") else {}
        more |= {"pull": "true"} if asked.has("--pull") else {}
        file, folder = asked.value("-f", "--file"), Path(asked.words[-1] if asked.words else ".")
        with tempfile.TemporaryDirectory(prefix="trainshed-docker-") as scratch:
            if file == "-":
                Path(scratch, "Dockerfile").write_text(sys.stdin.read())
                file = f"{scratch}/Dockerfile"
            context = Context(folder, file)
            steps = self._images.build(
                context.tar(), tags, dockerfile=context.dockerfile, args=args, more=more
            )
            _say(steps)

    def _push(self, name: str) -> None:
        place = self._registries.place(name)
        if place == SERVER:
            self._description(name)
            say(f"{name} is on the server, and nothing has to be pushed")
            return
        if there := self._registries.elsewhere(name):
            self._images.tag(name, there)
        _say(self._images.push(there or name))

    def _pull(self, name: str) -> None:
        there = self._registries.elsewhere(name)
        _say(self._images.pull(there or name))
        if there:
            self._images.tag(there, name)

    def _description(self, name: str) -> Json:
        full = name if ":" in name.rpartition("/")[2] or "@" in name else f"{name}:latest"
        for item in self._images.all():
            if full in item.get("names", ()) or f"localhost/{full}" in item.get("names", ()):
                return {"Id": item["id"], "RepoTags": item["names"], "Size": int(item.get("sizeBytes", 0))}
        raise CommandFailed(f"there is no image {name} on the server")

    def _run(self, asked: Asked) -> int:
        from trainshed.cli.follow import finish

        if not asked.words:
            raise Misuse("name the image: docker run IMAGE")
        image, *args = asked.words
        for item in asked.values("-v", "--volume", "--mount"):
            say(f"note: {item.partition(':')[0]} of this machine is not there for a job, and not mounted")
        pairs = [item.partition("=") for item in asked.values("-e", "--env")]
        container: Json = {"imageUri": image, "args": args}
        if entry := asked.value("--entrypoint"):
            container["command"] = [entry]
        if pairs:
            container["env"] = [{"name": name, "value": value} for name, _, value in pairs]
        pool: Json = {
            "machineSpec": {"machineType": MACHINE},
            "replicaCount": 1,
            "containerSpec": container,
        }
        name = asked.value("--name") or "docker-run"
        job = self._client.create({"displayName": name, "jobSpec": {"workerPoolSpecs": [pool]}})
        return finish(self._client, job, follow=True, as_json=False)


def _image_name(asked: Asked) -> str:
    if not asked.words:
        raise Misuse(f"name the image: docker {asked.verb} NAME")
    return asked.words[-1]


def _say(steps: Iterator[Json]) -> None:
    for step in steps:
        say(str(step.get("message", "")))
