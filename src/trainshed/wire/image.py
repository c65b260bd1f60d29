"""Images as JSON, and the requests to build, name and remove them. Called by `api/images.py`."""

from collections.abc import Mapping
from typing import Any, cast

from trainshed.core.errors import Invalid, Violation
from trainshed.core.supplies.image import BuildRecipe, Image, ImageStep, ImageWork, refusal
from trainshed.wire.json_body import parse_json
from trainshed.wire.scalars import time_text


def render_image(image: Image, jobs: tuple[str, ...] = ()) -> dict[str, Any]:
    answer: dict[str, Any] = {"id": image.id, "names": list(image.names), "sizeBytes": str(image.size)}
    if image.digests:
        answer["digests"] = list(image.digests)
    if image.created_at is not None:
        answer["createTime"] = time_text(image.created_at)
    if image.used_at is not None:
        answer["lastUseTime"] = time_text(image.used_at)
    if image.labels:
        answer["labels"] = dict(image.labels)
    if jobs:
        answer["jobs"] = list(jobs)
    return answer


def render_step(step: ImageStep) -> dict[str, Any]:
    answer: dict[str, Any] = {"message": step.text}
    if step.percent is not None:
        answer["percent"] = step.percent
    if step.image:
        answer["image"] = step.image
    return answer


def render_work(work: ImageWork) -> dict[str, Any]:
    return {"kind": work.kind.value, "name": work.name, **render_step(work.step)}


def parse_recipe(query: Mapping[str, str]) -> BuildRecipe:
    """From the query of a build; Invalid with every violation."""
    tags = parse_names(query, "tag")
    wrong = [Violation("tag", sentence) for tag in tags if (sentence := refusal(tag))]
    wrong += [Violation("tag", f"'{tag}' has a digest; give a name and a tag.") for tag in tags if "@" in tag]
    dockerfile = query.get("dockerfile") or "Dockerfile"
    if dockerfile.startswith("/") or ".." in dockerfile.split("/"):
        wrong.append(Violation("dockerfile", f"'{dockerfile}' is not a path inside of what is sent."))
    args, labels = _texts(query, "buildArgs", wrong), _texts(query, "labels", wrong)
    if wrong:
        raise Invalid(tuple(wrong))
    return BuildRecipe(
        tags=tags,
        dockerfile=dockerfile,
        args=args,
        labels=labels,
        target=query.get("target", ""),
        pull=query.get("pull") == "true",
        cached=query.get("noCache") != "true",
    )


def parse_names(query: Mapping[str, str], field: str) -> tuple[str, ...]:
    """Names separated by commas. A name of an image has no comma."""
    names = tuple(filter(None, query.get(field, "").split(",")))
    if not names:
        raise Invalid((Violation(field, "is required: the name of an image."),))
    return names


def read_name(body: Mapping[str, object], field: str = "name") -> str:
    name = body.get(field, "")
    if not isinstance(name, str) or not name:
        raise Invalid((Violation(field, "is required: the name of an image."),))
    return name


def read_names(body: Mapping[str, object]) -> tuple[str, ...]:
    given = body.get("names")
    names = cast("list[object]", given) if isinstance(given, list) else []
    if not names or not all(isinstance(name, str) and name for name in names):
        raise Invalid((Violation("names", "must be a list of names of images."),))
    return tuple(map(str, names))


def _texts(query: Mapping[str, str], field: str, wrong: list[Violation]) -> dict[str, str]:
    try:
        value_map: object = parse_json(query.get(field) or "{}")
    except Invalid:
        value_map = None
    if not isinstance(value_map, dict) or not all(
        isinstance(value, str) for value in cast("dict[str, object]", value_map).values()
    ):
        wrong.append(Violation(field, "must be a JSON object of texts."))
        return {}
    return cast("dict[str, str]", value_map)
