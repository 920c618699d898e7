"""Registers the Mirroring page with Airflow: an entry in the navigation and the application behind it.

Airflow loads plugins into every process it runs, also the scheduler's and the tasks'. Only the API server
serves the page, so the application is built at its first request and the others never import it.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.plugins_manager import AirflowPlugin

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import Receive, Scope, Send

PREFIX = "/twinlog"
STATIC = Path(__file__).parent / "static"


class MirroringPage:
    """The page as an ASGI application."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._application(scope, receive, send)

    @cached_property
    def _application(self) -> FastAPI:
        from twinlog.airflow.page import application  # noqa: PLC0415 - see the module's text

        return application(STATIC)


class TwinlogPlugin(AirflowPlugin):
    """What Airflow reads: class attributes, as it wants them."""

    name = "twinlog"
    fastapi_apps = [{"app": MirroringPage(), "url_prefix": PREFIX, "name": "Twinlog"}]  # noqa: RUF012
    external_views = [  # noqa: RUF012
        {"name": "Mirroring", "href": f"{PREFIX}/", "url_route": "mirroring", "destination": "nav"}
    ]
