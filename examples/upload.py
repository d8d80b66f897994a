"""An upload of any size, hashed as it comes in.

Run it: serve examples/upload.py

`curl -T FILE localhost:8000/` answers the file's size and SHA-256 as JSON. The body is never whole in memory:
while the application does not read, the client is held back by TCP.
"""

import hashlib
import json


async def app(scope, receive, send):
    if scope["type"] != "http":
        raise NotImplementedError(f"{scope['type']} is not served here")
    size, digest = 0, hashlib.sha256()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return  # the client broke off: nobody is there to be answered
        size += len(message["body"])
        digest.update(message["body"])
        more = message["more_body"]
    answer = json.dumps({"size": size, "sha256": digest.hexdigest()}).encode()
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))],
        }
    )
    await send({"type": "http.response.body", "body": answer})
