"""The parent that a process becomes which has served by itself: `python -m bridgehead.supervisor.resumed`.

Not a command for people: a number is given, that of a file that says what there is (`handover.py`).

Invariant: this program never imports the application, and no signal is lost between the two.
"""

import os
import signal
import sys
from typing import NoReturn

from bridgehead import log, pidfile
from bridgehead.caught import Caught
from bridgehead.notices import Notices
from bridgehead.supervisor.crew import SIGNALS, Crew
from bridgehead.supervisor.handover import Handover


def main() -> NoReturn:
    """Be the parent, until told to stop."""
    handover = Handover.read(int(sys.argv[1]))
    terms = handover.terms()
    log.configure(terms.config)
    with Caught(SIGNALS) as caught:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        crew = Crew(terms)
        crew.take_over(handover.crew)
        Notices(terms.home.environ).ready()
        try:
            crew.run(caught)
        finally:
            terms.slots.close()
            pidfile.remove(terms.config.pidfile)
        log.parent_finished(os.getpid())
    sys.exit(0)


if __name__ == "__main__":
    main()
