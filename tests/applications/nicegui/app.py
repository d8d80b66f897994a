"""A page of NiceGUI's: a button that counts, a field, a timer, a file that is taken."""

import itertools
import os

from nicegui import app, ui


@ui.page("/")
def index():
    counts = itertools.count(1)
    count = ui.label("count is 0")
    ui.button("more", on_click=lambda: count.set_text(f"count is {next(counts)}")).props("id=more")
    said = ui.label("").props("id=said")
    ui.input("name", on_change=lambda event: said.set_text(f"Hello {event.value}")).props("id=name")
    ticks = ui.label("ticks: 0")
    passed = itertools.count(1)
    ui.timer(0.1, lambda: ticks.set_text(f"ticks: {next(passed)}, and more"))


@app.get("/plain")
def plain():
    return {"clients": "none"}


ui.run(host="127.0.0.1", port=int(os.environ["SHOP_PORT"]), reload=False, show=False)
