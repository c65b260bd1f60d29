"""models: list, get, delete as in Google's API. Only a pipeline makes a model."""

from dataclasses import dataclass

from trainshed.api.call import Call, Json
from trainshed.core.errors import Invalid, NotFound, Violation
from trainshed.core.model import ModelQuery
from trainshed.service.pipelines import ModelService
from trainshed.wire import page, read_mask
from trainshed.wire.model import ModelToUpload, parse_model_filter, plain_id, render_model
from trainshed.wire.operation import render_operation


@dataclass(slots=True)
class ModelHandlers:
    models: ModelService

    async def get(self, call: Call) -> Json:
        return render_model(await self.models.get(*_place(call)))

    async def find(self, call: Call) -> Json:
        text = call.query.get("filter", "")
        where = parse_model_filter(text)
        if call.query.get("orderBy", "").split() not in ([], ["create_time", "desc"]):
            raise Invalid((Violation("order_by", "must be absent: models come newest first."),))
        mask = read_mask.parse_mask(call.query.get("readMask", ""), ModelToUpload)
        project, location = call.path["project"], call.path["location"]
        fingerprint = page.fingerprint("models", project, location, text)
        listing = await self.models.find(
            ModelQuery(
                project=project,
                location=location,
                where=where,
                limit=page.parse_size(call.query.get("pageSize")),
                cursor=call.pages.decode(call.query.get("pageToken", ""), fingerprint),
            )
        )
        rows = [read_mask.apply_mask(mask, render_model(model)) for model in listing.models]
        return call.pages.render("models", rows, listing.next_cursor, fingerprint)

    async def delete(self, call: Call) -> Json:
        return render_operation(await self.models.delete(*_place(call)))


def _place(call: Call) -> tuple[str, str, str]:
    name = call.path["model"]
    model = plain_id(name)
    if model is None or ":" in name:
        parent = f"projects/{call.path['project']}/locations/{call.path['location']}"
        raise NotFound(f"There is no model {parent}/models/{name}.")
    return call.path["project"], call.path["location"], model
