"""Gradio: functions, a generator, a file, a failure, and what they are asked through a queue."""

import time

import gradio


def greet(name):
    return f"Hello {name}"


def count(steps):
    for step in range(int(steps)):
        time.sleep(0.02)
        yield step


def shout(file):
    with open(file) as given, open("shouted.txt", "w") as made:
        made.write(given.read().upper())
    return "shouted.txt"


def fail(_):
    raise gradio.Error("on purpose")


with gradio.Blocks(title="shop") as demo:
    name, steps, file = gradio.Textbox(), gradio.Number(), gradio.File()
    text, number, made = gradio.Textbox(), gradio.Number(), gradio.File()
    gradio.Button("greet").click(greet, name, text, api_name="greet")
    gradio.Button("count").click(count, steps, number, api_name="count")
    gradio.Button("shout").click(shout, file, made, api_name="shout")
    gradio.Button("fail").click(fail, name, text, api_name="fail")

demo.queue().launch(server_name="127.0.0.1")
