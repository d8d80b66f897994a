"""Asks through gradio_client, and for the page's own files as a browser does."""

import json
import re
import sys
from concurrent.futures import CancelledError
from pathlib import Path

import httpx
from gradio_client import Client, handle_file

url = f"http://127.0.0.1:{sys.argv[1]}/"
client = Client(url, verbose=False)
answers = {}

answers["greet"] = client.predict("Ada", api_name="/greet")
# Under another server one generator in six ended at once.
jobs = [client.submit(5, api_name="/count") for _ in range(24)]
answers["generators"] = []
for job in jobs:
    try:
        last = job.result(timeout=60)
    except CancelledError:
        last = "cancelled"
    answers["generators"].append([last, job.outputs()])
Path("said.txt").write_text("quiet\n" * 1000)
answers["file"] = Path(client.predict(handle_file("said.txt"), api_name="/shout")).read_text()[:20]
try:
    client.predict("x", api_name="/fail")
except Exception as error:
    answers["failure"] = str(error)
running = client.submit(2000, api_name="/count")
while len(running.outputs()) < 2:
    pass
answers["cancelled"] = bool(running.cancel())
answers["after"] = client.predict("Grace", api_name="/greet")
answers["endpoints"] = sorted(client.view_api(return_format="dict")["named_endpoints"])

with httpx.Client(base_url=url, headers={"accept-encoding": "br, gzip"}) as browser:
    page = browser.get("/")
    answers["page"] = [page.status_code, "gradio" in page.text]
    files = sorted(set(re.findall(r"""["'](?:\./)?((?:assets|static)/[^"']+)["']""", page.text)))
    for name in files[:8]:
        got = browser.get(f"/{name}")
        answers[name] = [got.status_code, len(got.content), got.headers.get("content-encoding")]
    answers["config"] = browser.get("/config").json()["title"]
    answers["missing"] = browser.get("/assets/none.js").status_code

print(json.dumps(answers))
