"""How the server's messages leave: at once."""

from __future__ import annotations

import contextlib
import gc
import socket
from collections.abc import AsyncIterator


def send_at_once() -> None:
    """Turn Nagle's algorithm off (RFC 896) for the connections that this process takes.

    A run answers in many small messages. With the algorithm on, the second waits until the browser has acknowledged
    the first, and browsers put that off for 40 ms (RFC 1122, section 4.2.3.2). Streamlit binds its socket itself and
    leaves it on; a connection has what the socket has that took it, and only the garbage collector knows that one.
    """
    for thing in gc.get_objects():
        if type(thing) is socket.socket and thing.fileno() >= 0 and _listens(thing):
            thing.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _listens(thing: socket.socket) -> bool:
    internet = thing.family in (socket.AF_INET, socket.AF_INET6) and thing.type == socket.SOCK_STREAM
    return internet and bool(thing.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


@contextlib.asynccontextmanager
async def from_the_start(_app: object) -> AsyncIterator[None]:
    """Do so as soon as the server listens; what `st.App` calls a lifespan."""
    send_at_once()
    yield
