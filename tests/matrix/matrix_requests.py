"""The requests that every application of the matrix is asked, each a name and its bytes.

Not what is right: the answers of two servers are compared, whatever they are.
"""

from __future__ import annotations

BOUNDARY = "a-boundary"

MULTIPART = (
    f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="räksmörgås.txt"\r\n'
    f"Content-Type: text/plain\r\n\r\n{'z' * 100_000}\r\n--{BOUNDARY}--\r\n"
).encode()
FORM = b"one=1&two=%C3%A9%20%2B+x"


def plain(target: str, method: str = "GET", *lines: str) -> bytes:
    """A request without a body."""
    return "\r\n".join([f"{method} {target} HTTP/1.1", "Host: example.org", *lines, "", ""]).encode()


def post(target: str, body: bytes, kind: str) -> bytes:
    """A request whose body has a length."""
    return plain(target, "POST", f"Content-Type: {kind}", f"Content-Length: {len(body)}") + body


def post_in_chunks(target: str, body: bytes, kind: str) -> bytes:
    """A request whose body comes in chunks."""
    head = plain(target, "POST", f"Content-Type: {kind}", "Transfer-Encoding: chunked")
    pieces = [body[at : at + 997] for at in range(0, len(body), 997)]
    return head + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


# Asked again until the task has run: it may go on behind its answer.
DONE = "what a background task has done"

REQUESTS: dict[str, bytes] = {
    "plain text": plain("/"),
    "HEAD": plain("/", "HEAD"),
    "OPTIONS": plain("/", "OPTIONS"),
    "a method that is not there": plain("/", "DELETE"),
    "a query": plain("/query?one=1&two=%C3%A9%20%2B+x&empty="),
    "a synchronous handler": plain("/thread"),
    "a form": post("/form", FORM, "application/x-www-form-urlencoded"),
    "a form that is malformed": post("/upload", b"--nonsense", f"multipart/form-data; boundary={BOUNDARY}"),
    "an upload": post("/upload", MULTIPART, f"multipart/form-data; boundary={BOUNDARY}"),
    "an upload in chunks": post_in_chunks("/upload", MULTIPART, f"multipart/form-data; boundary={BOUNDARY}"),
    "an echo": post("/echo", bytes(range(256)) * 500, "application/octet-stream"),
    "an echo in chunks": post_in_chunks("/echo", bytes(range(256)) * 500, "application/octet-stream"),
    "an empty body": post("/echo", b"", "application/octet-stream"),
    "a stream": plain("/stream"),
    "a stream, HEAD": plain("/stream", "HEAD"),
    "server-sent events": plain("/events"),
    "a session": plain("/session"),
    "a session again": plain("/session"),
    "a background task": plain("/background", "POST", "Content-Length: 0"),
    DONE: plain("/background"),
    "a file": plain("/file"),
    "a file, HEAD": plain("/file", "HEAD"),
    "a part of a file": plain("/file", "GET", "Range: bytes=10-19"),
    "a file that is known": plain("/file", "GET", "If-None-Match: *"),
    "a file, compressed": plain("/file", "GET", "Accept-Encoding: gzip"),
    "a path with everything": plain("/item/%C3%BC%20%2B+x%25"),
    "a redirection": plain("/redirect"),
    "no content": plain("/nothing"),
    "another after no content": plain("/"),
    "nothing there": plain("/nothing/there"),
    "an exception": plain("/boom"),
    "another after it": plain("/"),
}
