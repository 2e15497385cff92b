"""The recorder's control socket: JSON lines, the same user only, never waited for."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
import struct
from typing import TYPE_CHECKING, Any

from heatsoak.clock import monotonic_s
from heatsoak.errors import HeatsoakError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REQUEST_BYTES = 8192
"""A longer request is refused."""
PATIENCE_S = 5.0
"""A client that has not asked, or not read its answer, within this time is dropped."""
CONNECTIONS = 16
"""More at a time are refused."""


class Control:
    """Answers requests within the recorder's loop."""

    def __init__(
        self,
        path: Path,
        selector: selectors.BaseSelector,
        answer: Callable[[dict[str, Any]], dict[str, Any]],
    ) -> None:
        """Listen at `path`.

        Args:
            path: of the socket, in a folder of this user alone.
            selector: the loop's; a ready file object of it whose data is a callable is called.
            answer: makes the answer to a request, or raises `HeatsoakError`.
        """
        self._selector = selector
        self._answer = answer
        self._connections: dict[socket.socket, _Connection] = {}
        path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.setblocking(False)
        self._listener.bind(str(path))
        path.chmod(0o600)
        self._listener.listen(CONNECTIONS)
        selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def expire(self) -> None:
        """Drop the clients that keep us waiting; call it about once a second."""
        now_s = monotonic_s()
        for connection in list(self._connections.values()):
            if now_s > connection.until_s:
                self._drop(connection)

    def close(self) -> None:
        """Stop listening; the socket's file is the registry's to remove."""
        for connection in list(self._connections.values()):
            connection.send()  # Once more: the last answer may be that the run has ended.
            self._drop(connection)
        self._selector.unregister(self._listener)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            peer, _ = self._listener.accept()
            if len(self._connections) >= CONNECTIONS or peer_uid(peer) != os.getuid():
                peer.close()
                return
            peer.setblocking(False)
            connection = _Connection(peer)
            self._connections[peer] = connection
            self._selector.register(peer, selectors.EVENT_READ, lambda: self._serve(connection))

    def _serve(self, connection: _Connection) -> None:
        if connection.is_sending:
            is_going_on = connection.send()
        else:
            request = connection.receive()
            is_going_on = request is not None
            if request:
                connection.outgoing = json.dumps(self._respond(request)).encode() + b"\n"
                is_going_on = connection.send()
        if not is_going_on:
            self._drop(connection)
        elif connection.is_sending:
            self._selector.modify(
                connection.peer, selectors.EVENT_WRITE, lambda: self._serve(connection)
            )

    def _respond(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
        except ValueError:
            return {"error": "not JSON"}
        if not isinstance(request, dict):
            return {"error": "not a JSON object"}
        try:
            return {"ok": True} | self._answer(request)
        except HeatsoakError as error:
            return {"error": str(error)}

    def _drop(self, connection: _Connection) -> None:
        self._selector.unregister(connection.peer)
        del self._connections[connection.peer]
        connection.peer.close()


class _Connection:
    """One client: one request, one answer."""

    def __init__(self, peer: socket.socket) -> None:
        self.peer = peer
        self.until_s = monotonic_s() + PATIENCE_S
        self.outgoing = b""
        self._incoming = b""

    @property
    def is_sending(self) -> bool:
        return bool(self.outgoing)

    def receive(self) -> bytes | None:
        """The request's line once it is whole, b"" before; None: the client is to be dropped."""
        try:
            data = self.peer.recv(REQUEST_BYTES)
        except BlockingIOError:
            return b""
        except ConnectionError:
            return None
        self._incoming += data
        line, end, _ = self._incoming.partition(b"\n")
        if end:
            return line or b"null"
        if len(self._incoming) > REQUEST_BYTES:
            self.outgoing = b'{"error": "the request is too long"}\n'
            self.send()
            return None
        return b"" if data else None

    def send(self) -> bool:
        """Send what the client takes now; whether there is more to do."""
        try:
            sent = self.peer.send(self.outgoing) if self.outgoing else 0
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        self.outgoing = self.outgoing[sent:]
        return bool(self.outgoing)


def peer_uid(peer: socket.socket) -> int:
    """User id of the process at the other end of a Unix socket."""
    size = struct.calcsize("3i")
    _, uid, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return int(uid)
