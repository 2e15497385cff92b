"""The control socket within a loop: answers, refusals, and clients that keep it waiting."""

from __future__ import annotations

import json
import selectors
import socket
import stat

import pytest

from heatsoak.errors import UsageError
from heatsoak.recorder import control
from heatsoak.recorder.control import Control, peer_uid


class Loop:
    def __init__(self, path, answer):
        self.selector = selectors.DefaultSelector()
        self.path = path
        self.control = Control(path, self.selector, answer)

    def turn(self):
        for key, _ in self.selector.select(0):
            key.data()

    def connect(self):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.settimeout(5.0)
        client.connect(str(self.path))
        return client

    def ask(self, until, data):
        """What comes back to raw bytes, up to the end of the connection."""
        with self.connect() as client:
            client.sendall(data)
            client.setblocking(False)
            received = b""

            def is_closed():
                nonlocal received
                self.turn()
                try:
                    part = client.recv(65536)
                except BlockingIOError:
                    return False
                except ConnectionResetError:
                    return True
                received += part
                return not part

            until(is_closed)
            return received


@pytest.fixture
def loop(tmp_path, monkeypatch):
    import tempfile
    from pathlib import Path

    def answer(request):
        if request.get("command") == "refuse":
            raise UsageError("refused in words")
        return {"echo": request}

    with tempfile.TemporaryDirectory(prefix="hs-") as folder:
        loop = Loop(Path(folder) / "c.sock", answer)
        yield loop
        loop.control.close()
        loop.selector.close()


def test_a_request_is_answered_and_the_connection_closed(loop, until):
    answer = json.loads(loop.ask(until, b'{"command": "status"}\n'))
    assert answer == {"ok": True, "echo": {"command": "status"}}


def test_a_refusal_is_told_in_words(loop, until):
    assert json.loads(loop.ask(until, b'{"command": "refuse"}\n')) == {"error": "refused in words"}


@pytest.mark.parametrize("line", [b"nonsense\n", b"[]\n", b"\n", b"\xff\xfe\n"])
def test_what_is_no_request_is_refused(loop, until, line):
    assert "error" in json.loads(loop.ask(until, line))


def test_a_request_may_come_in_pieces(loop, until):
    with loop.connect() as client:
        client.sendall(b'{"comm')
        for _ in range(3):
            loop.turn()
        client.sendall(b'and": "status"}\n')
        for _ in range(3):
            loop.turn()
        assert json.loads(client.recv(4096))["ok"] is True


def test_an_endless_request_is_refused(loop, until):
    assert b"too long" in loop.ask(until, b"x" * 3 * control.REQUEST_BYTES)


def test_a_client_that_says_nothing_is_dropped(loop, until, monkeypatch):
    with loop.connect() as client:
        loop.turn()
        monkeypatch.setattr(control, "monotonic_s", lambda: 1e12)
        loop.control.expire()
        assert client.recv(1) == b""


def test_a_client_that_leaves_is_forgotten(loop, until):
    loop.connect().close()
    until(lambda: loop.turn() or len(loop.selector.get_map()) == 1)


def test_too_many_clients_are_refused(loop, until):
    clients = [loop.connect() for _ in range(control.CONNECTIONS)]
    for _ in clients:
        loop.turn()
    with loop.connect() as one_more:
        loop.turn()
        assert one_more.recv(1) == b""
    for client in clients:
        client.close()


def test_the_socket_is_this_users_alone(loop):
    assert stat.S_IMODE(loop.path.stat().st_mode) == 0o600


def test_another_users_requests_are_refused(loop, monkeypatch):
    monkeypatch.setattr(control, "peer_uid", lambda peer: peer_uid(peer) + 1)
    with loop.connect() as client:
        loop.turn()
        assert client.recv(1) == b""
