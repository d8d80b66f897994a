"""Uses the page in Chromium: clicks, typing and a timer, all by its WebSocket."""

import json
import sys
import urllib.request

from page import page

answers = {}
with page(sys.argv[1]) as shop:
    shop.open()
    shop.has("#more")
    for count in ("1", "2", "3"):
        shop.click("#more")
        answers[f"count {count}"] = shop.shows(f"count is {count}")
    shop.write("input[aria-label=name]", "Ada")
    answers["said"] = shop.shows("Hello Ada")
    answers["ticks"] = shop.shows(", and more")
    answers["complaints"] = shop.complaints
with urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/plain") as plain:
    answers["plain"] = json.load(plain)
print(json.dumps(answers))
