"""A server whose headers come a line at a time and never end."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def drip_headers(hung_up: threading.Event | None = None) -> Iterator[str]:
    """Run one; yields its address.

    Args:
        hung_up: set once the client closes its connection.
    """
    is_over = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            try:
                connection.sendall(b"HTTP/1.1 200 OK\r\n")
                while not is_over.wait(0.02):
                    connection.sendall(b"X-Thinking: yes\r\n")
            except OSError:
                if hung_up is not None:
                    hung_up.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        dripping = threading.Thread(target=drip, args=(listener,))
        dripping.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        is_over.set()
        dripping.join()
