"""The API as a running server: the application behind the hot door, on uvicorn."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import uvicorn

from surehook.api.ingest import App

KEEP_ALIVE_S = 75  # idle connections of callers
CLOSE_S = 5  # requests under way at a shutdown may take this long
HEADER_BYTES = 32 * 1024


class Server(uvicorn.Server):
    """uvicorn without its signal handlers: the composition root has its own order of going down."""

    def __init__(self, app: App) -> None:
        super().__init__(
            uvicorn.Config(
                app,  # type: ignore[arg-type]
                http="httptools",
                loop="none",
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                date_header=True,
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=CLOSE_S,
                ws="none",
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
