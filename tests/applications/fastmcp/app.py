"""A FastMCP server: tools, one of which tells its progress, a resource and a prompt."""

import os

from fastmcp import Context, FastMCP

server = FastMCP("shop")


@server.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool
async def count(steps: int, ctx: Context) -> str:
    """Tell each step."""
    for step in range(steps):
        await ctx.report_progress(step, steps)
        await ctx.info(f"step {step}")
    return f"counted {steps}"


@server.resource("shelf://{name}")
def shelf(name: str) -> str:
    """What lies there."""
    return f"{name} " * 5000


@server.prompt
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Say hello to {name}"


server.run(transport="http", host="127.0.0.1", port=int(os.environ["SHOP_PORT"]), show_banner=False)
