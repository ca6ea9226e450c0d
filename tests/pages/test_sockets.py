"""The connections that the server takes send small messages at once."""

import socket

from pages.common.sockets import send_at_once


def test_connections_taken_after_it_do_not_wait_for_acknowledgements() -> None:
    with socket.socket() as server, socket.socket() as idle:
        server.bind(("localhost", 0))
        server.listen()
        send_at_once()
        with socket.create_connection(server.getsockname()), server.accept()[0] as taken:
            assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert not idle.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
