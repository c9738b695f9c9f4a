#!/usr/bin/env -S python3 -B
"""What a client of MCP servers must do, scenario by scenario: where metadata are, which client, which scopes, which issuer,
and what stands in the requests of a bridge (mcp_messages.py).

Each scenario has an MCP server and an authorization server of its own, both made here, and says what must have happened there
and what must not.
"""

import json
import os
import re
import shlex
import sys
import urllib.parse

from harness import play, read, tcp_request, write
from mcp import mcp_house, ringback
from mcp_bridge import Client
from mcp_extensions import Extensions
from mcp_messages import Messages
from mcp_parties import REVISION, Issuer, MCPServer

DOCUMENT = "https://conformance-test.local/client-metadata.json"
ROOT = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"
# What must have been played. One that is left out has failed.
REQUIRED = """
    metadata-default metadata-var1 metadata-var2 metadata-var3 basic-cimd scope-from-www-authenticate
    scope-from-scopes-supported scope-omitted-when-undefined scope-step-up scope-retry-limit
    token-endpoint-auth-basic token-endpoint-auth-post token-endpoint-auth-none pre-registration resource-mismatch
    offline-access-scope offline-access-not-supported authorization-server-migration iss-supported iss-not-advertised
    iss-supported-missing iss-wrong-issuer iss-unexpected iss-normalized metadata-issuer-mismatch
    tools_call request-metadata sep-2322-client-request-state http-standard-headers http-custom-headers
    http-invalid-tool-headers json-schema-ref-no-deref
    initialize elicitation-sep1034-client-defaults sse-retry json-schema-2020-12-preservation
    client-credentials-jwt client-credentials-basic wif-jwt-bearer
    2025-03-26-oauth-metadata-backcompat 2025-03-26-oauth-endpoint-fallback
""".split()


class Scenario:
    """One scenario: its parties, an account from the server's URL, and what came of a sign-in."""

    def __init__(self, house, name, issuer, server, settings, words):
        self.house, self.name, self.issuer, self.server = house, name, issuer, server
        self.added = self.add(*words)
        if settings:
            place = os.path.join(os.path.dirname(house.configuration), f"accounts.d/{name}.toml")
            with open(place, "a") as file:
                file.write(settings + "\n")
            ringback(house, "reload")

    def add(self, *words):
        """`account add`: its exit status, and what it says."""
        status, said, errors = ringback(self.house, "account", "add", self.name, "--mcp", self.server.url, *words)
        return status, said + errors

    def sign_in(self, **body):
        """The flow's status, or why there is no flow. The server approves, and its redirect is the callback."""
        status, flow = self.house.api("POST", f"/v1/accounts/{self.name}/sign-in", body)
        if "authorization_url" not in flow:
            self.problem = flow
            return f"refused: {flow.get('detail')}"
        seen, headers, content, _ = tcp_request(flow["authorization_url"])
        if seen != 302:
            return f"authorization {seen}: {content[:200]!r}"
        tcp_request(headers["Location"])
        found = self.house.api("GET", f"/v1/flows/{flow['id']}?wait=2")[1]
        if found.get("status") == "pending":
            self.house.api("DELETE", f"/v1/flows/{flow['id']}")
        self.problem = found.get("error")
        return found.get("status")

    def call(self, method="tools/list", **params):
        """A request to the MCP server with the account's token: the status."""
        token = ringback(self.house, "token", self.name)[1].strip()
        params["_meta"] = {"io.modelcontextprotocol/protocolVersion": REVISION}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        headers = {
            "Authorization": f"Bearer {token}", "Content-Type": "application/json", "MCP-Protocol-Version": REVISION,
            "Accept": "application/json, text/event-stream", "Mcp-Method": method,
        }
        return tcp_request(self.server.url, "POST", body, headers)[0]

    @property
    def authorizations(self):
        return self.issuer.sent(self.issuer.endpoint("authorize"))

    @property
    def redemptions(self):
        return [seen.form for seen in self.issuer.sent(self.issuer.endpoint("token"))]

    @property
    def registrations(self):
        return [seen.json for seen in self.issuer.sent(self.issuer.endpoint("register"))]

    @property
    def mistakes(self):
        return self.issuer.mistakes + self.server.mistakes

    def close(self):
        ringback(self.house, "account", "remove", self.name, "--yes")
        self.issuer.close()
        self.server.close()


