"""The parent's run, and SIGUSR2: a new version of its program goes on in its place, in the same process.

Not what is handed over (`handover.py`), and not what a parent does (`crew.py`).

Invariant: the old program gives its place only to one that has shown that it starts, and no signal is lost
between the two.
"""

import os
import signal
import subprocess
import threading

from bridgehead import log
from bridgehead.admin import Desk
from bridgehead.caught import Caught
from bridgehead.offspring import interpreter
from bridgehead.supervisor.crew import SIGNALS, Crew
from bridgehead.supervisor.desk import listen
from bridgehead.supervisor.handover import Handover
from bridgehead.supervisor.hired import Terms

CHECK = "check"  # instead of a number: only show that the program starts
_PATIENCE = 30.0  # seconds for that


def run(terms: Terms, crew: Crew, desk: Desk, caught: Caught) -> signal.Signals:
    """Be the parent until told to stop; the signal that said so."""
    if terms.config.control_socket is not None:
        crew.open_desk(listen(terms.config.control_socket))
    try:
        told = crew.run(caught)
    except SystemExit:
        log.parent_finished(os.getpid())
        raise
    if told is None:
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        for number in caught.take():
            signal.pthread_kill(threading.get_ident(), number)  # blocked: it waits
        operators = desk.leave()  # kept, since a socket that nobody has is closed
        Handover.of(terms, crew, operators, anew=True).execute()
    log.parent_finished(os.getpid())
    return told


def starts() -> bool:
    """Whether the program that is installed now comes as far as to take over."""
    command = interpreter("bridgehead.supervisor.resumed", CHECK)
    try:
        ended = subprocess.run(command, timeout=_PATIENCE, capture_output=True, text=True, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        said = str(problem)
    else:
        if ended.returncode == 0:
            return True
        said = (ended.stderr.strip().splitlines() or ["it has said nothing"])[-1]
    log.logger().error("The new program does not start: %s. This one stays.", said)
    return False
