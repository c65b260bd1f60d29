"""The views of several backends as those of one: a job's is with whichever backend has it.

It may assume that a job has a view with one of them at a time, and that any of them reads a file of another:
a Written tells all that is needed.
"""

from collections.abc import AsyncIterator, Callable, Sequence

from trainshed.core.view import Stored, View, Views, ViewScan, Written


class RoutedViews:
    def __init__(self, there: Callable[[], Sequence[Views]]) -> None:
        self._there = there  # at least one

    def view_of(self, job: str) -> str | None:
        return self._of(job).view_of(job)

    async def scan(self, job: str) -> ViewScan:
        return await self._of(job).scan(job)

    def read(self, file: Written) -> AsyncIterator[bytes]:
        return self._there()[0].read(file)

    async def shows(self, job: str, bucket: str, name: str) -> bool:
        return await self._of(job).shows(job, bucket, name)

    async def note(self, job: str, stored: Sequence[Stored]) -> None:
        await self._of(job).note(job, stored)

    async def notes(self, job: str) -> tuple[Stored, ...]:
        return await self._of(job).notes(job)

    async def keep(self, job: str) -> str:
        return await self._of(job).keep(job)

    def kept(self, job: str) -> str:
        return next((place for views in self._there() if (place := views.kept(job))), "")

    async def discard(self, job: str) -> None:
        for views in self._there():
            await views.discard(job)

    def on_want(self, hint: Callable[[str], None]) -> None:
        for views in self._there():
            views.on_want(hint)

    def wants(self, job: str) -> bool:
        return any(views.wants(job) for views in self._there())

    async def make(self, job: str, view: View) -> None:
        for views in self._there():
            if views.wants(job):
                await views.make(job, view)

    def _of(self, job: str) -> Views:
        """Of a job that has none the first answers: it knows nothing of it either."""
        there = self._there()
        return next((views for views in there if views.view_of(job) is not None), there[0])
