"""`bridgehead ctl`: asks a running server, by its control socket.

Not what it answers (`supervisor/questions.py`).

Invariant: exit code 0 says that the server has taken it, or with `--wait` has done it; what it says to a
refusal is on stderr.
"""

import argparse
import json
import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from bridgehead.errors import StartError

_VARIABLE = "BRIDGEHEAD_CONTROL_SOCKET"
_PATIENCE = 10.0  # seconds for an answer, which is given at once
_LOOK = 0.1  # seconds between two looks at what is waited for
_REFUSED = 1


def main(words: Sequence[str]) -> int:
    """Ask; the exit code."""
    asked = _parser().parse_args(words)
    if not asked.socket:
        raise StartError("no control socket is named", f"write --control-socket PATH, or set {_VARIABLE}")
    question = {name: value for name, value in vars(asked).items() if name not in ("socket", "json")}
    waits = question.pop("wait", False)
    answer = ask(asked.socket, question)
    if answer["ok"] and waits:
        answer = _reloaded(asked.socket)
    if asked.json:
        sys.stdout.write(json.dumps(answer, indent=2) + "\n")
    elif not answer["ok"]:
        sys.stderr.write(f"bridgehead: error: {answer['error']}\n")
    elif asked.do == "status":
        sys.stdout.write(_table(answer))
    return 0 if answer["ok"] else _REFUSED


def ask(path: str, question: Mapping[str, Any]) -> dict[str, Any]:
    """The server's answer."""
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.settimeout(_PATIENCE)
            server.connect(path)
            server.sendall(json.dumps(question).encode() + b"\n")
            with server.makefile("rb") as said:
                line = said.readline()
    except OSError as problem:
        hint = "start the server with --control-socket, and ask as its user"
        raise StartError(f"{path}: nobody answers: {problem.strerror or problem}", hint) from None
    if not line:
        raise StartError(f"{path}: the server has said nothing", "look at its log")
    answer: dict[str, Any] = json.loads(line)
    return answer


def _reloaded(path: str) -> dict[str, Any]:
    """What becomes of the reload that is underway; as if it had been the answer."""
    while (status := ask(path, {"do": "status"}))["state"] == "reloading":
        time.sleep(_LOOK)
    if status["reload"] == "complete":
        return {"ok": True}
    return {"ok": False, "error": "the reload has failed, and the old workers serve on: see the server's log"}


def _table(status: Mapping[str, Any]) -> str:
    lines = [
        f"parent {status['pid']}: {status['state']}, {status['wanted']} workers wanted",
        *(f"  on {each}" for each in status["addresses"]),
        f"{'worker':>8} {'state':10} {'requests':>10} {'seconds':>10} {'MiB':>7}",
    ]
    for each in status["workers"]:
        seconds = "-" if each["seconds"] is None else each["seconds"]
        memory = each["memory"] / 1024**2
        lines.append(
            f"{each['pid']:>8} {each['state']:10} {each['requests']:>10} {seconds:>10} {memory:>7.1f}"
        )
    return "\n".join(lines) + "\n"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bridgehead ctl", description="Ask a server that runs with --control-socket."
    )
    _take_common(parser, os.environ.get(_VARIABLE), as_json=False)
    behind = argparse.ArgumentParser(add_help=False)  # the same behind a command, which outranks
    _take_common(behind, argparse.SUPPRESS, as_json=argparse.SUPPRESS)
    commands = parser.add_subparsers(dest="do", metavar="COMMAND", required=True)

    def command(name: str, says: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=says, parents=[behind])

    command("status", "who serves, and how they fare")
    reload = command("reload", "replace each worker, as SIGHUP does")
    reload.add_argument("--wait", action="store_true", help="until it is over; exit code 1 if it has failed")
    scale = command("scale", "have so many workers")
    scale.add_argument("workers", type=int, metavar="NUMBER")
    command("stop", "end in order, as SIGTERM does")
    drain = command("drain", "replace one worker: it finishes what it has begun")
    drain.add_argument("worker", type=int, metavar="PID")
    level = command("log-level", "what the server says, until its workers are replaced")
    level.add_argument("level", metavar="LEVEL")
    stacks = command("stacks", "have a worker write on its stderr where it is")
    stacks.add_argument("worker", type=int, metavar="PID")
    return parser


def _take_common(parser: argparse.ArgumentParser, path: str | None, *, as_json: bool | str) -> None:
    parser.add_argument(
        "--control-socket", dest="socket", metavar="PATH", default=path, help=f"or {_VARIABLE}"
    )
    parser.add_argument("--json", action="store_true", default=as_json, help="print the answer as it came")
