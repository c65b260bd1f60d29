"""Which derived images there are: as the engine says, by their names.

It may assume that names of this home are nobody else's. Which of them go when room is needed is decided with
all other images; a job that waits for one that went has it made again.
"""

from typing import Any

from trainshed.backends.container.engine import Engine
from trainshed.backends.container.render_installer import repository


class DerivedImageNames:
    def __init__(self, engine: Engine, home: str) -> None:
        self._engine, self._repository = engine, repository(home)
        self._ids: dict[str, str] = {}  # by digest
        self._is_sure = False

    def find(self, digest: str) -> str | None:
        return self._ids.get(digest)

    def add(self, digest: str, image: str) -> None:
        self._ids[digest] = image

    def doubt(self) -> None:
        """Others may have taken some away."""
        self._is_sure = False

    async def be_sure(self) -> None:
        """Ask the engine, where there is doubt."""
        if self._is_sure:
            return
        told: list[dict[str, Any]] = await self._engine.ask("GET", "/images/json") or []
        tags = [(str(tag), str(row["Id"])) for row in told for tag in row.get("RepoTags") or ()]
        begins = f"{self._repository}:"
        ours = [(tag.removeprefix(begins), one) for tag, one in tags if tag.startswith(begins)]
        self._ids = {digest: one if one.startswith("sha256:") else f"sha256:{one}" for digest, one in ours}
        self._is_sure = True
