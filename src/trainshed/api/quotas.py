"""quotas: what a project may have and has, as compute, Cloud Quotas and our own commands ask for it.

Machines belong to no region here, so every region has the quotas of the project.
"""

from dataclasses import dataclass

from trainshed.api.call import Call, Json, Method, row
from trainshed.core.accounts.permission import Permission
from trainshed.core.errors import NotFound
from trainshed.core.queue.quota import ShareQuota
from trainshed.service.quotas import QuotaService
from trainshed.wire.quota import (
    SERVICE,
    quota_id,
    render_project,
    render_quota,
    render_quota_info,
    render_region,
)

CLOUD_QUOTAS_VERSIONS = ("v1", "v1beta", "v1alpha")  # of gcloud's tracks; the bodies are the same


@dataclass(slots=True)
class QuotaHandlers:
    service: QuotaService

    async def find(self, call: Call) -> Json:
        return {"quotas": [render_quota(quota) for quota in await self._of_project(call)]}

    async def project(self, call: Call) -> Json:
        """compute.projects.get, which `gcloud compute project-info describe` calls."""
        return render_project(call.path["project"], await self._of_project(call))

    async def region(self, call: Call) -> Json:
        """compute.regions.get. Every name is that of a region."""
        return render_region(call.path["region"], await self._of_project(call))

    async def infos(self, call: Call) -> Json:
        """cloudquotas quotaInfos.list: all of them are on one page."""
        project, rows = call.path["project"], await self._of_service(call)
        return {"quotaInfos": [render_quota_info(project, quota) for quota in rows]}

    async def info(self, call: Call) -> Json:
        asked = call.path["quota"]
        for quota in await self._of_service(call):
            if quota_id(quota) == asked:
                return render_quota_info(call.path["project"], quota)
        raise NotFound(f"There is no quota '{asked[:200]}': `gcloud quotas info list` has their names.")

    async def _of_service(self, call: Call) -> tuple[ShareQuota, ...]:
        if (service := call.path["service"]) != SERVICE:
            raise NotFound(f"Service '{service[:200]}' has no quotas here: ask for those of {SERVICE}.")
        return await self._of_project(call)

    async def _of_project(self, call: Call) -> tuple[ShareQuota, ...]:
        return await self.service.of_project(call.path["project"])


def quota_methods(quotas: QuotaHandlers) -> tuple[Method, ...]:
    """As gcloud's compute and gcloud's quotas ask for them, in any of their tracks."""
    project = "/compute/{track}/projects/{project}"
    rows = [
        row("GET", project, quotas.project, Permission.JOBS_LIST),
        row("GET", f"{project}/regions/{{region}}", quotas.region, Permission.JOBS_LIST),
    ]
    for version in CLOUD_QUOTAS_VERSIONS:
        infos = f"/{version}/projects/{{project}}/locations/global/services/{{service}}/quotaInfos"
        rows += [
            row("GET", infos, quotas.infos, Permission.JOBS_LIST),
            row("GET", f"{infos}/{{quota}}", quotas.info, Permission.JOBS_LIST),
        ]
    return tuple(rows)
