"""Published applications that bring or start uvicorn, each with the command that starts it and what asks it.

Not their versions (`NAME/requirements.txt`), and not what is asked (`NAME/client.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """One application; in its words and environment PORT stands for the port, FOLDER for its folder."""

    name: str
    package: str
    words: tuple[str, ...]  # a command of its environment, or a program of its folder
    way: str  # how it comes to uvicorn
    client: str  # what asks it
    ready: str = "/"
    environ: Mapping[str, str] = field(default_factory=dict)


CHROMIUM = "Chromium"
LOCAL = ("--host", "127.0.0.1", "--port", "PORT")

APPLICATIONS = (
    Application(
        name="bentoml",
        package="bentoml",
        words=("bentoml", "serve", "app:Shop", *LOCAL),
        way="`Config` and `Server` on a socket it is handed, in a child",
        client="BentoML's clients",
        ready="/readyz",
        environ={"BENTOML_HOME": "FOLDER/bentoml", "BENTOML_DO_NOT_TRACK": "True"},
    ),
    Application(
        name="dagster",
        package="dagster-webserver",
        words=("dagster-webserver", "-f", "app.py", "-h", "127.0.0.1", "-p", "PORT"),
        way="`run`",
        client="DagsterGraphQLClient",
        ready="/server_info",
        environ={"DAGSTER_HOME": "FOLDER", "DAGSTER_DISABLE_TELEMETRY": "yes"},
    ),
    Application(
        name="datasette",
        package="datasette",
        words=("datasette", "serve", "shop.db", *LOCAL),
        way="`run`",
        client="dclient",
    ),
    Application(
        name="fastmcp",
        package="fastmcp",
        words=("app.py",),
        way="`await Server.serve()`, event streams",
        client="fastmcp.Client",
        ready="/mcp",
        environ={"SHOP_PORT": "PORT"},
    ),
    Application(
        name="gradio",
        package="gradio",
        words=("app.py",),
        way="a subclass of `Server`, run in a thread",
        client="gradio_client",
        environ={"GRADIO_ANALYTICS_ENABLED": "False", "GRADIO_SERVER_PORT": "PORT"},
    ),
    Application(
        name="litellm",
        package="litellm",
        words=("litellm", "--config", "config.yaml", *LOCAL),
        way="`run` of a name",
        client="openai",
        ready="/health/liveliness",
        environ={"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    ),
    Application(
        name="mcp",
        package="mcp",
        words=("app.py",),
        way="`await Server.serve()`, event streams",
        client="mcp.Client",
        ready="/mcp",
        environ={"SHOP_PORT": "PORT", "SHOP_TRANSPORT": "streamable-http"},
    ),
    Application(
        name="mlflow",
        package="mlflow",
        words=(
            *("mlflow", "server", *LOCAL, "--backend-store-uri", "sqlite:///FOLDER/mlflow.db"),
            *("--artifacts-destination", "FOLDER/artifacts", "--workers", "2"),
        ),
        way="`python -m uvicorn` in a child, with workers",
        client="MlflowClient",
        ready="/health",
    ),
    Application(
        name="nicegui",
        package="nicegui",
        words=("app.py",),
        way="subclasses of `Config` and `Server`",
        client=CHROMIUM,
        environ={"SHOP_PORT": "PORT"},
    ),
    Application(
        name="prefect",
        package="prefect",
        words=("prefect", "server", "start", *LOCAL),
        way="`run`, WebSockets",
        client="Prefect's clients",
        ready="/api/health",
        environ={
            "PREFECT_HOME": "FOLDER/prefect",
            "PREFECT_API_URL": "http://127.0.0.1:PORT/api",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        },
    ),
    Application(
        name="shiny",
        package="shiny",
        words=("shiny", "run", "app.py", *LOCAL),
        way="subclasses of `Config` and `Server`",
        client=CHROMIUM,
    ),
    Application(
        name="streamlit",
        package="streamlit",
        words=("streamlit", "run", "app.py", "--server.headless", "true", "--server.port", "PORT"),
        way="`Server`'s steps one by one",
        client=CHROMIUM,
        environ={"STREAMLIT_BROWSER_GATHER_USAGE_STATS": "false"},
    ),
)
