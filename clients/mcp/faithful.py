"""Drives one MCP server, over its standard input and output or over HTTP, on the wire.

The only argument is a JSON object: `command` or `url`, and `script`: steps of `method` and `params`.
Prints a JSON array: for each step its answer, whole, as it came; what the server asks is answered."""

import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request

PATIENCE = 60
VERSION = "2025-11-25"
CLIENT = {
    "protocolVersion": VERSION,
    "capabilities": {"sampling": {}, "elicitation": {}, "roots": {}},
    "clientInfo": {"name": "faithful", "version": "1"},
}
# What the client says to what it is asked.
REPLIES = {
    "ping": {},
    "roots/list": {"roots": []},
    "sampling/createMessage": {
        "role": "assistant",
        "model": "none",
        "content": {"type": "text", "text": "forty-two"},
    },
    "elicitation/create": {"action": "decline"},
}


class Client:
    """What both transports share: ids, and answers to questions."""

    def __init__(self):
        self.last = 0

    def request(self, method, params):
        self.last += 1
        message = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
        for answer in self.exchange(message):
            if "method" in answer:
                self.heard(answer)
            elif answer.get("id") == self.last:
                return {name: answer[name] for name in ("result", "error") if name in answer}
        raise EOFError(f"no answer to {method}")

    def notify(self, method):
        self.send({"jsonrpc": "2.0", "method": method})

    def heard(self, message):
        if "id" not in message:
            return
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] in REPLIES:
            reply["result"] = REPLIES[message["method"]]
        else:
            reply["error"] = {"code": -32601, "message": "no such method"}
        self.send(reply)


class Stdio(Client):
    def __init__(self, command):
        super().__init__()
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def exchange(self, message):
        self.send(message)
        for line in self.process.stdout:
            try:
                yield json.loads(line)
            except ValueError:
                continue  # Some servers write their log there.

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Http(Client):
    def __init__(self, url):
        super().__init__()
        self.url, self.session = url, None

    def open(self, message=None, method="POST"):
        headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        if self.session:
            headers |= {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": VERSION}
        body = json.dumps(message).encode() if message else None
        request = urllib.request.Request(self.url, body, headers, method=method)
        try:
            return urllib.request.urlopen(request, timeout=PATIENCE)
        except urllib.error.HTTPError as error:
            return error

    def send(self, message):
        self.open(message).close()

    def exchange(self, message):
        with self.open(message) as response:
            self.session = self.session or response.headers.get("Mcp-Session-Id")
            if "event-stream" not in response.headers.get("Content-Type", ""):
                yield json.loads(response.read())
                return
            data = []
            for line in response:
                line = line.decode().rstrip("\r\n")
                if line.startswith("data:"):
                    data.append(line[5:].lstrip())
                elif not line and data:
                    text, data = "\n".join(data), []
                    message = json.loads(text)
                    if message:
                        yield message

    def close(self):
        self.open(method="DELETE").close()


def listed(client, method, member):
    """Every page of a list; an error as it is."""
    found, params = [], {}
    while True:
        answer = client.request(method, params)
        result = answer.get("result")
        if result is None:
            # Many servers with resources have no list of templates, which is an empty one through Chio.
            if method == "resources/templates/list" and answer["error"]["code"] == -32601:
                return {"result": {member: []}}
            return answer
        found += result[member]
        if "nextCursor" not in result:
            return {"result": {**result, member: found}}
        params = {"cursor": result["nextCursor"]}


def main():
    task = json.loads(sys.argv[1])
    client = Http(task["url"]) if "url" in task else Stdio(task["command"])
    watch = threading.Timer(PATIENCE, lambda: (client.process.kill() if "command" in task else None))
    watch.daemon = True
    watch.start()
    welcome = client.request("initialize", CLIENT)
    client.notify("notifications/initialized")
    answers = [welcome]
    for kind, member in (
        ("tools", "tools"),
        ("resources", "resources"),
        ("resources/templates", "resourceTemplates"),
        ("prompts", "prompts"),
    ):
        capability = kind.split("/")[0]
        if capability in welcome["result"]["capabilities"]:
            answers.append(listed(client, f"{kind}/list", member))
        else:
            answers.append(None)
    for step in task["script"]:
        answers.append(client.request(step["method"], step["params"]))
    client.close()
    print(json.dumps(answers))


main()
