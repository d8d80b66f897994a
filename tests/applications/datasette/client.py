"""Asks by dclient, Datasette's own client, and for pages and exports as a browser does."""

import json
import re
import subprocess
import sys

import httpx

base = f"http://127.0.0.1:{sys.argv[1]}"
PATHS = [
    "/",
    "/shop",
    "/shop/items",
    "/shop/items/7",
    "/shop/items/7.json",
    "/shop/items.json?_size=3&_sort_desc=price",
    "/shop/items.csv?_stream=on&_size=max",
    "/-/static/app.css",
    "/shop/items/none",
    "/-/plugins.json",
    "/shop.db",
    "/shop/items?name__contains=99&_facet=price",
]
answers = {}


def dclient(*words):
    done = subprocess.run(["dclient", *words], capture_output=True, text=True, timeout=60)
    return [done.returncode, done.stdout, done.stderr[-300:].replace(base, "")]


answers["query"] = dclient("query", f"{base}/shop", "select count(*), sum(price) from items")
answers["wrong query"] = dclient("query", f"{base}/shop", "select nothing from items")
with httpx.Client(base_url=base, timeout=60) as client:
    for path in PATHS:
        answer = client.get(path)
        # How long a query took is in what it says.
        text = re.sub(r'"query_ms": [0-9.e-]+', '"query_ms": 0', answer.text)
        is_page = "html" in answer.headers.get("content-type", "")
        came = "</html>" in text if is_page else [len(text), text[:200]]
        answers[path] = [answer.status_code, answer.headers.get("content-type"), came]
    answers["head"] = client.head("/shop/items").status_code
    answers["method"] = client.delete("/shop/items").status_code
    answers["versions"] = sorted(set(client.get("/-/versions.json").json()) - {"uvicorn"})
    answers["says uvicorn"] = client.get("/-/versions.json").json().get("uvicorn")

print(json.dumps(answers))
