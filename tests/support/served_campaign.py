"""A campaign that is served on a free port of loopback, from a thread of this process."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from wisecrowd.acquire.campaign import Campaign
from wisecrowd.acquire.service import make_app


@contextmanager
def serving(campaign: Campaign, secret: str | None = None) -> Iterator[str]:
    """Serve a campaign and yield the address, as ``http://127.0.0.1:8765``."""
    import uvicorn

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    app = make_app(campaign, secret, listen=("127.0.0.1", port))
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(timeout=10)
