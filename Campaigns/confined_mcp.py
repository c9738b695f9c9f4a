#!/usr/bin/env -S python3 -B
"""Both ends of an MCP server that a confined program uses, for `confined.py`.

    confined_mcp.py serve   is the server and its authorization server, and prints the server's URL
    confined_mcp.py list    is a client: starts the server that .mcp.json in the present folder names, and prints its tools
    confined_mcp.py use     also calls each tool, and prints what came, as JSON. For each line of its input it starts the server
                            once more, until that has tools, and prints them

The client needs nothing of the project.
"""

import json
import subprocess
import sys
import time

# The second one gives the request's credentials back.
TOOLS = ["list_issues", "show_credentials", "delete_issue"]


def serve():
    from mcp_parties import Issuer, MCPServer

    class Issues(MCPServer):
        def message(self, request):
            self.credentials = request.headers.get("Authorization", "")
            return super().message(request)

        def result(self, body):
            if body.get("method") == "tools/list":
                return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}
            name = (body.get("params") or {}).get("name")
            text = self.credentials if name == "show_credentials" else f"{name} was called"
            return {"content": [{"type": "text", "text": text}]}

    server = Issues([Issuer()])
    server.has_sessions = True
    print(server.url, flush=True)
    sys.stdin.read()


class Client:
    def __init__(self):
        with open(".mcp.json", encoding="utf-8") as file:
            [entry] = json.load(file)["mcpServers"].values()
        self.server = subprocess.Popen([entry["command"], *entry["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.number = 0

    def __enter__(self):
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "confined", "version": "1"})
        self.write({"method": "notifications/initialized"})
        return self

    def __exit__(self, *_):
        self.server.communicate()

    def write(self, message):
        print(json.dumps({"jsonrpc": "2.0"} | message), file=self.server.stdin, flush=True)

    def ask(self, method, **params):
        self.number += 1
        self.write({"id": self.number, "method": method, "params": params})
        for line in self.server.stdout:
            found = json.loads(line)
            if found.get("id") == self.number:
                return found
        return {}

    def tools(self):
        return [tool["name"] for tool in self.ask("tools/list").get("result", {}).get("tools", [])]


def tools():
    """Empty where there is no server."""
    try:
        with Client() as client:
            return client.tools()
    except BrokenPipeError:
        return []


def use():
    with Client() as client:
        found = {"tools": client.tools()} | {name: client.ask("tools/call", name=name, arguments={}) for name in TOOLS}
        print(json.dumps(found), flush=True)
        for _ in sys.stdin:
            while not (names := tools()):
                time.sleep(0.2)
            print(*names, flush=True)


def main():
    mode = sys.argv[1]
    if mode == "list":
        return print(*tools())
    return {"serve": serve, "use": use}[mode]()


if __name__ == "__main__":
    main()
