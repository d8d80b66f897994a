"""The same request however it is cut into segments."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness import UVICORN, Server, request

BODY = b"a\r\n0123456789\r\n5;ext=1\r\nabcde\r\n0\r\nX-Trailer: y\r\n\r\n"
CHUNKED = b"POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n" + BODY

# So many small chunks at once are joined before they are read.
CRUMBS = b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in (b"%d" % number for number in range(40)))

REQUESTS = {
    "no body": (request("/echo?q=%20", headers=[("X-One", "1")]), b""),
    "length": (request("/echo", method="POST", body=b"0123456789"), b"0123456789"),
    "chunked": (CHUNKED, b"0123456789abcde"),
    "crumbs": (
        CHUNKED.removesuffix(BODY) + CRUMBS + b"0\r\n\r\n",
        b"".join(b"%d" % number for number in range(40)),
    ),
}


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("wire_app:app", "--loop", loop, "--no-access-log") as server:
        yield server


@pytest.mark.parametrize("kind", REQUESTS)
def test_a_request_cut_in_two_at_any_byte_is_the_same_request(server: Server, kind: str) -> None:
    data, body = REQUESTS[kind]
    with server.connect() as client, server.connect() as other:
        for cut in range(1, len(data)):
            client.send(data[:cut])
            # A whole exchange elsewhere: the server has had the time to see half a request.
            other.assert_open()
            client.send(data[cut:])
            response = client.read_response()
            assert (response.status, response.body) == (200, body), cut


@pytest.mark.parametrize("kind", REQUESTS)
def test_a_request_that_comes_byte_by_byte_is_the_same_request(server: Server, kind: str) -> None:
    data, body = REQUESTS[kind]
    with server.connect() as client, server.connect() as other:
        for index in range(len(data)):
            client.send(data[index : index + 1])
            other.assert_open()
        response = client.read_response()
        assert (response.status, response.body) == (200, body)


@pytest.mark.parametrize("kind", REQUESTS)
def test_two_requests_cut_at_any_byte_are_two_requests(server: Server, kind: str) -> None:
    data, body = REQUESTS[kind]
    pair = data + data
    with server.connect() as client, server.connect() as other:
        for cut in range(len(data) - 5, min(len(pair), len(data) + 40)):
            client.send(pair[:cut])
            other.assert_open()
            client.send(pair[cut:])
            assert [client.read_response().body for _ in range(2)] == [body, body], cut


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 16, 100, 4096])
def test_an_upload_in_segments_of_any_size_arrives_whole(server: Server, size: int) -> None:
    body = bytes(range(256)) * (4 if size < 16 else 64)
    data = request("/echo", method="POST", body=body)
    with server.connect() as client:
        for index in range(0, len(data), size):
            client.send(data[index : index + size])
        assert client.read_response().body == body


@pytest.mark.parametrize("size", [1, 2, 7, 255, 4096, 65_536])
def test_a_chunked_upload_of_any_chunk_size_arrives_whole(server: Server, size: int) -> None:
    body = bytes(range(256)) * (8 if size < 255 else 1024)
    chunks = [body[index : index + size] for index in range(0, len(body), size)]
    wire = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    with server.connect() as client:
        client.send(b"POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n" + wire)
        assert client.read_response().body == body
        client.assert_open()


# Two reads of hyper's, at first, are shorter than this line.
LONG = b"GET /scope HTTP/1.1\r\nHost: test\r\nX-Long: " + b"x" * 16_000 + b"\r\nX-Next: y\r\n\r\n"


@pytest.mark.parametrize(
    "cut", [1, 3, 18, 19, 20, 21, 33, 40, 45, 4_000, 8_200, 16_040, len(LONG) - 3, len(LONG) - 1]
)
def test_a_line_longer_than_a_read_that_is_cut_is_one_line(server: Server, cut: int) -> None:
    with server.connect() as client, server.connect() as other:
        client.send(LONG[:cut])
        other.assert_open()
        client.send(LONG[cut:] + LONG)
        for _ in range(2):
            headers = client.read_response().json()["headers"]
            assert headers == [["host", "test"], ["x-long", "x" * 16_000], ["x-next", "y"]]


@pytest.mark.skipif(UVICORN, reason="uvicorn takes some of them")
@pytest.mark.parametrize(
    "line", [b"a b: c", b"a: b\x01c", b": a", b"a\x00", b"a: b\rc: d", b"GET / HTTP/9.9"]
)
def test_a_line_that_is_refused_has_its_reason_wherever_it_is_cut(server: Server, line: bytes) -> None:
    data = b"GET /hello HTTP/1.1\r\nHost: test\r\n" + line + b"\r\n\r\n"
    if line.startswith(b"GET"):
        data = line + b"\r\nHost: test\r\n\r\n"
    with server.connect() as other:
        for cut in range(1, data.index(line) + len(line) + 2):
            with server.connect() as client:
                client.send(data[:cut])
                other.assert_open()
                client.try_send(data[cut:])
                response = client.read_response()
                assert (response.status, response.header("server")) in (
                    (400, "bridgehead"),
                    (505, "bridgehead"),
                ), cut
                assert b":" in response.body or response.status == 505, cut
