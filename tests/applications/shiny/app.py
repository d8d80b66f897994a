"""A Shiny application: what is typed is said, reactively."""

from shiny import App, reactive, render, ui

page = ui.page_fluid(
    ui.input_text("name", "name"),
    ui.output_text("said"),
    ui.input_action_button("more", "more"),
    ui.output_text("count"),
)


def server(input, output, session):
    total = reactive.value(0)

    @render.text
    def said():
        return f"Hello {input.name()}"

    @reactive.effect
    @reactive.event(input.more)
    def _():
        total.set(total() + 1)

    @render.text
    def count():
        return f"count is {total()}"


app = App(page, server)
