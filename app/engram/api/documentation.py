"""``/docs``: the API's description to try out, with nothing fetched from elsewhere."""

from importlib.resources import files

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool

from engram.context.errors import NotFoundError

PATH = "/docs"
ASSETS = {
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "favicon.png": "image/png",
}
"""Of Swagger UI, as package fastapi-offline brings them."""
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Engram</title>
<link rel="icon" href="docs/favicon.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
"""
"""Its addresses are relative, since a proxy may show the service below a path."""
START = """SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  presets: [SwaggerUIBundle.presets.apis],
});
"""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'"
)
"""What the page loads, all of it from here; Swagger UI writes styles into what it shows."""
CACHE_HEADERS = {"cache-control": "public, max-age=86400"}

router = APIRouter(include_in_schema=False)


@router.get(PATH)
async def get_docs() -> Response:
    """The page."""
    return Response(PAGE, media_type="text/html")


@router.get(f"{PATH}/start.js")
async def get_start() -> Response:
    """Serve the script of the API page as its own file, so that no inline script need be allowed."""
    return Response(START, media_type="text/javascript", headers=CACHE_HEADERS)


@router.get(f"{PATH}/{{name}}")
async def get_asset(name: str) -> Response:
    """A file of Swagger UI."""
    if name not in ASSETS:
        raise NotFoundError("There is no such file.")
    content = await run_in_threadpool(files("fastapi_offline").joinpath("static", name).read_bytes)
    return Response(content, media_type=ASSETS[name], headers=CACHE_HEADERS)
