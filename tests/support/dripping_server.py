"""A server whose headers come a line at a time and never end."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def drip_headers() -> Iterator[str]:
    """Run one; yields its address."""
    is_over = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while not is_over.wait(0.02):
                connection.sendall(b"X-Thinking: yes\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        dripping = threading.Thread(target=drip, args=(listener,))
        dripping.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        is_over.set()
        dripping.join()
