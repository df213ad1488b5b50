"""The metrics of this process, on the API's own port."""

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from engram.api.dependencies import App, Asker, RequiredScope
from engram.config.settings import Settings
from engram.context.errors import ForbiddenError, NotFoundError
from engram.core.auth.access_keys import AUDIT
from engram.services.auth.scope import LOCAL
from engram.telemetry import metrics

router = APIRouter(tags=["health"])
_METRICS_SCOPE = RequiredScope(AUDIT, everywhere=True)


def shows_metrics(settings: Settings) -> bool:
    """Whether they are shown there: not to strangers, and not where they have a port of their own."""
    return settings.metrics_port is None and settings.on_loopback


@router.get("/metrics", include_in_schema=False)
async def get_metrics(request: Request, app: App, asker: Asker) -> Response:
    """In Prometheus's text format; where keys are needed, with one of tenant ``local`` that may audit everything.

    They are of all tenants together, so that those of another one tell no administrator what others do.
    """
    await _METRICS_SCOPE(request)
    if asker.tenant != LOCAL.tenant:
        raise ForbiddenError(f"Metrics are of all tenants: this takes a key of the tenant {LOCAL.tenant!r}.")
    if not shows_metrics(app.settings):
        raise NotFoundError("Metrics are not shown here; ENGRAM_METRICS_PORT gives them a port of their own.")
    page = await run_in_threadpool(metrics.exposition, app.maintenance.state.metrics)
    return Response(page, media_type=metrics.CONTENT_TYPE)
