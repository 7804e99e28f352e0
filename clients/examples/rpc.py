"""The connection of the examples to Sightline. Uses only the standard library."""

import itertools, json, subprocess


class RequestError(Exception):
    """The error of a request, with its stable kind."""

    def __init__(self, error):
        super().__init__(error["message"])
        self.kind = error.get("data", {}).get("kind")


class Client:
    """A server for one folder."""

    def __init__(self, program, folder):
        self.server = subprocess.Popen([program, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ids = itertools.count(1)
        workspace = [{"uri": folder.as_uri(), "name": folder.name}]
        self.ask("initialize", processId=None, rootUri=folder.as_uri(), workspaceFolders=workspace, capabilities={})
        self.send({"method": "initialized", "params": {}})

    def ask(self, method, **params):
        """Returns the result of a request."""
        wanted = next(self.ids)
        self.send({"id": wanted, "method": method, "params": params})
        while True:
            message = self.receive()
            if "method" in message:  # A request or notification from the server.
                if "id" in message:
                    self.send({"id": message["id"], "result": None})
            elif message["id"] == wanted:
                if error := message.get("error"):
                    raise RequestError(error)
                return message.get("result")

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.server.stdin.flush()

    def receive(self):
        length = 0
        while (line := self.server.stdout.readline().strip()):
            field, value = line.split(b":", 1)
            length = int(value) if field.lower() == b"content-length" else length
        if not length:
            raise EOFError("the server closed the connection")
        return json.loads(self.server.stdout.read(length))

    def close(self):
        self.ask("shutdown")
        self.send({"method": "exit"})
        self.server.wait()
