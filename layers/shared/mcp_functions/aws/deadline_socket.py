"""A deadline, and a socket whose reads and writes end at it."""

from __future__ import annotations

import time
from io import BufferedReader, RawIOBase
from typing import TYPE_CHECKING

from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from _typeshed import WriteableBuffer


class Deadline(NamedTuple):
    """The time at which a call must end, in seconds of its clock."""

    ends: float
    clock: Callable[[], float]

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> Deadline:
        """Return the deadline that is `seconds` away."""
        return cls(clock() + seconds, clock)

    def within(self, seconds: float) -> Deadline:
        """Return this deadline, or an earlier one if `seconds` end before it."""
        return self._replace(ends=min(self.ends, self.clock() + seconds))

    def remaining(self) -> float:
        """Return the seconds until the deadline.

        Raises:
            TimeoutError: the deadline has passed.
        """
        seconds = self.ends - self.clock()
        if seconds <= 0:
            raise TimeoutError
        return seconds


class DeadlineSocket:
    """A connected socket with the methods that http.client calls. All reads and writes together end at one deadline.

    A socket's own timeout starts again with every byte, so a server that sends slowly could hold it open for ever.
    """

    def __init__(self, connected: socket.socket, deadline: Deadline) -> None:
        """Wrap a connected socket."""
        self._socket = connected
        self.deadline = deadline

    def sendall(self, content: bytes) -> None:
        """Send all bytes."""
        rest = memoryview(content)
        while rest:
            self.set_timeout()
            rest = rest[self._socket.send(rest) :]

    def makefile(self, _mode: str) -> BufferedReader:
        """Return a buffered reader."""
        return BufferedReader(_Reader(self, self._socket.makefile("rb", buffering=0)))

    def set_timeout(self) -> None:
        """Give the next operation the time until the deadline.

        Raises:
            TimeoutError: the deadline has passed.
        """
        self._socket.settimeout(self.deadline.remaining())

    def fileno(self) -> int:
        """Return the file descriptor, for `select`."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket, once its reader is closed too."""
        self._socket.close()


class _Reader(RawIOBase):
    """Reads from a socket's file, and gives each read the time until the deadline."""

    def __init__(self, deadline_socket: DeadlineSocket, source: RawIOBase) -> None:
        self._socket = deadline_socket
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        self._socket.set_timeout()
        return self._source.readinto(buffer)

    def close(self) -> None:
        self._source.close()
        super().close()
