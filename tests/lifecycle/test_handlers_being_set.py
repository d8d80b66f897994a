"""A signal between the setting of a handler and our taking it back, with a thread that may take it."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, threading
from bridgehead import own_handlers

came, sent = [], []
leave = threading.Event()
threading.Thread(target=leave.wait).start()

def changed():
    if not sent:
        sent.append(signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)

def handler(number, frame):
    print("handled", flush=True)
    if {raises}:
        raise SystemExit(7)

own_handlers.watch([signal.SIGTERM], changed, lambda: came.append("came"))
try:
    signal.signal(signal.SIGTERM, handler)
finally:
    own_handlers.forget()
    leave.set()
    print(*came, signal.set_wakeup_fd(-1), signal.pthread_sigmask(signal.SIG_BLOCK, ()), flush=True)
"""


@pytest.mark.parametrize(("raises", "code"), [(False, 0), (True, 7)])
def test_a_signal_while_a_handler_is_being_set_is_told_at_once_also_if_the_handler_raises(
    raises: bool, code: int
) -> None:
    program = [sys.executable, "-c", PROGRAM.format(raises=raises)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=20, check=False)
    handled, told = ended.stdout.splitlines()
    assert (handled, told, ended.returncode) == ("handled", "came -1 set()", code), ended.stderr
