"""The matrix's application in Django, its synchronous views in threads."""

import asyncio

import django
from django.conf import settings

settings.configure(
    DEBUG=False,
    SECRET_KEY="no secret, but long enough for Django to be content with it",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    MIDDLEWARE=[
        "django.middleware.security.SecurityMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
    ],
    SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
    LOGGING_CONFIG=None,
)
django.setup()

from django.core.asgi import get_asgi_application  # noqa: E402
from django.http import (  # noqa: E402
    FileResponse,
    HttpResponse,
    HttpResponseRedirect,
    JsonResponse,
    StreamingHttpResponse,
)
from django.urls import path  # noqa: E402

done = []


def hello(request):
    return HttpResponse("hello", content_type="text/plain")


async def query(request):
    return JsonResponse(request.GET.dict())


def in_a_thread(request):
    return HttpResponse("from a thread")


def form(request):
    return JsonResponse(request.POST.dict())


def upload(request):
    sent = request.FILES["file"]
    return JsonResponse({"name": sent.name, "size": sent.size})


def echo(request):
    return HttpResponse(request.body, content_type="application/octet-stream")


async def stream(request):
    async def pieces():
        for number in range(5):
            yield f"piece {number}\n"
            await asyncio.sleep(0.001)

    return StreamingHttpResponse(pieces(), content_type="text/plain")


async def events(request):
    async def all_events():
        for number in range(3):
            yield f"data: {number}\n\n"

    return StreamingHttpResponse(all_events(), content_type="text/event-stream")


def session(request):
    request.session["count"] = request.session.get("count", 0) + 1
    return HttpResponse(str(request.session["count"]))


async def background(request):
    if request.method == "GET":
        return HttpResponse(str(len(done)))
    asyncio.get_running_loop().call_soon(done.append, 1)
    return HttpResponse("later", status=202)


def file(request):
    return FileResponse(open(__file__, "rb"), content_type="text/plain")


def item(request, name):
    return JsonResponse({"name": name, "path": request.path})


def redirect(request):
    return HttpResponseRedirect("/elsewhere")


def nothing(request):
    return HttpResponse(status=204)


def boom(request):
    raise RuntimeError("on purpose")


urlpatterns = [
    path("", hello),
    path("query", query),
    path("thread", in_a_thread),
    path("form", form),
    path("upload", upload),
    path("echo", echo),
    path("stream", stream),
    path("events", events),
    path("session", session),
    path("background", background),
    path("file", file),
    path("item/<str:name>", item),
    path("redirect", redirect),
    path("nothing", nothing),
    path("boom", boom),
]
app = get_asgi_application()
