"""How long fifty callers wait, against the number of slots: what sizing a gate changes, and what it does not.

Run it: python examples/contention.py

Behind the gate is a pool of ten connections, each of which needs 5 ms for a query. More slots than
connections do not make it faster: whoever is inside waits for the pool instead, where no gauge shows it.
"""

import asyncio
import time

from bridgehead.admission import contention, table

CONNECTIONS = 10
CALLERS = 50
QUERIES = 500


async def main():
    pool = asyncio.Semaphore(CONNECTIONS)
    waited_inside = []

    async def query():
        began = time.perf_counter()
        async with pool:
            waited_inside.append(time.perf_counter() - began)
            await asyncio.sleep(0.005)

    slots = (1, 2, 5, 10, 20, 50)
    found = []
    for each in slots:
        waited_inside.clear()
        found += await contention(query, slots=[each], callers=CALLERS, entries=QUERIES)
        print(f"{each:>3} slots: at most {max(waited_inside) * 1000:.1f} ms for the pool")
    print(table(found))


asyncio.run(main())
