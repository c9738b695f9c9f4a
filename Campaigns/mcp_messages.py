"""What must stand in the requests of a bridge: the scenarios of MCP clients that are not about authorization, and the limit of
step-ups. A client on standard input and output plays what a program would do; `ringback mcp` makes the requests.
"""

import base64
import json
import threading
import time

from mcp_bridge import Client, end_relays
from mcp_parties import REVISION, Issuer, MCPServer

META = "io.modelcontextprotocol/"


class Server(MCPServer):
    """Notes the messages that came with a token. `rule` may respond to a request before the server does."""

    def __init__(self, issuers, **habits):
        super().__init__(issuers, **habits)
        self.rule = None
        self.tools = None
        self.taken = []

    def message(self, request):
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if any(token in issuer.tokens for issuer in self.issuers):
            self.taken.append(request)
            found = self.rule(request) if self.rule else None
            if found is not None:
                return found
        return super().message(request)

    def result(self, body):
        if body.get("method") == "tools/list" and self.tools is not None:
            return {"tools": self.tools}
        if body.get("method") == "tools/call" and "a" not in (body["params"].get("arguments") or {}):
            return {"content": []}
        return super().result(body)

    def posts(self, method=None):
        return [seen for seen in self.taken if seen.method == "POST" and method in (None, seen.json.get("method"))]


def tool(name, properties=None, **schema):
    return {"name": name, "inputSchema": {"type": "object", "properties": properties or {}} | schema}


