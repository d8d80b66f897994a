"""One periodic job for all workers: the one that leads runs it, by grelmicro.

Run it: serve examples/leader.py --workers 2

Every second one of the workers says that it cleans up; kill that one, and another does within eight seconds.
`curl localhost:8000/` says who leads; ask more than once. Needs `pip install 'grelmicro[sqlite]' fastapi`; in
Kubernetes, where KUBE_NAMESPACE is set, 'grelmicro[kubernetes]' and what examples/deploy/kubernetes grants.
"""

import os
from contextlib import asynccontextmanager

from fastapi import FastAPI
from grelmicro.sync import LeaderElection, use_backend
from grelmicro.task import TaskManager

if "KUBE_NAMESPACE" in os.environ:
    from grelmicro.sync.kubernetes import KubernetesSyncBackend

    backend = KubernetesSyncBackend()
else:
    from grelmicro.sync.sqlite import SQLiteSyncBackend

    backend = SQLiteSyncBackend(os.environ.get("LOCKS", "locks.db"))

use_backend(backend)
# With its backend by hand: one that it looks up by itself it would not release at a stop.
leader = LeaderElection(
    "cleaner", backend=backend, lease_duration=5, renew_deadline=4, retry_interval=1, backend_timeout=2
)
tasks = TaskManager(tasks=[leader])


@tasks.interval(seconds=1, sync=leader.guard())
async def clean_up():
    print(f"worker {os.getpid()} cleans up", flush=True)


@asynccontextmanager
async def lifespan(_):
    # At a stop the other way round: the job ends, its lock is given back, the backend is closed.
    async with backend, tasks:
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/")
async def who():
    return {"worker": os.getpid(), "leads": leader.is_leader()}
