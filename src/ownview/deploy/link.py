"""One place's connection at the coordinator: a message goes out, its answer comes in, then the next.

One thread alone reads and writes, because TLS connections bear no more. Others put messages into its box and wake it.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import ssl
import threading
from collections.abc import Callable

from ownview.base.errors import MessageError
from ownview.deploy.frames import receive_frame, send_frame


class Link:
    """A connection and what waits to be sent over it.

    Args:
        connection: on which both ends have greeted each other.
        arrived: is given every answer.
    """

    def __init__(self, connection: ssl.SSLSocket, arrived: Callable[[bytes], None]) -> None:
        self.connection, self.arrived = connection, arrived
        self.box: list[bytes] = []
        self.asked: bytes | None = None
        self.guard = threading.Lock()
        self.closed = False
        self.woken, self.waker = os.pipe()
        self.selector = selectors.DefaultSelector()
        for one in (connection.fileno(), self.woken):
            self.selector.register(one, selectors.EVENT_READ)

    def send(self, message: bytes) -> None:
        """Put a message into the box, unless it is there already or its answer is being waited for."""
        with self.guard:
            if not self.closed and message != self.asked and message not in self.box:
                self.box.append(message)
                os.write(self.waker, b"!")

    def close(self) -> None:
        """Let the thread that attends to it end."""
        with self.guard:
            if not self.closed:
                self.closed = True
                os.write(self.waker, b"!")

    def attend(self) -> None:
        """Send and receive until the other end goes, or somebody closes it."""
        try:
            while self._wait():
                with self.guard:
                    self.asked = self.box.pop(0) if self.box else None
                if self.asked is not None:
                    send_frame(self.connection, self.asked)
                    if not self._wait_for_answer():
                        break
                    self.arrived(receive_frame(self.connection))
                    self.asked = None
        except (OSError, MessageError):
            pass
        finally:
            self._end()

    def _wait(self) -> bool:
        """Until there is something to send; False where the connection ends instead."""
        while not self.closed and not self.box:
            if not self._woken() and self._spoke_unasked():
                return False
        return not self.closed

    def _wait_for_answer(self) -> bool:
        """Until the answer begins to come; False where somebody closes the connection first."""
        while not self.closed and not self.connection.pending():
            if not self._woken():
                return True
        return not self.closed

    def _woken(self) -> bool:
        """Wait for the other end or for somebody here; True where it was somebody here."""
        ready = [key.fd for key, _ in self.selector.select()]
        if self.woken in ready:
            os.read(self.woken, 1 << 10)
        return self.woken in ready

    def _spoke_unasked(self) -> bool:
        """Whether a place that nobody has asked speaks or has gone; it may be that TLS itself had something to say."""
        self.connection.settimeout(0)
        try:
            self.connection.recv(1)
        except (ssl.SSLWantReadError, BlockingIOError):
            return False
        else:
            return True
        finally:
            self.connection.settimeout(None)

    def _end(self) -> None:
        with self.guard:
            self.closed = True
            self.selector.close()
            os.close(self.woken)
            os.close(self.waker)
        hang_up(self.connection)


def hang_up(connection: socket.socket) -> None:
    """Close a connection, whatever state it is in."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError):
        connection.close()
