"""Uses the page in Chromium: what is typed is said, by its WebSocket."""

import json
import sys

from page import page

answers = {}
with page(sys.argv[1]) as shop:
    shop.open()
    shop.shows("count is 0")
    shop.write("#name", "Ada")
    answers["said"] = shop.shows("Hello Ada")
    for count in (1, 2, 3):
        shop.click("#more")
        answers[f"count {count}"] = shop.shows(f"count is {count}")
    answers["complaints"] = shop.complaints
print(json.dumps(answers))
