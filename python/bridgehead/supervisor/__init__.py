"""`--workers`: a small parent that holds the sockets, and keeps so many workers running.

Here is how it begins. Several workers' life is in `crew.py`, one post's in `post.py`, and the sockets are in
`slots.py`. Not what a worker does: `member.py`.

Invariant: this process never imports the application, so that no fault of that can end it.
"""

import os
import signal
import threading
from collections.abc import Mapping
from contextlib import ExitStack

from bridgehead import log, pidfile
from bridgehead.admin import Desk
from bridgehead.caught import Caught
from bridgehead.config import Config
from bridgehead.cores import workers
from bridgehead.errors import StartError
from bridgehead.home import Home
from bridgehead.identity import identity, set_umask
from bridgehead.loop_name import in_words
from bridgehead.rights_trial import insist
from bridgehead.supervisor import anew
from bridgehead.supervisor.crew import SIGNALS, Crew
from bridgehead.supervisor.hired import Terms
from bridgehead.supervisor.slots import Slots


def run(config: Config, environ: Mapping[str, str]) -> signal.Signals:
    """Serve until told to stop, in workers with this environment; the signal that said so."""
    if not isinstance(config.app, str):
        message = "several workers need the words that name the application: other processes import it"
        raise StartError(message, 'give them instead of the object: "module:app"')
    if threading.current_thread() is not threading.main_thread():
        message = "several workers need the main thread, the only one that signals come to"
        raise StartError(message, "call it there")
    config.loop = in_words(config.loop)
    set_umask(config)
    home = Home(environ=environ, identity=identity(config))
    insist(config, home)
    with ExitStack() as stack:
        if config.ssl_self_signed:
            from bridgehead.certificates import made_once

            config = made_once(config, home.identity, stack)
        pidfile.refuse_another(config.pidfile)
        slots = Slots.bound(config, workers(config))
        stack.callback(slots.close)
        stack.callback(pidfile.remove, pidfile.write(config.pidfile))
        terms = Terms(config, home, slots)
        desk = Desk(config, terms.figures.sheets)
        stack.callback(desk.close)
        caught = stack.enter_context(Caught(SIGNALS))
        log.parent_started(os.getpid())
        return anew.run(terms, Crew(terms, may_leave=anew.starts), desk, caught)