class Run:
    """All scenarios of a house, with what they note."""

    def __init__(self, house, report):
        self.house, self.report = house, report
        self.number = 0
        self.played = set()
        self.current = None

    def begin(self, title):
        """The name of the account of another scenario. The former one ends."""
        self.end()
        self.number += 1
        self.title = title
        self.played |= set(title.split(", "))
        return f"s{self.number}"

    def scenario(self, title, issuer=None, server=None, settings="", words=("--offline",), **habits):
        """The habits are those of the server, if none is given."""
        issuer = issuer or Issuer()
        server = server or MCPServer([issuer], **habits)
        self.current = Scenario(self.house, self.begin(title), issuer, server, settings, words)
        return self.current

    def end(self):
        if self.current:
            self.current.close()
        self.current = None

    def note(self, is_right, what, why=""):
        self.report.note(is_right, f"{self.title}: {what}", why)

    def completes(self, scenario, what="sign-in", **body):
        found = scenario.sign_in(**body)
        self.note(found == "completed", what, f"{found} {scenario.problem}")
        return found == "completed"

    def whole(self, scenario):
        """A sign-in that must be complete, without a mistake that either server saw."""
        if self.completes(scenario):
            self.note(scenario.call() == 200, "the token is taken by the server")
        self.note(not scenario.mistakes, "no mistake", str(scenario.mistakes))

    def stopped(self, scenario, authorizations):
        """A sign-in that must end without a token request, after so many authorization requests."""
        found = scenario.sign_in()
        self.note(found != "completed", "no session", found)
        self.note(len(scenario.authorizations) == authorizations, "authorization requests", len(scenario.authorizations))
        self.note(not scenario.redemptions, "no token request", str(scenario.redemptions))

    def metadata_default(self):
        scenario = self.scenario("metadata-default")
        self.whole(scenario)
        root = scenario.server.count("/.well-known/oauth-protected-resource")
        self.note(root == 0, "the stated location is the only one asked", root)

    def metadata_var1(self):
        issuer = Issuer(places=["openid-configuration"])
        scenario = self.scenario("metadata-var1", issuer, says_place=False)
        self.whole(scenario)
        asked = [seen.path for seen in issuer.requests if "well-known" in seen.path]
        self.note(asked[:2] == [ROOT, OPENID], "both forms are asked, in order", asked)
        asked = [seen.path for seen in scenario.server.requests if "well-known" in seen.path]
        self.note(asked[:1] == [server_path("/mcp")], "the path's location is asked", asked)

    def metadata_var2(self):
        issuer = Issuer("/tenant1")
        server = MCPServer([issuer], place="root", says_place=False)
        server.resource = server.origin
        scenario = self.scenario("metadata-var2", issuer, server)
        self.whole(scenario)
        self.note(issuer.count(ROOT) == 0, "the root of the authorization server is not asked")
        path = [seen.path for seen in server.requests if "protected-resource" in seen.path]
        self.note(path[:2] == [server_path("/mcp"), server_path("")], "the path's location is asked first", path)

    def metadata_var3(self):
        issuer = Issuer("/tenant1", places=["appended"])
        scenario = self.scenario("metadata-var3", issuer, place="/custom/metadata.json")
        self.whole(scenario)
        self.note(issuer.count(ROOT) == 0, "the root of the authorization server is not asked")
        asked = [seen.path for seen in issuer.requests if "well-known" in seen.path]
        forms = [ROOT + "/tenant1", OPENID + "/tenant1", "/tenant1" + OPENID]
        self.note(asked[:3] == forms, "the three forms are asked, in order", asked)
        others = [seen.path for seen in scenario.server.requests if "well-known" in seen.path]
        self.note(not others, "only the stated location is asked", others)

    def resource_mismatch(self):
        scenario = self.scenario("resource-mismatch", resource="https://elsewhere.example.org/mcp")
        self.stopped(scenario, authorizations=0)
        self.note("elsewhere.example.org" in str(scenario.problem), "it is said", scenario.problem)

    def metadata_issuer_mismatch(self):
        issuer = Issuer(stated_issuer="http://127.0.0.1:9/other")
        scenario = self.scenario("metadata-issuer-mismatch", issuer)
        self.stopped(scenario, authorizations=0)
        self.note(issuer.count(ROOT) > 0 and not scenario.registrations, "metadata asked, nothing registered")

    def no_pkce(self):
        scenario = self.scenario("no S256")
        honest = Issuer.metadata.fget
        scenario.issuer.__class__ = type("Plain", (Issuer,), {
            "metadata": property(lambda self: {
                name: value for name, value in honest(self).items() if name != "code_challenge_methods_supported"})})
        self.stopped(scenario, authorizations=0)

    def basic_document(self):
        scenario = self.scenario("basic-cimd", Issuer(documents=True), settings=f'client_id_metadata_url = "{DOCUMENT}"')
        self.whole(scenario)
        clients = [seen.query.get("client_id") for seen in scenario.authorizations]
        self.note(clients == [DOCUMENT], "the client id is the document's URL", clients)
        self.note(not scenario.registrations, "nothing is registered")

    def token_endpoint_auth(self, method):
        issuer = Issuer(methods=[method])
        title = "token-endpoint-auth-" + method.removeprefix("client_secret_")
        scenario = self.scenario(title, issuer)
        self.whole(scenario)
        ways = [("Authorization" in seen.headers, "client_secret" in seen.form)
                for seen in issuer.sent(issuer.endpoint("token"))]
        expected = (method == "client_secret_basic", method == "client_secret_post")
        self.note(ways == [expected], "where the secret is", ways)
        resources = {seen.query.get("resource") for seen in scenario.authorizations}
        resources |= {form.get("resource") for form in scenario.redemptions}
        self.note(resources == {scenario.server.url}, "resource in both requests", str(resources))
        kinds = [asked.get("application_type") for asked in scenario.registrations]
        self.note(kinds == ["native"], "one native client is registered", kinds)

    def pre_registration(self):
        issuer = Issuer(
            registers=False, methods=["client_secret_basic"],
            clients={"given": ("client_secret_basic", "given-secret", [])})
        secret = self.house.place("given-secret")
        write(secret, "given-secret\n")
        scenario = self.scenario(
            "pre-registration", issuer,
            settings=f'client_id = "given"\nissuer = "{issuer.issuer}"\nclient_secret_file = "{secret}"')
        self.whole(scenario)
        self.note(not scenario.registrations, "nothing is registered")

    def migration(self):
        first, second = Issuer(), Issuer()
        server = MCPServer([first])
        scenario = self.scenario("authorization-server-migration", first, server)
        self.whole(scenario)
        former = {seen.query["client_id"] for seen in scenario.authorizations}
        looked = server.count(server.place)
        server.issuers = [second]
        scenario.issuer = second
        self.note(scenario.call() == 401, "the old token is refused")
        server.mistakes.clear()
        self.completes(scenario, "sign-in at the second server")
        self.note(server.count(server.place) > looked, "the server's metadata are read again")
        self.note(len(scenario.registrations) == 1, "a client is registered there")
        shown = {seen.query["client_id"] for seen in scenario.authorizations}
        shown |= {form.get("client_id") for form in scenario.redemptions}
        self.note(shown and not shown & former, "the first client is never shown there", str(shown & former))
        presented = {form.get("refresh_token") for form in scenario.redemptions} - {None}
        self.note(not presented & set(first.refresh_tokens), "nor a refresh token of the first server")
        self.note(scenario.call() == 200, "the new token is taken")
        first.close()

    def documents_only(self):
        title = "an authorization server that takes only client-id metadata documents"
        scenario = self.scenario(title, Issuer(registers=False, documents=True, hosted={}), words=())
        self.note("client-id metadata document" in scenario.added[1], "the error says what is taken", scenario.added)
        self.as_printed(scenario)

    def documents_without_iss(self):
        issuer = Issuer(registers=False, documents=True, hosted={}, announces_iss=False, iss=None)
        title = "only documents, and authorization_response_iss_parameter_supported is not announced"
        words = ["--client-id-metadata-url", DOCUMENT]
        scenario = self.scenario(title, issuer, words=words)
        self.note("(iss, RFC 9207)" in scenario.added[1], "account add is refused with the reason", scenario.added)
        scenario.add(*words, "--offline")
        self.stopped(scenario, authorizations=0)
        self.note("(iss, RFC 9207)" in str(scenario.problem), "so is the sign-in", scenario.problem)
        ringback(self.house, "account", "remove", scenario.name, "--yes")
        self.as_printed(scenario)
        path = {urllib.parse.urlsplit(seen.query["redirect_uri"]).path for seen in scenario.authorizations}
        self.note(path == {f"/callback/{scenario.name}"}, "the redirect URI is the account's own", str(path))

    def as_printed(self, scenario):
        """Hosts the document that the failed `account add` printed, types the command that it printed, and signs in."""
        status, text = scenario.added
        command = "[“`]?(ringback account add .*?)[”`]?"
        found = re.search(rf'({{"client_id".*?}}) Then run: {command}\. Nothing was written', text)
        self.note(status != 0 and found, "the error has the document to host, and the command to type then", text)
        if not found:
            return
        document, words = json.loads(found[1]), shlex.split(found[2])
        scenario.issuer.habits["hosted"][document["client_id"]] = document
        status, said, errors = ringback(self.house, *words[1:])
        self.note(status == 0, "the command as it is printed works", errors or said)
        self.whole(scenario)
        clients = {seen.query.get("client_id") for seen in scenario.authorizations}
        self.note(clients == {document["client_id"]}, "the client id is the document's URL", str(clients))

    def resource_refused(self, place):
        issuer = Issuer(
            registers=False, clients={"given": ("none", None, [])}, refuses_resource_at=place, resource_required=False)
        title = f"an authorization server that refuses the parameter resource, as Entra does, at its endpoint {place}"
        words = ["--issuer", issuer.issuer, "--client-id", "given"]
        scenario = self.scenario(title, issuer, words=words)
        if place == "authorize":
            status, text = scenario.added
            self.note(status != 0 and "--no-resource-parameter" in text, "account add names the option", text)
            issuer.requests.clear()
            scenario.add(*words, "--offline")
        else:
            found = scenario.sign_in()
            self.note(found != "completed", "no session", found)
            text = json.dumps(scenario.problem)
            self.note("resource_parameter = false" in text, "the sign-in's error names the setting", text)
        ringback(self.house, "account", "remove", scenario.name, "--yes")
        issuer.requests.clear()
        status, text = scenario.add(*words, "--no-resource-parameter")
        self.note(status == 0, "account add with --no-resource-parameter", text)
        self.whole(scenario)
        status, _, errors = ringback(self.house, "refresh", scenario.name)
        self.note(status == 0, "a refresh", errors)
        sent = [seen.query for seen in scenario.authorizations] + scenario.redemptions
        named = any("resource" in asked for asked in sent)
        self.note(len(sent) > 2 and not named, "no request has the parameter", sent)

    def without_sign_in(self):
        server = MCPServer([], place=None)
        server.needs_sign_in = False
        scenario = self.scenario("a server that needs no sign-in", None, server, words=())
        status, text = scenario.added
        self.note(status == 0, "account add", text)
        place = os.path.join(os.path.dirname(self.house.configuration), f"accounts.d/{scenario.name}.toml")
        written = read(place)
        self.note("sign_in = false" in written.splitlines(), "sign_in = false is written", written)
        shown = self.house.ringback("accounts").stdout
        self.note("needs no sign-in" in shown, "ringback accounts says so", shown)
        client = Client(self.house, scenario.name)
        found = client.ask("tools/call", name="add_numbers", arguments={"a": 2, "b": 3})
        content = found.get("result", {}).get("content")
        self.note(content == [{"type": "text", "text": "5"}], "the bridge passes a call through", found)
        self.note(client.close() == 0 and not client.strays, "nothing but messages on standard output", client.strays)
        named = [seen.path for seen in server.requests if "Authorization" in seen.headers]
        self.note(not named and not scenario.mistakes, "no request has a token", named or scenario.mistakes)

    def scopes(self, title, challenged, listed, expected):
        scenario = self.scenario(title, challenged=challenged, listed=listed)
        self.whole(scenario)
        asked = [seen.query.get("scope") for seen in scenario.authorizations]
        self.note([set((text or "").split()) for text in asked] == [expected], "the scopes requested", str(asked))
        if not expected:
            self.note(asked == [None], "no parameter scope at all", str(asked))

    def step_up(self):
        issuer = Issuer()
        server = MCPServer([issuer], challenged="mcp:basic", listed=["mcp:basic", "mcp:write", "mcp:profile"])
        server.needed = "mcp:write"
        scenario = self.scenario("scope-step-up", issuer, server)
        self.whole(scenario)
        call = {"name": "add_numbers", "arguments": {"a": 2, "b": 3}}
        self.note(scenario.call("tools/call", **call) == 403, "the tool needs more")
        self.completes(scenario, "a second sign-in", scopes="mcp:write")
        asked = [set(seen.query.get("scope", "").split()) for seen in scenario.authorizations]
        self.note(asked == [{"mcp:basic"}, {"mcp:basic", "mcp:write"}], "the union is requested", str(asked))
        self.note(scenario.call("tools/call", **call) == 200, "the tool is called")

    def offline_access(self, is_listed):
        issuer = Issuer(scopes=["mcp:basic", "offline_access"] if is_listed else ["mcp:basic"], documents=True)
        title = "offline-access-scope" if is_listed else "offline-access-not-supported"
        scenario = self.scenario(title, issuer, listed=["mcp:basic"])
        self.whole(scenario)
        asked = [set(seen.query.get("scope", "").split()) for seen in scenario.authorizations]
        expected = {"mcp:basic", "offline_access"} if is_listed else {"mcp:basic"}
        self.note(asked == [expected], "the scopes requested", str(asked))
        grants = [set(asked["grant_types"]) for asked in scenario.registrations]
        registered = [True] == ["refresh_token" in grant for grant in grants]
        self.note(registered, "one client is registered, with refresh_token", str(grants))

    def iss(self, title, announces, sent, is_taken):
        issuer = Issuer(announces_iss=announces)
        issuer.habits["iss"] = sent(issuer) if callable(sent) else sent
        scenario = self.scenario(title, issuer)
        if is_taken:
            self.whole(scenario)
        else:
            self.stopped(scenario, authorizations=1)

    def without_resource_metadata(self, has_metadata):
        issuer = Issuer(endpoints="/oauth" if has_metadata else "", resource_required=False)
        server = MCPServer([issuer], place=None)
        # Both are one origin.
        issuer.origin = issuer.issuer = server.origin
        if not has_metadata:
            issuer.places = []
        title = "2025-03-26-oauth-metadata-backcompat" if has_metadata else "2025-03-26-oauth-endpoint-fallback"
        scenario = self.scenario(title, issuer, server)
        self.completes(scenario)
        for name in ["register", "authorize", "token"]:
            self.note(server.count(issuer.endpoint(name)) == 1, f"{issuer.endpoint(name)} is asked once")
        self.note(not scenario.mistakes, "no mistake", str(scenario.mistakes))

    def all(self):
        for part in [self.metadata_default, self.metadata_var1, self.metadata_var2, self.metadata_var3, self.basic_document]:
            part()
        self.scopes("scope-from-www-authenticate", "mcp:basic", ["mcp:basic", "mcp:read"], {"mcp:basic"})
        listed = ["mcp:basic", "mcp:read", "mcp:write"]
        self.scopes("scope-from-scopes-supported", None, listed, set(listed))
        self.scopes("scope-omitted-when-undefined", None, None, set())
        self.step_up()
        for method in ["client_secret_basic", "client_secret_post", "none"]:
            self.token_endpoint_auth(method)
        self.pre_registration()
        self.documents_only()
        self.documents_without_iss()
        self.resource_refused("authorize")
        self.resource_refused("token")
        self.without_sign_in()
        self.resource_mismatch()
        self.offline_access(is_listed=True)
        self.offline_access(is_listed=False)
        self.migration()
        self.iss("iss-supported", True, True, is_taken=True)
        self.iss("iss-not-advertised", False, None, is_taken=True)
        self.iss("iss-supported-missing", True, None, is_taken=False)
        self.iss("iss-wrong-issuer", True, "https://evil.example.org", is_taken=False)
        self.iss("iss-unexpected", False, "https://evil.example.org", is_taken=False)
        self.iss("iss-normalized", True, lambda issuer: issuer.issuer + "/", is_taken=False)
        self.metadata_issuer_mismatch()
        self.no_pkce()
        self.without_resource_metadata(has_metadata=True)
        self.without_resource_metadata(has_metadata=False)
        Extensions(self).all()
        Messages(self).all()
        self.end()
        self.title = "all of them"
        for name in REQUIRED:
            self.note(name in self.played, f"{name} is played")


def server_path(path):
    return "/.well-known/oauth-protected-resource" + path


def campaign(chosen, report, places):
    Run(mcp_house(chosen, places), report).all()


if __name__ == "__main__":
    sys.exit(play(__doc__, campaign))
