"""A process that serves for a parent, which holds the sockets: `python -m bridgehead.child NUMBER`.

Not a command for people: the number is that of a descriptor over which the parent says what to serve, and
when to stop. Not how it is served (`obedient.py`).

Invariant: it serves what was ordered, and reads nothing else but the env file.
"""

import os
import signal
import socket
import sys
from typing import TYPE_CHECKING, NoReturn

from bridgehead.address import DescriptorAddress
from bridgehead.channel import Channel, Order
from bridgehead.env_file import read_env_file
from bridgehead.errors import EXIT_START_FAILED, Interrupted, StartError
from bridgehead.parent import Parent

if TYPE_CHECKING:
    from bridgehead.obedient import Obedient

_EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells report it


def main() -> NoReturn:
    """Serve as ordered, and end the process."""
    number = int(sys.argv[1])
    os.set_inheritable(number, False)
    try:
        # Blocked by the parent, so that an early Ctrl+C is nobody's traceback.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        code = _serve(Channel(socket.socket(fileno=number)))
    except StartError as problem:
        sys.stderr.write(problem.render())
        code = EXIT_START_FAILED
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
    parent = Parent(channel)
    parent.listen(said[1:])
    config = order.config
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
    server.run()
    return server.exit_code


def _server(order: Order, parent: Parent) -> "Obedient":
    from bridgehead.server_config import Config

    config = Config.of(order.config)
    if order.posting is None:
        from bridgehead.obedient import Obedient

        return Obedient(config, parent, order.recall)
    from bridgehead.member import Member
    from bridgehead.station import Station

    return Member(config, parent, order.recall, Station(order.posting))


if __name__ == "__main__":
    main()