class Messages:
    """The scenarios, with the notes and the house of a run of mcp_scenarios.py."""

    def __init__(self, run):
        self.run, self.note = run, run.note

    def play(self, title, test, **habits):
        issuer = Issuer()
        server = Server([issuer], **habits)
        scenario = self.run.scenario(title, issuer, server)
        self.run.completes(scenario)
        client = Client(self.run.house, scenario.name)
        test(scenario, server, client)
        self.note(not client.strays, "nothing but messages on standard output", client.strays)
        self.note(client.close() == 0, "the bridge ends with its client")
        self.note(not scenario.mistakes, "no mistake", str(scenario.mistakes))

    def scope_retry_limit(self, scenario, server, client):
        server.rule = lambda _: (403, {"WWW-Authenticate": server.challenge("mcp:write", "insufficient_scope")}, {})
        texts = [json.dumps(client.ask("tools/list")) for _ in range(5)]
        command = f"ringback login {scenario.name} --scopes"
        self.note(all(command in text and "mcp:write" in text for text in texts), "each error has the command", texts[0])
        self.note(len(server.posts()) == 5, "each message is sent once", len(server.posts()))
        self.note(len(scenario.authorizations) == 1, "no sign-in by itself", len(scenario.authorizations))
        self.run.completes(scenario, "the command's sign-in", scopes="mcp:write")
        texts = [json.dumps(client.ask("tools/list")) for _ in range(5)]
        self.note(all("insufficient_scope" in text for text in texts), "the server refuses for ever", texts[0])
        asked = [set(seen.query.get("scope", "").split()) for seen in scenario.authorizations]
        self.note(asked == [{"mcp:basic"}, {"mcp:basic", "mcp:write"}], "two authorization requests in all", str(asked))
        self.note(len(server.posts()) == 10, "each message is sent once", len(server.posts()))

    def tools_call(self, scenario, server, client):
        found = client.ask("tools/list")
        self.note([entry["name"] for entry in found["result"]["tools"]] == ["add_numbers"], "the list", found)
        found = client.ask("tools/call", name="add_numbers", arguments={"a": 5, "b": 3})
        self.note(found["result"]["content"] == [{"type": "text", "text": "8"}], "the result", found)
        sent = [seen.json for seen in server.posts()]
        whole = [set(message) == {"jsonrpc", "id", "method", "params"} and message["jsonrpc"] == "2.0" for message in sent]
        self.note(whole == [True, True], "two messages, as the client wrote them", str(sent))
        self.note(sent[-1]["params"]["arguments"] == {"a": 5, "b": 3}, "the numbers", str(sent[-1]))

    def request_metadata(self, scenario, server, client):
        def refuse(request):
            if len(server.taken) > 1:
                return None
            error = {"code": -32022, "message": "version", "data": {"supported": [REVISION], "requested": "2027-01-01"}}
            return 400, {}, {"jsonrpc": "2.0", "id": request.json["id"], "error": error}
        server.rule = refuse
        message = client.message("tools/list")
        information = {"name": "client", "version": "1"}
        message["params"]["_meta"] |= {META + "protocolVersion": "2027-01-01", META + "clientInfo": information}
        client.write(message)
        found = client.read() or {}
        self.note(found.get("error", {}).get("data", {}).get("supported") == [REVISION], "the client learns why", found)
        message["params"]["_meta"][META + "protocolVersion"] = REVISION
        message["id"] += 1
        client.write(message)
        found = client.read() or {}
        self.note("result" in found, "the second request is taken", found)
        stated = [
            (seen.headers["MCP-Protocol-Version"], seen.json["params"]["_meta"][META + "protocolVersion"])
            for seen in server.posts()]
        self.note(stated == [("2027-01-01",) * 2, (REVISION,) * 2], "field and message are equal", stated)
        named = [seen.json["params"]["_meta"][META + "clientInfo"] for seen in server.posts()]
        self.note(named == [information] * 2, "clientInfo", named)

    def request_state(self, scenario, server, client):
        state = "é\u2028 \\\"/+=%00 end "
        asked = {"k": {"method": "elicitation/create", "params": {"message": "Which?"}}}

        def respond(request):
            body = request.json
            parameters = body.get("params", {})
            if body.get("method") != "tools/call":
                return None
            if parameters["name"] in ("plain", "unrelated"):
                result = {"content": []}
            elif "inputResponses" in parameters:
                result = {"resultType": "complete", "content": []}
            else:
                result = {"resultType": "input_required", "inputRequests": asked}
                if parameters["name"] == "stateful":
                    result["requestState"] = state
            return 200, {}, {"jsonrpc": "2.0", "id": body["id"], "result": result}
        server.rule = respond
        for name in ["stateful", "stateless", "plain", "unrelated"]:
            found = client.ask("tools/call", name=name, arguments={})["result"]
            if name in ("plain", "unrelated"):
                self.note(found == {"content": []}, "a result without resultType is final", found)
                continue
            self.note(found["inputRequests"] == asked, f"{name}: what is asked", found)
            self.note(found.get("requestState") == (state if name == "stateful" else None), f"{name}: the state", found)
            again = {"inputResponses": {"k": {"action": "accept", "content": {}}}}
            if "requestState" in found:
                again["requestState"] = found["requestState"]
            found = client.ask("tools/call", name=name, arguments={}, **again)["result"]
            self.note(found == {"resultType": "complete", "content": []}, f"{name}: the end", found)
        sent = [seen.json for seen in server.posts("tools/call")]
        states = [message["params"].get("requestState") for message in sent]
        self.note(states == [None, state, None, None, None, None], "the state goes back as it came, and only there", states)
        self.note(len({message["id"] for message in sent}) == 6, "each request has an id of its own")
        answers = [message["params"]["name"] for message in sent if "inputResponses" in message["params"]]
        self.note(answers == ["stateful", "stateless"], "nothing of it is in other requests", answers)

    def standard_headers(self, scenario, server, client):
        calls = [
            ("tools/list", {}), ("tools/call", {"name": "add_numbers", "arguments": {"a": 1, "b": 2}}),
            ("tools/call", {"name": "naïve\r\nX-Evil: 1", "arguments": {"a": 1, "b": 1}}),
            ("resources/list", {}), ("resources/read", {"uri": "file:///ä b"}), ("prompts/list", {}),
            ("prompts/get", {"name": "ask"}), ("server/discover", {}),
        ]
        for method, parameters in calls:
            self.note("result" in client.ask(method, **parameters), method)
        sent = [(seen.headers.get("Mcp-Method"), decoded(seen.headers.get("Mcp-Name"))) for seen in server.posts()]
        expected = [(method, parameters.get("name") or parameters.get("uri")) for method, parameters in calls]
        self.note(sent == expected, "Mcp-Method and Mcp-Name of each request", sent)
        self.note(all(seen.headers.get("X-Evil") is None for seen in server.posts()), "no field of a name's own")
        stated = {(seen.headers.get("MCP-Protocol-Version"), seen.headers.get("Mcp-Session-Id")) for seen in server.posts()}
        self.note(stated == {(REVISION, None)}, "MCP-Protocol-Version, and no session", stated)

    VALUES = {
        "plain": ("Plain", "string", "us west 1", "us west 1"), "empty": ("Empty", "string", "", ""),
        "yes": ("Yes", "boolean", True, "true"), "no": ("No", "boolean", False, "false"),
        "whole": ("Whole", "integer", 42, "42"), "other": ("Other", "string", "größe", None),
        "tab": ("Tab", "string", "a\tb", None), "lines": ("Lines", "string", "a\r\nX-Evil: 1", None),
        "edge": ("Edge", "string", " a ", None), "looks": ("Looks", "string", "=?base64?YQ==?=", None),
    }

    def custom_headers(self, scenario, server, client):
        properties = {
            name: {"type": kind, "x-mcp-header": field} for name, (field, kind, _, _) in self.VALUES.items()}
        properties |= {"free": {"type": "string"}, "void": {"type": "string", "x-mcp-header": "Void"}}
        server.tools = [tool("mirrored", properties)]
        client.ask("tools/list")
        arguments = {name: value for name, (_, _, value, _) in self.VALUES.items()}
        found = client.ask("tools/call", name="mirrored", arguments=arguments | {"free": "x", "void": None})
        self.note("result" in found, "a call", found)
        sent = server.posts("tools/call")[-1]
        for name, (field, _, value, text) in self.VALUES.items():
            stated = sent.headers.get("Mcp-Param-" + field)
            right = stated == text if text is not None else (stated or "").startswith("=?base64?")
            self.note(right and decoded(stated) == (text if text is not None else value), f"{field} is {value!r}", stated)
        mirrored = [name for name in sent.headers if name.lower().startswith("mcp-param-")]
        self.note(len(mirrored) == len(self.VALUES), "no other parameter", mirrored)
        self.note(sent.headers.get("X-Evil") is None, "no field of the argument's own", list(sent.headers))
        client.ask("tools/call", name="mirrored", arguments={"free": "x"})
        mirrored = [name for name in server.posts("tools/call")[-1].headers if name.lower().startswith("mcp-param-")]
        self.note(not mirrored, "what is not there has no field", mirrored)

    def invalid_tool_headers(self, scenario, server, client):
        def one(header, kind="string"):
            return {"p": {"type": kind, "x-mcp-header": header}}
        wrong = [
            one(""), one("P", "object"), one("P", "array"), one("P", "null"), one("a b"), one("a:b"), one("ä"),
            one("a\r\nX-Evil: 1"), one("P") | {"q": {"type": "string", "x-mcp-header": "P"}},
            one("P") | {"q": {"type": "string", "x-mcp-header": "p"}},
        ]
        server.tools = [tool("valid_tool", one("Region"))] + [
            tool(f"wrong{number}", properties) for number, properties in enumerate(wrong)]
        client.ask("tools/list")
        for entry in server.tools:
            found = client.ask("tools/call", name=entry["name"], arguments={"p": "x"})
            is_valid = entry["name"] == "valid_tool"
            self.note(("result" if is_valid else "error") in found, entry["name"], found)
            if not is_valid:
                self.note("x-mcp-header" in str(found.get("error")), f"{entry['name']}: the error says why", found)
        called = [seen.json["params"]["name"] for seen in server.posts("tools/call")]
        self.note(called == ["valid_tool"], "only the valid one reaches the server", called)

    def schemas(self, scenario, server, client):
        server.tools = [tool(
            "json_schema_echo", {"a": {"$ref": server.origin + "/schema.json"}},
            **{"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": {"x": {"$anchor": "x", "type": "string"}},
               "unevaluatedProperties": False, "prefixItems": [{"const": 1.0}, {"const": 1e2}]})]
        found = client.ask("tools/list")
        self.note(found["result"]["tools"] == server.tools, "the schema reaches the client unaltered", found)
        self.note(server.count("/schema.json") == 0, "no $ref is fetched")
        schema = found["result"]["tools"][0]["inputSchema"]
        client.ask("tools/call", name="json_schema_echo", arguments={"schema": schema})
        sent = server.posts("tools/call")[-1].json["params"]["arguments"]["schema"]
        self.note(sent == schema, "and the server unaltered", sent)

    def elicitation_defaults(self, scenario, server, client):
        """Of the older revisions: the server asks while a call waits, and each property has a default."""
        defaults = {"name": "John Doe", "age": 30, "score": 95.5, "status": "active", "verified": True}
        kinds = {str: "string", int: "integer", float: "number", bool: "boolean"}
        schema = {"type": "object", "required": [], "properties": {
            name: {"type": kinds[type(value)], "default": value} for name, value in defaults.items()}}
        schema["properties"]["status"]["enum"] = ["active", "inactive", "pending"]
        asked = {"jsonrpc": "2.0", "id": "ask-1", "method": "elicitation/create",
                 "params": {"message": "Who?", "requestedSchema": schema}}
        answered = threading.Event()

        def respond(request):
            body = request.json if request.method == "POST" else {}
            if body.get("id") == "ask-1":
                answered.set()
                return 202, {}, b""
            if body.get("method") != "tools/call":
                return None

            def write(out):
                out.write(server.event(asked))
                out.flush()
                content = {"content": []} if answered.wait(20) else {"content": [], "isError": True}
                out.write(server.event({"jsonrpc": "2.0", "id": body["id"], "result": content}))
            return 200, server.EVENTS, write
        server.has_sessions = True
        client.begin()
        server.rule = respond
        call = client.message("tools/call", modern=False, name="test_client_elicitation_defaults", arguments={})
        client.write(call)
        found = client.read() or {}
        self.note(found == asked, "the server's question reaches the client with its defaults, unaltered", found)
        content = {name: entry["default"] for name, entry in schema["properties"].items()}
        client.write({"jsonrpc": "2.0", "id": found.get("id"), "result": {"action": "accept", "content": content}})
        found = client.read() or {}
        self.note(found.get("id") == call["id"] and "isError" not in found.get("result", {}), "the call is answered", found)
        sent = [seen.json for seen in server.posts() if seen.json.get("id") == "ask-1"]
        self.note([message["result"]["content"] for message in sent] == [defaults], "the five defaults go back", sent)
        session = {seen.headers.get("Mcp-Session-Id") for seen in server.posts() if seen.json.get("id") == "ask-1"}
        self.note(session <= server.sessions and len(session) == 1, "in the session", session)

    def stream_retry(self, scenario, server, client):
        """Of the older revisions. No upper bound: how busy the machine is decides it."""
        times = {}

        def respond(request):
            if request.method == "GET" and request.headers.get("Last-Event-ID") == "e1":
                times["again"] = time.monotonic()
            elif request.method == "POST" and request.json.get("method") == "tools/call":
                server.cut_request = request.json["id"]

                def write(out):
                    out.write(b"retry: 500\n" + server.event(server.PROGRESS, "e1"))
                    times["end"] = time.monotonic()
                return 200, server.EVENTS, write
            return None
        server.has_sessions = True
        found = client.begin()
        self.note(found.get("result", {}).get("protocolVersion") == "2025-06-18", "initialize", found)
        self.note(server.posts("initialize")[0].json["params"]["clientInfo"] == {"name": "c"}, "clientInfo")
        server.rule = respond
        found = client.ask("tools/call", modern=False, name="test_reconnection", arguments={})
        self.note("result" in found, "the stream is resumed by its last event", found)
        self.note(times.get("again", 0) - times["end"] >= 0.45, "not before the server's retry value", str(times))
        self.note(len(server.posts("tools/call")) == 1, "the call is sent once")

    def all(self):
        self.play("scope-retry-limit", self.scope_retry_limit, challenged="mcp:basic")
        self.play("tools_call", self.tools_call)
        self.play("request-metadata", self.request_metadata)
        self.play("sep-2322-client-request-state", self.request_state)
        self.play("http-standard-headers", self.standard_headers)
        self.play("http-custom-headers", self.custom_headers)
        self.play("http-invalid-tool-headers", self.invalid_tool_headers)
        self.play("json-schema-ref-no-deref, json-schema-2020-12-preservation", self.schemas)
        self.play("elicitation-sep1034-client-defaults", self.elicitation_defaults)
        self.play("initialize, sse-retry", self.stream_retry)
        end_relays(self.run.house)


def decoded(value):
    if value and value.startswith("=?base64?") and value.endswith("?="):
        return base64.b64decode(value[9:-2]).decode()
    return value
