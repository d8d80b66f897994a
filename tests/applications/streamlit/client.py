"""Uses the page in Chromium: the script is run again by its WebSocket for each click."""

import json
import sys

from page import page

BUTTON = "[data-testid=stButton] button"
answers = {}
with page(sys.argv[1]) as shop:
    shop.open()
    answers["begins"] = shop.shows("count is 0")
    for count in (1, 2, 3):
        shop.click(BUTTON)
        answers[f"count {count}"] = shop.shows(f"count is {count}")
    shop.write("[data-testid=stTextInput] input", "Ada", enter=True)
    answers["said"] = shop.shows("Hello Ada")
    shop.open()
    answers["another session"] = shop.shows("count is 0")
    answers["websockets"] = shop.ask("performance.getEntriesByType('resource').length > 0")
print(json.dumps(answers))
