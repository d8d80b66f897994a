"""A Flask application: templates of its own make no difference to a server, so there are none.

Run it: `serve flask_app:app --interface wsgi`.
"""

from __future__ import annotations

from collections.abc import Iterator

from flask import Flask, Response, jsonify, request, session

app = Flask(__name__)
app.secret_key = "for tests"


@app.get("/")
def index() -> str:
    return "hello from Flask"


@app.get("/url")
def url() -> Response:
    return jsonify(
        url=request.url, root=request.script_root, remote=request.remote_addr, scheme=request.scheme
    )


@app.post("/form")
def form() -> Response:
    upload = request.files["file"]
    return jsonify(name=request.form["name"], file=upload.filename, size=len(upload.read()))


@app.get("/stream")
def stream() -> Response:
    def rows() -> Iterator[str]:
        for number in range(1000):
            yield f"row {number}\n"

    return Response(rows(), mimetype="text/plain")


@app.get("/count")
def count() -> str:
    session["count"] = session.get("count", 0) + 1
    return str(session["count"])


@app.get("/error")
def error() -> str:
    raise RuntimeError("the view failed")
