"""How connections of HTTP/2 end with their worker: rows 69 and 70 of the faults, in raw frames."""

from __future__ import annotations

from signal import SIGTERM

from harness import Server, frames
from harness.frames import GOAWAY, PING, FrameClient, frame

LAST = 2**31 - 1


def test_each_stream_up_to_the_last_that_is_named_is_answered_and_none_behind_it_runs() -> None:
    """A client hears twice of the end; what it sends in between is on its way, and is served."""
    with Server("asgi_app:app") as server, server.connect(timeout=60.0) as socket:
        client = FrameClient(socket)
        socket.send(b"".join(frames.asks(each, "/until-shutdown") for each in range(1, 101, 2)))
        for _ in range(50):
            client.until(frames.DATA)
        server.signal(SIGTERM)
        came = client.until(GOAWAY)
        assert (came.last, came.code) == (LAST, frames.NO_ERROR)
        ping = client.until(PING)
        # Streams that end by themselves have made room meanwhile.
        socket.send(frames.asks(101, "/chunks?count=1"))
        assert client.answer(101) == "200"
        socket.send(frame(PING, frames.ACK, 0, ping.payload))
        named = client.until(GOAWAY)
        assert (named.last, named.code) == (101, frames.NO_ERROR)
        socket.try_send(frames.asks(103, "/notes-if-run"))
        assert all(each.stream <= named.last for each in client.frames())
        server.assert_ended_well()
        assert server.stdout.count('"GET /until-shutdown HTTP/2" 200 OK') == 50
        assert "notes-if-run" not in server.stdout


def test_clients_that_have_begun_and_say_no_more_do_not_hold_the_end() -> None:
    begun = [
        b"PRI * HTTP/2.0\r\n",
        frames.PREFACE,
        frames.PREFACE + frames.settings(),
        frames.PREFACE + frames.settings() + frame(frames.HEADERS, 0, 1, b"\x82"),
        frames.PREFACE + frames.settings() + frames.asks(1, "/chunks?count=1")[:12],
    ]
    with Server("asgi_app:app") as server:
        clients = [server.connect() for _ in begun]
        for client, data in zip(clients, begun, strict=True):
            client.send(data)
        assert server.ask("/chunks?count=1").status == 200
        server.stop(timeout=8)
        for client in clients:
            client.read_to_any_end()
            client.close()


def test_in_a_drain_delay_who_has_been_served_is_told_and_who_comes_anew_is_served_once() -> None:
    """`Connection: close` has no other word in HTTP/2."""
    delay = ("--timeout-graceful-shutdown", "240", "--drain-delay", "120")
    with Server("asgi_app:app", *delay) as server:
        served, busy, fresh = (FrameClient(server.connect()) for _ in range(3))
        served.client.send(frames.asks(1, "/chunks?count=1"))
        assert served.answer(1) == "200"
        busy.client.send(frames.asks(1, "/until-shutdown"))
        busy.until(frames.DATA)
        fresh.until(frames.SETTINGS)
        server.signal(SIGTERM)
        server.wait_line("each answer closes its connection")
        for client in (served, busy):
            came = client.until(GOAWAY)
            assert (came.last, came.code) == (LAST, frames.NO_ERROR)
        # What was on its way is served, on a connection that was told as on one that was not.
        served.client.send(frames.asks(3, "/chunks?count=1"))
        assert served.answer(3) == "200"
        for client in (fresh, FrameClient(server.connect())):
            client.client.send(frames.asks(1, "/chunks?count=1"))
            assert client.answer(1) == "200"
            assert client.goodbye() == frames.NO_ERROR
            client.client.close()
        busy.client.send(frame(PING, frames.ACK, 0, busy.until(PING).payload))
        busy.client.close()
        served.client.close()
        server.signal(SIGTERM)
        assert server.wait_exit() == -SIGTERM
