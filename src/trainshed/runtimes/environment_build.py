"""EnvironmentBuild: one environment that is being built, and how it is shown to jobs and in lists."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from trainshed.core.jobs.readiness import Readiness, ReadinessState
from trainshed.core.jobs.verdict import Verdict
from trainshed.core.supplies.package import file_name
from trainshed.core.supplies.runtime import Runtime, RuntimePhase
from trainshed.preparation import Preparation
from trainshed.runtimes.build import Build
from trainshed.runtimes.recipe import EnvironmentRecipe

IsUnwanted = Callable[[set[str]], Awaitable[bool]]  # whether none of these jobs needs it any more

_ONCE = "It is built once and kept; the job starts by itself then."


@dataclass(slots=True, eq=False, kw_only=True)
class EnvironmentBuild(Preparation):
    recipe: EnvironmentRecipe
    build: Build
    below: "EnvironmentBuild | None" = None  # has to be there first
    is_unwanted: IsUnwanted

    async def look(self) -> None:
        """Stop building packages of jobs once all jobs that asked for it are over: nobody else needs them."""
        if self.recipe.packages and self.task is not None and await self.is_unwanted(self.jobs):
            self.task.cancel()
        if self.begun is not None:
            self.sentence = self.build.progress.sentence(self.build.installed())

    @property
    def message(self) -> str:
        if self.begun is None and self.below is not None and self.below.begun is not None:
            return self.below.message
        return f"Building {title(self.recipe)}: {self.progress}."

    @property
    def title(self) -> str:
        return title(self.recipe)

    def readiness(self) -> Readiness:
        return Readiness(
            standing=ReadinessState.PREPARING, message=self.message, remedy=_ONCE, notes=self.recipe.notes
        )

    def runtime(self, failure: Readiness | None = None) -> Runtime:
        recipe = self.recipe
        return Runtime(
            id=recipe.digest,
            name=recipe.name,
            phase=RuntimePhase.FAILED if failure else RuntimePhase.BUILDING,
            python=recipe.interpreter.version,
            requirements=recipe.requirements,
            packages=recipe.packages,
            below=recipe.below.digest if recipe.below else "",
            message=failure.message if failure else self.message,
            lines=failure.verdict.lines if failure and failure.verdict else self.build.progress.newest(),
        )


def title(recipe: EnvironmentRecipe) -> str:
    if recipe.below is None:
        return recipe.name
    counts = ((len(recipe.packages), "package"), (len(recipe.requirements), "requirement"))
    more = " and ".join(f"{count} {what}{'' if count == 1 else 's'}" for count, what in counts if count)
    return f"{recipe.name} with {more} on top"


def absent(recipe: EnvironmentRecipe) -> Readiness:
    """An environment that nobody has asked for yet; to list it does not build it."""
    return Readiness(
        standing=ReadinessState.PREPARING,
        message=f"{title(recipe)} is not built here yet: building it comes first.",
        remedy=_ONCE,
        notes=recipe.notes,
    )


def absent_runtime(recipe: EnvironmentRecipe) -> Runtime:
    return Runtime(
        id=recipe.digest,
        name=recipe.name,
        phase=RuntimePhase.ABSENT,
        python=recipe.interpreter.version,
        requirements=recipe.requirements,
    )


def is_try_of(recipe: EnvironmentRecipe, runtime: Runtime) -> bool:
    """Whether a runtime is what people take the recipe's for: a package that was mended keeps its file's
    name, if not its content.
    """
    files = [file_name(package.uri) for package in recipe.packages]
    return runtime.id == recipe.digest or (
        bool(files)
        and (runtime.name, runtime.requirements) == (recipe.name, recipe.requirements)
        and [file_name(package.uri) for package in runtime.packages] == files
    )


def failed(what: str, verdict: Verdict) -> Readiness:
    return Readiness(
        standing=ReadinessState.FAILED,
        message=f"The runtime {what} could not be built.",
        remedy=verdict.advice,
        verdict=verdict,
    )
