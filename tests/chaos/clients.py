"""Clients that never give up: they submit, cancel, delete, list and follow while the server comes and goes.

Each runs in a thread of its own with chance of its own, and writes every request and every answer into the
history. An answer that did not come is "lost": the request may or may not have been done.
"""

import http.client
import json
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.chaos.history import History, now
from tests.chaos.kinds import KINDS, body, draw
from tests.live import FINAL, JOBS, Answer, LiveServer

MOST_WAITING = 16  # jobs that are not over: more would only make the end take longer
PAUSE = 0.05  # seconds between two tries of the same request


@dataclass(slots=True)
class World:
    """What the clients and the nemesis share."""

    server: LiveServer
    history: History
    notes: Path
    enough: threading.Event = field(default_factory=threading.Event)  # no new work from now on
    moment: threading.Event = field(default_factory=threading.Event)  # something is being asked right now
    kinds: dict[str, str] = field(default_factory=dict[str, str])  # job -> kind, of those acknowledged
    states: dict[str, str] = field(default_factory=dict[str, str])  # as last listed
    doomed: set[str] = field(default_factory=set[str])  # a delete has been asked for

    def ask(self, verb: str, path: str, body: object = None, key: str = "") -> Answer | None:
        """One request; None where no answer came."""
        self.moment.set()
        try:
            return self.server.request(
                verb, path, body, headers={"Idempotency-Key": key} if key else None, timeout=30
            )
        except (OSError, http.client.HTTPException):
            return None

    def insist(
        self, what: str, verb: str, path: str, *, key: str = "", job: str = "", body: object = None
    ) -> Answer:
        """The same request until it is answered; all tries are in the history."""
        while True:
            begun = now()
            answer = self.ask(verb, path, body, key)
            if answer is None or answer.status == 503:
                self.history.add(what, "lost", job=job, key=key, begun=begun)
                time.sleep(PAUSE)
                continue
            ok = answer.status == 200
            found = answer.json.get("name", "").rsplit("/", 1)[-1] if ok and what == "submit" else job
            said = {} if ok else {"status": answer.status, "message": answer.body.decode()[:500]}
            outcome = "ok" if ok else "refused"
            self.history.add(what, outcome, job=found, key=key, begun=begun, **said)
            return answer


def path_of(job: str) -> str:
    return f"{JOBS}/{quote(job, safe='')}"


def submit(world: World, rng: random.Random, name: str) -> None:
    number = 0
    while not world.enough.is_set():
        kind = draw(rng)
        key = f"{name}-{number}"
        number += 1
        asked = body(kind, world.notes, rng)
        answer = world.insist("submit", "POST", JOBS, key=key, body=asked)
        if answer.status != 200:
            continue  # the checker complains
        job = answer.json["name"].rsplit("/", 1)[-1]
        world.kinds[job] = kind.name
        world.history.add("kind", "known", job=job, kind=kind.name)
        if rng.random() < 0.3 and job not in world.doomed:
            world.insist("submit", "POST", JOBS, key=key, body=asked)
        if kind.must_cancel:
            time.sleep(rng.uniform(0, 1.5))
            world.insist("cancel", "POST", f"{path_of(job)}:cancel", job=job)
        time.sleep(rng.uniform(0.02, 0.4))
        while _crowded(world) and not world.enough.is_set():
            time.sleep(0.05)


def _crowded(world: World) -> bool:
    return sum(world.states.get(job) not in FINAL for job in list(world.kinds)) > MOST_WAITING


def cancel(world: World, rng: random.Random, _: str) -> None:
    while not world.enough.wait(rng.uniform(0.2, 1.5)):
        alive = [job for job in list(world.kinds) if world.states.get(job) not in FINAL]
        if alive:
            job = rng.choice(alive)
            world.insist("cancel", "POST", f"{path_of(job)}:cancel", job=job)


def delete(world: World, rng: random.Random, _: str) -> None:
    while not world.enough.wait(rng.uniform(0.3, 2.0)):
        over = [
            job for job in list(world.kinds) if world.states.get(job) in FINAL and job not in world.doomed
        ]
        if over:
            job = rng.choice(over)
            world.doomed.add(job)
            world.insist("delete", "DELETE", path_of(job), job=job)


def watch(world: World, rng: random.Random, _: str) -> None:
    """Lists all jobs again and again; what is seen is what people see."""
    while not world.enough.is_set():
        seen = list_all(world)
        if seen is not None:
            world.states.update(seen)
        time.sleep(rng.uniform(0.02, 0.2))


def list_all(world: World) -> dict[str, str] | None:
    """Every job's state, page by page; None where an answer did not come."""
    begun, token = now(), ""
    found: list[tuple[str, str]] = []
    while True:
        answer = world.ask("GET", f"{JOBS}?pageSize=50&pageToken={quote(token, safe='')}")
        if answer is None or answer.status == 503:
            return None
        if answer.status != 200:
            world.history.add("list", "refused", begun=begun, message=answer.body.decode()[:500])
            return None
        page = answer.json
        found += [(job["name"].rsplit("/", 1)[-1], job["state"]) for job in page.get("customJobs", [])]
        token = page.get("nextPageToken", "")
        if not token:
            world.history.add("list", "ok", begun=begun, jobs=found)
            return dict(found)


def follow(world: World, rng: random.Random, _: str) -> None:
    """Follows the output of one job after the other, each time from its beginning."""
    while not world.enough.wait(0.05):
        jobs = [job for job in list(world.kinds)[-10:] if job not in world.doomed]
        if jobs:
            job = rng.choice(jobs)
            begun = now()
            lines, whole = _stream(world, f"{path_of(job)}:tail?follow=true")
            world.history.add("follow", "whole" if whole else "lost", job=job, begun=begun, lines=lines)


def _stream(world: World, path: str) -> tuple[list[tuple[str, str]], bool]:
    """The lines that came, and whether the answer came to its proper end."""
    lines: list[tuple[str, str]] = []
    connection = http.client.HTTPConnection("127.0.0.1", world.server.port, timeout=5)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {world.server.token}"})
        reply = connection.getresponse()
        if reply.status != 200:
            return [], False
        rest = b""
        # read1, unlike readline, tells an answer that broke off from one that came to its end.
        while data := reply.read1(1 << 16):
            *rows, rest = (rest + data).split(b"\n")
            for row in rows:
                told: dict[str, Any] = json.loads(row)
                lines.append((told["insertId"], told["text"]))
            if world.enough.is_set():
                return lines, False
        return lines, True
    except (OSError, http.client.HTTPException):
        return lines, False
    finally:
        connection.close()


Client = Callable[[World, random.Random, str], None]
CLIENTS: tuple[Client, ...] = (submit, submit, submit, cancel, delete, watch, follow)


def must_be_cancelled(world: World) -> list[str]:
    return [job for job, kind in world.kinds.items() if KINDS[kind].must_cancel]
