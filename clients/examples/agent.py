"""A minimal agent harness for Sightline. Uses only the standard library.

    python3 agent.py sightline FOLDER FILE

Requests the environment block, reads FILE under the access rules, creates a
checkpoint, edits the file, diffs and restores it. Prints one JSON object.
"""

import json, pathlib, subprocess, sys

program, folder, name = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
server = subprocess.Popen([program, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
ids = iter(range(1, 1 << 31))


def send(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    server.stdin.flush()


def receive():
    length = 0
    while (line := server.stdout.readline().strip()):
        field, value = line.split(b":", 1)
        length = int(value) if field.lower() == b"content-length" else length
    if not length:
        raise EOFError("the server closed the connection")
    return json.loads(server.stdout.read(length))


def ask(method, **params):
    """Returns the result of a request. Raises errors with their stable kind."""
    send({"id": (wanted := next(ids)), "method": method, "params": params})
    while True:
        message = receive()
        if "method" in message:  # A request or notification from the server.
            if "id" in message:
                send({"id": message["id"], "result": None})
        elif message["id"] == wanted:
            if error := message.get("error"):
                raise RuntimeError(error.get("data", {}).get("kind"), error["message"])
            return message.get("result")


workspace = [{"uri": folder.as_uri(), "name": folder.name}]
ask("initialize", processId=None, rootUri=folder.as_uri(), workspaceFolders=workspace, capabilities={})
send({"method": "initialized", "params": {}})

block = ask("sightline/environmentDetails", taskId="example", includeFiles=True)  # add it to the prompt
verdict = ask("sightline/checkAccess", paths=[name], command=f"cat {name}")  # before running a tool
text = ask("sightline/readFile", path=name, taskId="example")["text"]  # the read tool
checkpoint = ask("sightline/createCheckpoint", taskId="example", label="before the edit")
(folder / name).write_text(text + "edited by the agent\n")  # the write tool
ask("sightline/trackFile", taskId="example", path=name, operation="cline_edited")
changes = ask("sightline/diffCheckpoints", **{"from": checkpoint["id"]})
preview = ask("sightline/previewRestore", id=checkpoint["id"])
restored = ask("sightline/restoreCheckpoint", id=checkpoint["id"], token=preview["token"])
ask("shutdown")
send({"method": "exit"})
server.wait()
answers = {"block": block["text"], "access": verdict, "changes": changes["files"], "restored": restored["outcomes"]}
print(json.dumps(answers, indent=2))
