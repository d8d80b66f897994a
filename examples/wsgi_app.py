"""A Flask application, served as WSGI: in threads, with a streamed answer and an upload.

Run it: serve examples/wsgi_app.py --interface wsgi

Needs `pip install flask 'bridgehead[wsgi]'`. `curl localhost:8000/` greets, `curl localhost:8000/rows`
streams, `curl -F file=@README.md localhost:8000/files` uploads.
"""

from flask import Flask, Response, jsonify, request

app = Flask(__name__)


@app.get("/")
def hello():
    return "Hello from Flask\n"


@app.get("/rows")
def rows():
    return Response((f"row {number}\n" for number in range(1000)), mimetype="text/plain")


@app.post("/files")
def take_file():
    file = request.files["file"]
    return jsonify(name=file.filename, size=len(file.read()))
