"""What a profile is made of: a little of every kind of request, for `make wheel-pgo`.

Not a measurement, and not peers: how long anything takes is of no interest here.

Invariant: every answer is one that was due, or the training fails, and all servers are ended in order.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from servers import CERTIFICATE, FOLDER, KEY, OURS, START_SECONDS, await_listening, free_port

from bridgehead.load import load

SECONDS = "2s"
TLS = (f"--ssl-certfile={CERTIFICATE}", f"--ssl-keyfile={KEY}")

BROWSER = (
    ("user-agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0"),
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8"),
    ("accept-language", "en-GB,en;q=0.5"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("cookie", "session=0123456789abcdef0123456789abcdef; theme=dark"),
)

# An application, options of the server, and what is asked of it, each with so many connections.
LESSONS: list[tuple[str, tuple[str, ...], list[dict[str, object]]]] = [
    ("apps:hello", (), [{"connections": count} for count in (1, 64, 256)]),
    ("apps:hello", ("--loop=asyncio",), [{"connections": 64}]),
    ("apps:hello", ("--runtime=threaded",), [{"connections": 64}]),
    (
        "apps:hello",
        (),
        [{"connections": 16, "keep_alive": False}, {"connections": 16, "http": "2", "streams": 16}],
    ),
    ("apps:echo", (), [{"connections": 64, "method": "POST", "body": "x" * size} for size in (1024, 65_536)]),
    ("apps:streams", (), [{"connections": 64}]),
    ("apps:reads", (), [{"connections": 64}]),
    ("apps:sleeps", (), [{"connections": 256}]),
    ("apps:messages", (), [{"scheme": "ws", "connections": 16, "body": "x" * 64}]),
    ("apps:hello", ("--access-log",), [{"connections": 16, "headers": BROWSER}]),
    (
        "apps:body_10k",
        ("--compress", f"--static=/files={FOLDER}"),
        [
            {"connections": 16},
            {"connections": 16, "headers": BROWSER},
            {"connections": 16, "path": "files/apps.py"},
        ],
    ),
    (
        "apps:hello",
        TLS,
        [{"scheme": "https", "connections": 64}, {"scheme": "https", "http": "2", "streams": 16}],
    ),
]


def main() -> None:
    """Have each lesson."""
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    for app, words, asked in LESSONS:
        lesson(app, words, asked)


def lesson(app: str, words: tuple[str, ...], asked: list[dict[str, object]]) -> None:
    """One server, and what is asked of it."""
    port = free_port()
    command = [sys.executable, *(each.format(app=app, port=port) for each in OURS), *words]
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "stderr"
        with said.open("wb") as stderr:
            server = subprocess.Popen(
                command, cwd=FOLDER, stdout=subprocess.DEVNULL, stderr=stderr, env=os.environ
            )
        try:
            await_listening(server, port, said)
            for each in asked:
                options = dict(each)
                scheme, path = options.pop("scheme", "http"), options.pop("path", "")
                report = load(f"{scheme}://127.0.0.1:{port}/{path}", duration=SECONDS, **options)  # type: ignore[arg-type]
                if report.errors or not report.requests:
                    sys.exit(f"{app}: {report.errors_by_kind or 'nothing was asked'}")
        finally:
            server.send_signal(signal.SIGTERM)  # it writes its counts as it ends
            server.wait(START_SECONDS)
    print(f"{app} {' '.join(words)}".rstrip(), file=sys.stderr)


if __name__ == "__main__":
    main()
