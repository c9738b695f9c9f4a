#!/usr/bin/env -S python3 -B
"""An MCP server of the PyPI package that is named, with an authorization server of its own in memory, which approves every
request. The server prints a line for each request: method, path, status.

The second form is a client of the package, which counts the notes there with the token on its standard input. The third form
is a client that starts a server on standard input and output, uses all of its tools, and prints what it found, as JSON. Runs
isolated (python -I): this folder has a file with the name of the package.

    mcp_servers.py mcp|fastmcp PORT
    mcp_servers.py client URL
    mcp_servers.py stdio mcp|fastmcp auto|legacy COMMAND..."""

import asyncio
import json
import os
import sys
import warnings

import fastmcp
import fastmcp.server.auth.providers.in_memory as in_memory
import mcp
import mcp_types
import pydantic
import uvicorn
from fastmcp import Client, FastMCP
from fastmcp.client.transports import StdioTransport
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import Context, MCPServer
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

SCOPES = ["notes:read", "notes:write"]


def provider(origin):
    return in_memory.InMemoryOAuthProvider(
        base_url=origin, required_scopes=["notes:read"],
        client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=SCOPES),
        revocation_options=RevocationOptions(enabled=True))


class Name(pydantic.BaseModel):
    name: str


def modern(context):
    version = getattr(context, "protocol_version", None) or context.session.protocol_version
    return version in MODERN_PROTOCOL_VERSIONS


def add_tools(server, tool, context, provider):
    """The same tools for both packages."""

    @tool
    def count() -> int:
        """How many notes there are."""
        return 3

    @tool
    async def slow(steps: int, ctx: context) -> int:
        """Tells how far it is."""
        for step in range(steps):
            await ctx.report_progress(step + 1, steps)
        return steps

    @tool
    async def ask(ctx: context):
        """Asks the user: by a request of its own, or, since 2026-07-28, by a result that wants more."""
        question = "What is your name?"
        if not modern(ctx):
            return (await ctx.elicit(question, Name)).data.name
        if found := ctx.input_responses:
            return found["name"].content["name"]
        form = mcp_types.ElicitRequestFormParams(message=question, requested_schema=Name.model_json_schema())
        return mcp_types.InputRequiredResult(
            input_requests={"name": mcp_types.ElicitRequest(method="elicitation/create", params=form)})

    @tool
    async def forever() -> int:
        """Ends when it is cancelled."""
        print("TOOL forever begun", flush=True)
        try:
            await asyncio.Event().wait()
        finally:
            print("TOOL forever cancelled", flush=True)

    @tool
    def forget_tokens() -> int:
        """No access token is good any more; refresh tokens are."""
        count = len(provider.access_tokens)
        provider.access_tokens.clear()
        return count

    return server


def fastmcp_app(origin):
    auth = provider(origin)
    server = FastMCP("notes", auth=auth)
    return add_tools(server, server.tool, fastmcp.Context, auth).http_app(path="/mcp")


def mcp_app(origin):
    auth = provider(origin)
    server = MCPServer(
        "notes", auth_server_provider=auth,
        auth=AuthSettings(
            issuer_url=origin, resource_server_url=origin + "/mcp", required_scopes=["notes:read"],
            validate_token_resource=False,
            client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=SCOPES),
            revocation_options=RevocationOptions(enabled=True)))
    return add_tools(server, server.tool(), Context, auth).streamable_http_app()


def logged(app):
    """Prints each request with its status."""

    async def answer(scope, receive, send):
        async def tell(message):
            if message["type"] == "http.response.start":
                print(scope["method"], scope["path"], message["status"], flush=True)
            await send(message)

        await app(scope, receive, tell if scope["type"] == "http" else send)

    return answer


async def count(url, token):
    async with Client(url, auth=token) as client:
        print((await client.call_tool("count")).content[0].text)


async def elicited(*_):
    return mcp_types.ElicitResult(action="accept", content={"name": "Ada"})


def client(package, mode, command):
    """A client of the package that starts the command."""
    # Clients pass on a few variables only; these say where the daemon is.
    known = {name: os.environ[name] for name in ["RINGBACK_SOCK", "RINGBACK_CONFIG"]}
    if package == "mcp":
        parameters = mcp.StdioServerParameters(command=command[0], args=command[1:], env=known)
        return mcp.Client(parameters, mode=mode, elicitation_callback=elicited)
    transport = StdioTransport(command[0], command[1:], env=known, keep_alive=False)
    return Client(transport, mode=mode, elicitation_handler=elicited)


async def walk(package, mode, command):
    facts = {}
    steps = []

    async def told(progress, total, message):
        steps.append([progress, total])

    async with client(package, mode, command) as found:
        session = found if package == "mcp" else found.session
        facts["version"] = session.protocol_version
        tools = await found.list_tools()
        facts["tools"] = sorted(tool.name for tool in (tools if isinstance(tools, list) else tools.tools))
        call = found.call_tool

        async def text(name, **arguments):
            return (await call(name, arguments)).content[0].text

        facts["count"] = await text("count")
        name = "progress_callback" if package == "mcp" else "progress_handler"
        facts["slow"] = (await call("slow", {"steps": 3}, **{name: told})).content[0].text
        facts["steps"] = steps
        facts["ask"] = await text("ask")
        task = asyncio.ensure_future(call("forever", {}))
        await asyncio.wait([task], timeout=1)
        task.cancel()
        await asyncio.wait([task])
        facts["forgotten"] = int(await text("forget_tokens")) > 0
        facts["after"] = await text("count")
    print(json.dumps(facts))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "stdio":
        asyncio.run(asyncio.wait_for(walk(sys.argv[2], sys.argv[3], sys.argv[4:]), 60))
    elif sys.argv[1] == "client":
        asyncio.run(count(sys.argv[2], sys.stdin.read().strip()))
    else:
        port = int(sys.argv[2])
        made = {"mcp": mcp_app, "fastmcp": fastmcp_app}[sys.argv[1]]
        uvicorn.run(logged(made(f"http://127.0.0.1:{port}")), host="127.0.0.1", port=port, log_level="error")
