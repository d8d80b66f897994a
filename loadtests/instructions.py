"""Counts the processor's instructions for one request: `make bench-guard`.

callgrind runs the server. The kernel is not counted, and a figure hardly depends on what else the machine
does: it finds what no stopwatch on a shared machine can. It says nothing of time: see compare.py for that.

Invariant: each answer is compared with what is due, and what is counted are the same requests every time.
"""

import argparse
import json
import os
import platform
import re
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
STORED = FOLDER / "instructions.json"
TOLERANCE = 0.03  # a figure may be so much above the stored one
WARM_UP = 300  # rounds before the count: caches are full, and Python has specialised its code
ROUNDS = 600
LOOKS = 5  # at a figure that is too high: a server that was kept waiting does more
START_SECONDS = 120  # callgrind takes its time
TLS = "--ssl-self-signed"
ANSWERS = re.compile(rb"HTTP/1\.1 200 OK\r\n(?:[^\r\n]+\r\n)+\r\n")


@dataclass(frozen=True, slots=True)
class Case:
    """One row: what is asked, on how many connections at once."""

    name: str
    app: str = "apps:hello"
    body: bytes = b""
    due: bytes = b"hello"
    connections: int = 1
    chunked: bool = False
    options: tuple[str, ...] = ()
    rounds: int = ROUNDS

    @property
    def is_secure(self) -> bool:
        """Whether it is asked by TLS."""
        return TLS in self.options


CASES = (
    Case("hello"),
    Case("hello, 16 at once", connections=16, rounds=60),
    Case("hello, uvloop", options=("--loop=uvloop",)),
    Case("hello, TLS", options=(TLS,)),
    Case("POST echo 1 KB", app="apps:echo", body=b"x" * 1024, due=b"x" * 1024),
    Case("stream of 100 × 1 KB", app="apps:streams", due=b"x" * 102_400, chunked=True, rounds=60),
    Case("ten sleep(0), uvloop", app="apps:yields", options=("--loop=uvloop",)),
)


def main() -> int:
    """Count, and compare with what is stored."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="cases with this in their names")
    parser.add_argument("--store", action="store_true", help=f"write {STORED.name}: say in the commit why")
    parser.add_argument("--keep", type=Path, help="keep callgrind's files in this folder")
    options = parser.parse_args()
    cases = [case for case in CASES if options.only in case.name]
    if options.store:
        figures = {case.name: count(case, options.keep) for case in cases}
        STORED.write_text(json.dumps({"made with": made_with(), "instructions": figures}, indent=2) + "\n")
        return 0
    stored = json.loads(STORED.read_text())
    if stored["made with"] != made_with():
        print(f"not compared: stored are figures made with {stored['made with']}, these with {made_with()}")
        stored["instructions"] = {}
    worse = sum(is_worse(case, stored["instructions"].get(case.name), options.keep) for case in cases)
    print(f"{len(cases)} cases counted, {worse} more than {TOLERANCE:.0%} above the stored figure")
    return int(worse > 0)


def is_worse(case: Case, stored: int | None, keep: Path | None) -> bool:
    """Whether it takes more than it did, however often it is looked at."""
    for _ in range(LOOKS):
        found = count(case, keep)
        change = f"{found / stored - 1:+7.1%} of {stored:,}" if stored else ""
        print(f"{case.name:24} {found:>10,} instructions {change}", flush=True)
        if stored is None or found <= stored * (1 + TOLERANCE):
            return False
    return True


def made_with() -> dict[str, str]:
    """What a figure depends on besides our code."""
    rust = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.split()[
        1
    ]
    return {"python": platform.python_version(), "rustc": rust, "machine": platform.machine()}


def count(case: Case, keep: Path | None) -> int:
    """Instructions for one request."""
    with ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        counts = counted(case, folder)
        total = re.search(r"^(?:totals|summary): (\d+)", counts.read_text(), re.MULTILINE)
        assert total is not None, f"{counts} has no sum"
        return round(int(total[1]) / (case.rounds * case.connections))


def counted(case: Case, folder: Path, callers: int = 0) -> Path:
    """callgrind's own file, with what so many callers brought kept apart."""
    folder.mkdir(parents=True, exist_ok=True)
    output = folder / f"{case.name.replace(' ', '-')}.out"
    with ExitStack() as stack:
        process, port = stack.enter_context(started(case, output, callers))
        clients = [stack.enter_context(connected(port, case)) for _ in range(case.connections)]
        for _ in range(WARM_UP // case.connections):
            ask(clients, case)
        control("--zero", process)
        for _ in range(case.rounds):
            ask(clients, case)
        control("--dump", process)
    return output.with_name(f"{output.name}.1")


@contextmanager
def started(case: Case, output: Path, callers: int) -> Iterator[tuple[int, int]]:
    """A server below callgrind: its process and its port."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        number = listening.fileno()
        command = [
            *("valgrind", "--tool=callgrind", f"--callgrind-out-file={output}", "--quiet"),
            f"--separate-callers={callers}",
            *(sys.executable, "-m", "bridgehead", case.app, f"--fd={number}", "--no-access-log"),
            *("--loop=asyncio", "--no-date-header", *case.options),
        ]
        # The same hashes of texts every time, and no look at who reads.
        environ = {**os.environ, "PYTHONHASHSEED": "0"}
        with subprocess.Popen(
            command, cwd=FOLDER, env=environ, pass_fds=[number], stderr=subprocess.PIPE
        ) as process:
            try:
                assert process.stderr is not None
                for line in process.stderr:
                    if b"startup complete" in line:
                        break
                yield process.pid, listening.getsockname()[1]
            finally:
                process.terminate()
                process.communicate()


def control(what: str, process: int) -> None:
    """Tells callgrind."""
    subprocess.run(["callgrind_control", what, str(process)], check=True, stdout=subprocess.DEVNULL)


def connected(port: int, case: Case) -> socket.socket:
    """A client, who trusts whatever certificate it is shown."""
    client = socket.create_connection(("127.0.0.1", port), timeout=START_SECONDS)
    if not case.is_secure:
        return client
    anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    return anybody.wrap_socket(client)


def ask(clients: list[socket.socket], case: Case) -> None:
    """One request on each connection, all sent before the first answer is read."""
    head = b"Host: 127.0.0.1\r\nUser-Agent: instructions\r\nAccept: */*\r\n"
    if case.body:
        request = b"POST / HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s" % (head, len(case.body), case.body)
    else:
        request = b"GET / HTTP/1.1\r\n%s\r\n" % head
    for client in clients:
        client.sendall(request)
    last = b"\r\n0\r\n\r\n" if case.chunked else case.due
    for client in clients:
        answer = b""
        while not answer.endswith(last):
            piece = client.recv(262_144)
            assert piece, f"{case.name}: the connection was closed behind {answer[:200]!r}"
            answer += piece
        found = ANSWERS.match(answer)
        assert found is not None, answer[:200]
        body = answer[found.end() :]
        assert (dechunked(body) if case.chunked else body) == case.due


def dechunked(body: bytes) -> bytes:
    """What the chunks hold."""
    parts = []
    while body:
        size, _, rest = body.partition(b"\r\n")
        parts.append(rest[: int(size, 16)])
        body = rest[int(size, 16) + 2 :]
    return b"".join(parts)


if __name__ == "__main__":
    sys.exit(main())
