#!/usr/bin/env python3
"""An MCP server of the PyPI package that is named, with an authorization server of its own in memory, which approves every
request; or a client of the package, which counts the notes there with the token on its standard input. The server prints a
line for each request: method, path, status. Runs isolated (python -I): this folder has a file with the name of the package.

    mcp_servers.py mcp|fastmcp PORT [SECONDS-THAT-TOKENS-LIVE]
    mcp_servers.py client URL"""

import asyncio
import sys
import warnings

import fastmcp.server.auth.providers.in_memory as in_memory
import uvicorn
from fastmcp import Client, FastMCP
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions

SCOPES = ["notes:read", "notes:write"]


def provider(origin):
    return in_memory.InMemoryOAuthProvider(
        base_url=origin, required_scopes=["notes:read"],
        client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=SCOPES),
        revocation_options=RevocationOptions(enabled=True))


def fastmcp_app(origin):
    server = FastMCP("notes", auth=provider(origin))

    @server.tool
    def count() -> int:
        """How many notes there are."""
        return 3

    return server.http_app(path="/mcp")


def mcp_app(origin):
    from mcp.server.mcpserver import MCPServer

    server = MCPServer(
        "notes", auth_server_provider=provider(origin),
        auth=AuthSettings(
            issuer_url=origin, resource_server_url=origin + "/mcp", required_scopes=["notes:read"],
            validate_token_resource=False,
            client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=SCOPES),
            revocation_options=RevocationOptions(enabled=True)))

    @server.tool()
    def count() -> int:
        """How many notes there are."""
        return 3

    return server.streamable_http_app()


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


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "client":
        asyncio.run(count(sys.argv[2], sys.stdin.read().strip()))
    else:
        if len(sys.argv) > 3:
            in_memory.DEFAULT_ACCESS_TOKEN_EXPIRY_SECONDS = int(sys.argv[3])
        port = int(sys.argv[2])
        made = {"mcp": mcp_app, "fastmcp": fastmcp_app}[sys.argv[1]](f"http://127.0.0.1:{port}")
        uvicorn.run(logged(made), host="127.0.0.1", port=port, log_level="error")
