"""Runs flows against the server and reads back what it knows of them, by Prefect's own clients."""

import asyncio
import json
from uuid import UUID

from prefect import flow, get_run_logger, task
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId
from prefect.client.schemas.sorting import LogSort
from prefect.events import emit_event
from prefect.events.clients import get_events_subscriber
from prefect.events.filters import EventFilter, EventNameFilter
from prefect.states import Completed

answers = {}


@task(retries=1)
def double(number):
    get_run_logger().info("doubling %d", number)
    return 2 * number


@flow(log_prints=True)
def shop(items):
    print(f"{items} items")
    return sum(each.result() for each in [double.submit(number) for number in range(items)])


@flow
def broken():
    raise ValueError("on purpose")


async def read_back() -> None:
    async with get_client() as client:
        answers["health"] = await client.api_healthcheck() is None
        answers["flows"] = sorted(each.name for each in await client.read_flows())
        runs = await client.read_flow_runs()
        answers["runs"] = sorted(str(each.state_name) for each in runs)
        answers["task runs"] = sorted(each.state_name for each in await client.read_task_runs())
        made = await client.create_flow_run(shop, parameters={"items": 1})
        await client.set_flow_run_state(made.id, Completed(message="by hand"), force=True)
        answers["by hand"] = (await client.read_flow_run(made.id)).state.message
        wanted = LogFilter(flow_run_id=LogFilterFlowRunId(any_=[each.id for each in runs]))
        for _ in range(300):  # they are sent by a thread of their own
            logs = [each.message for each in await client.read_logs(wanted, sort=LogSort.TIMESTAMP_ASC)]
            if sum("doubling" in each for each in logs) == 5:
                break
            await asyncio.sleep(0.1)
        answers["logs"] = sorted(each for each in logs if "doubling" in each or "items" in each)
        try:
            await client.read_flow_run(UUID(int=0))
        except Exception as error:
            answers["missing"] = type(error).__name__


async def events() -> None:
    wanted = EventFilter(event=EventNameFilter(name=["shop.opened"]))
    heard = []
    async with get_events_subscriber(filter=wanted) as subscriber:
        for number in range(3):
            emit_event("shop.opened", resource={"prefect.resource.id": f"shop.{number}"})
        async for event in subscriber:
            heard.append(event.resource.id)
            if len(heard) == 3:
                break
    answers["events"] = sorted(heard)


answers["flow"] = shop(5)
try:
    broken()
except ValueError as error:
    answers["broken"] = str(error)
asyncio.run(read_back())
asyncio.run(events())
print(json.dumps(answers))
