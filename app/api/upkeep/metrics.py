"""The metrics of this process, on the API's own port."""

from fastapi import APIRouter, Response

from app.api.dependencies import App
from app.errors import NotFoundError
from app.settings import Settings
from app.telemetry import metrics

router = APIRouter(tags=["health"])


def shown(settings: Settings) -> bool:
    """Whether they are shown there: not to strangers, and not where they have a port of their own."""
    return settings.metrics_port is None and settings.on_loopback


@router.get("/metrics", include_in_schema=False)
def get_metrics(app: App) -> Response:
    """In Prometheus's text format."""
    if not shown(app.settings):
        raise NotFoundError("Metrics are not shown here; ENGRAM_METRICS_PORT gives them a port of their own.")
    return Response(metrics.exposition(app.state.metrics), media_type=metrics.CONTENT_TYPE)
