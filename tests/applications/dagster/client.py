"""Starts jobs and follows their runs by Dagster's GraphQL client."""

import json
import sys
import time

from dagster_graphql import DagsterGraphQLClient, DagsterGraphQLClientError

client = DagsterGraphQLClient("127.0.0.1", port_number=int(sys.argv[1]))
answers = {}


def outcome(job):
    run = client.submit_job_execution(job)
    deadline = time.monotonic() + 100
    while (status := client.get_run_status(run).value) not in {"SUCCESS", "FAILURE"}:
        assert time.monotonic() < deadline, status
        time.sleep(0.5)
    return status


answers["counting"] = outcome("counting")
answers["broken"] = outcome("broken")
try:
    client.submit_job_execution("none")
except DagsterGraphQLClientError as error:
    answers["none"] = type(error).__name__
answers["reload"] = client.reload_repository_location("app.py").status.value

print(json.dumps(answers))
