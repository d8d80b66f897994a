"""A Django project in one file, as WSGI.

Run it: `serve django_wsgi_app:application --interface wsgi`.
"""

# ruff: noqa: ARG001 - Django decides which arguments a view has
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import django
from django.conf import settings

settings.configure(
    DEBUG=False,
    SECRET_KEY="for tests",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
)
django.setup()

from django.core.wsgi import get_wsgi_application  # noqa: E402 - Django wants its settings first
from django.http import HttpResponse, JsonResponse, StreamingHttpResponse  # noqa: E402
from django.urls import path  # noqa: E402


def index(request: Any) -> Any:
    return HttpResponse("hello from Django")


def url(request: Any) -> Any:
    return JsonResponse(
        {
            "url": request.build_absolute_uri(),
            "root": request.META["SCRIPT_NAME"],
            "remote": request.META["REMOTE_ADDR"],
            "scheme": request.scheme,
        }
    )


def form(request: Any) -> Any:
    upload = request.FILES["file"]
    return JsonResponse({"name": request.POST["name"], "file": upload.name, "size": len(upload.read())})


def stream(request: Any) -> Any:
    def rows() -> Iterator[str]:
        for number in range(1000):
            yield f"row {number}\n"

    return StreamingHttpResponse(rows(), content_type="text/plain")


def error(request: Any) -> Any:
    raise RuntimeError("the view failed")


urlpatterns = [
    path("", index),
    path("url", url),
    path("form", form),
    path("stream", stream),
    path("error", error),
]
application = get_wsgi_application()
