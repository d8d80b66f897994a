"""A server for `apps:asks` to ask: answers each line by a line.

Prints its port.
"""

import argparse
import asyncio
from contextlib import suppress


async def answer(reader, writer):
    """Until the client has gone."""
    # A server that is ended resets its connections.
    with suppress(ConnectionError):
        while await reader.readline():
            writer.write(b"hello\n")
    writer.close()


async def main():
    """On a port that is free."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    # By Ctrl-C a terminal tells it, too: that is an end like any other.
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
