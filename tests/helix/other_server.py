"""A language server of somebody else: Sightline must not take its place.

It does next to nothing, and writes what it is sent, one method a line, to the
file it is given.
"""

import json
import sys

log = open(sys.argv[1], "a", buffering=1, encoding="utf-8")


def send(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    sys.stdout.buffer.flush()


while True:
    length = 0
    while (line := sys.stdin.buffer.readline().strip()) != b"":
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    if length == 0:
        break
    message = json.loads(sys.stdin.buffer.read(length))
    method = message.get("method")
    print(method, file=log)
    if method == "initialize":
        capabilities = {"textDocumentSync": 1, "hoverProvider": True}
        send({"id": message["id"], "result": {"capabilities": capabilities}})
    elif method == "textDocument/hover":
        contents = {"kind": "markdown", "value": "the other server is here"}
        send({"id": message["id"], "result": {"contents": contents}})
    elif method == "exit":
        break
    elif "id" in message and method:
        send({"id": message["id"], "result": None})
