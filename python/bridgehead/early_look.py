"""What would end a start only once the application is up, and is known before: who has our place.

Not the taking of it (`sockets.py`, `pidfile.py`): nobody can connect to a server whose application is not up.

Invariant: nothing is held afterwards; whoever comes in the meantime is found when the place is taken.
"""

from bridgehead import admin, pidfile
from bridgehead.config import Config
from bridgehead.sockets import refuse_taken


def look(config: Config) -> None:
    """Refuse what another server has."""
    pidfile.refuse_another(config.pidfile)
    refuse_taken(config.addresses())
    admin.refuse_taken(config)
