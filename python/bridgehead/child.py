"""A process that serves for a parent, which holds the sockets: `python -m bridgehead.child NUMBER`.

Not a command for people: the number is that of a descriptor over which the parent says what to serve, and
when to stop. Not how it is served (`obedient.py`).

Invariant: it serves what was ordered, and reads nothing else but the env file.
"""

import faulthandler
import os
import signal
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn, TypeVar, cast

from bridgehead import terminal, unheard
from bridgehead.address import DescriptorAddress
from bridgehead.channel import Channel, Order
from bridgehead.env_file import read_env_file
from bridgehead.errors import EXIT_START_FAILED, Interrupted, StartError
from bridgehead.floor import leave_to_another
from bridgehead.leaving import leave
from bridgehead.parent import Parent

if TYPE_CHECKING:
    from bridgehead.obedient import Obedient

Kind = TypeVar("Kind", bound="type[Obedient]")

_STDERR = 2
_EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells report it


def main() -> NoReturn:
    """Serve as ordered, and end the process."""
    if not faulthandler.is_enabled():
        # Crashes show their stacks; and so does who keeps Python's lock, when the parent ends it by SIGABRT.
        with suppress(OSError):
            faulthandler.enable(_STDERR)
    number = int(sys.argv[1])
    os.set_inheritable(number, False)
    try:
        # Blocked by the parent, so that an early Ctrl+C is nobody's traceback.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        code = _serve(Channel(socket.socket(fileno=number)))
    except StartError as problem:
        sys.stderr.write(problem.render())
        leave(EXIT_START_FAILED)  # the parent answers clients as soon as this process is gone
    except (KeyboardInterrupt, Interrupted):
        code = _EXIT_INTERRUPTED
    sys.exit(code)


def _serve(channel: Channel) -> int:
    said = channel.receive()
    while said == []:
        said = channel.receive()
    if said is None:
        return 0  # the parent has gone meanwhile
    order = Order.read(said[0])
    unheard.leave_to_the_parent(job_control=order.config.reload and terminal.is_open())
    parent = Parent(channel)
    parent.listen(said[1:])
    try:
        server = _obey(order, parent)
    except StartError:
        if order.posting is not None and order.posting.floor is not None:
            leave_to_another(order.posting.floor)
        raise
    return server.exit_code


def _obey(order: Order, parent: Parent) -> "Obedient":
    config = order.config
    if order.posting is not None and order.posting.floor is not None:
        os.set_inheritable(order.posting.floor, False)
    os.set_inheritable(order.recall, False)
    for address in config.addresses():
        if isinstance(address, DescriptorAddress):
            # What the application starts while it is imported must not hold the port.
            os.set_inheritable(address.number, False)
    sys.path[:] = order.path
    if config.env_file is not None:
        variables = read_env_file(config.env_file, os.environ)
        os.environ.update({name: each.value for name, each in variables.items()})

    server = _server(order, parent)
    server.calls_itself = order.name
    server.run()
    return server


def _server(order: Order, parent: Parent) -> "Obedient":
    from bridgehead.server_config import Config

    config = Config.of(order.config)
    if order.posting is None:
        from bridgehead.obedient import Obedient

        return _as_programs_know_it(Obedient)(config, parent, order.recall)
    from bridgehead.member import Member
    from bridgehead.station import Station

    return _as_programs_know_it(Member)(config, parent, order.recall, Station(order.posting))


def _as_programs_know_it(kind: Kind) -> Kind:
    """In uvicorn's place it is a `uvicorn.Server` as well: some look for one among all objects."""
    from bridgehead import compat

    if not compat.is_installed():
        return kind
    from bridgehead.compat.uvicorn.server import Server

    return cast("Kind", type(kind.__name__, (kind, Server), {}))


if __name__ == "__main__":
    main()
