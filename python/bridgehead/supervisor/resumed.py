"""The parent that a process becomes which has served by itself: `python -m bridgehead.supervisor.resumed`.

Not a command for people: a number is given, that of a file that says what there is (`handover.py`).

Invariant: this program never imports the application, and no signal is lost between the two.
"""

import signal
import sys
from typing import NoReturn

from bridgehead import log, pidfile
from bridgehead.admin import Desk
from bridgehead.caught import Caught
from bridgehead.notices import Notices
from bridgehead.supervisor import anew
from bridgehead.supervisor.anew import CHECK
from bridgehead.supervisor.crew import SIGNALS, Crew
from bridgehead.supervisor.handover import Handover


def main() -> NoReturn:
    """Be the parent, until told to stop."""
    if sys.argv[1] == CHECK:
        sys.exit(0)
    handover = Handover.read(int(sys.argv[1]))
    terms = handover.terms()
    log.configure(terms.config)
    if terms.figures.begin_anew:
        log.logger().warning("The program before counted in another form: what is counted begins anew.")
    file = pidfile.write_again(terms.config.pidfile)
    with Caught(SIGNALS) as caught:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        desk = Desk(terms.config, terms.figures.sheets, handover.left_by_operators())
        crew = Crew(terms, may_leave=anew.starts)
        crew.take_over(handover.crew)
        if handover.anew:
            log.logger().info("A new program is the parent now. Its workers are replaced.")
            crew.reload()
        else:
            Notices(terms.home.environ).ready()
        try:
            anew.run(terms, crew, desk, caught)
        finally:
            desk.close()
            terms.slots.close()
            pidfile.remove(file)
    sys.exit(0)


if __name__ == "__main__":
    main()
