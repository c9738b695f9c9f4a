"""The clients at a real daemon and the sandbox provider."""

import asyncio
import io
import json
import os
import re
import sys
import threading
import unittest
import urllib.request
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal, get_args, get_origin, get_type_hints, is_typeddict
from unittest.mock import patch

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "../src"), os.path.dirname(__file__)]
from stage import ROOT, WORK, Stage, browser  # noqa: E402

from ringback import EVENT_NAMES, AsyncBroker, Broker, NoDaemon, RingbackError, models  # noqa: E402
from ringback.events import Event, EventParser  # noqa: E402
from ringback.operations import Operations  # noqa: E402
from ringback.origin import Target  # noqa: E402
from ringback.sending import Sending  # noqa: E402
from ringback.twins import Twin  # noqa: E402

STAGE = None


def setUpModule():
    global STAGE
    STAGE = Stage(WORK + "[schemes.ringback-test]\n")


def tearDownModule():
    STAGE.close()


class BrokerTests(unittest.TestCase):
    def setUp(self):
        self.broker = Broker(STAGE.socket, "tests")
        self.broker.sign_out("work")

    def test_a_sign_in_gives_a_token_that_the_provider_takes(self):
        flow = self.broker.sign_in("work", open=browser)
        self.assertEqual(flow["status"], "completed")
        self.assertEqual(self.broker.account("work")["state"], "authenticated")
        self.assertEqual(self.broker.session(issuer=STAGE.issuer)["account"], "work")
        self.assertEqual(STAGE.userinfo(self.broker.token()), 200)
        self.assertEqual([each["name"] for each in self.broker.accounts()], ["work"])

    def test_a_refused_token_is_replaced(self):
        self.broker.sign_in("work", open=browser)
        token = self.broker.token("work")
        self.broker.refresh("work", rejected=token)
        self.assertNotEqual(self.broker.token("work"), token)

    def test_events_tell_of_a_sign_in_and_a_sign_out(self):
        events = self.broker.events("work")
        first = next(events)
        self.assertEqual((first.name, first.data["state"]), ("initial_session", "unauthenticated"))
        self.broker.sign_in("work", open=browser)
        self.assertEqual(next(events).name, "signed_in")
        self.broker.sign_out("work")
        self.assertEqual(next(events).name, "signed_out")
        events.close()

    def test_errors_have_their_code(self):
        with self.assertRaises(RingbackError) as raised:
            self.broker.token("work")
        self.assertEqual((raised.exception.code, raised.exception.recovery), ("sign_in_required", "sign_in"))
        with self.assertRaises(RingbackError) as raised:
            self.broker.account("a/../b?c")
        self.assertEqual(raised.exception.code, "account_not_found")
        with self.assertRaises(RingbackError) as raised:
            next(self.broker.events("nobody"))
        self.assertEqual(raised.exception.status, 404)

    def test_a_sign_in_whose_wait_is_interrupted_is_cancelled(self):
        def interrupt(url):
            raise KeyboardInterrupt
        with self.assertRaises(KeyboardInterrupt):
            self.broker.sign_in("work", open=interrupt)
        self.assertNotIn("flow", self.broker.account("work"))

    def test_a_sign_in_that_nobody_finishes_ends_with_its_time(self):
        with self.assertRaises(RingbackError) as raised:
            self.broker.sign_in("work", open=lambda url: True, timeout=1)
        self.assertEqual(raised.exception.code, "flow_expired")

    def test_a_page_that_cannot_be_opened_is_shown(self):
        shown = []

        def show(line):
            shown.append(line)
            browser(line.removeprefix("Open: "))
        self.broker.sign_in("work", open=lambda url: False, show=show)
        [line] = shown
        # The address to open names the daemon; the one to show is the provider's.
        self.assertTrue(line.startswith(f"Open: {STAGE.issuer}/"), line)

    def test_a_page_that_the_browser_does_not_fetch_is_shown(self):
        shown = []

        def show(line):
            shown.append(line)
            browser(line.split()[-1])
        with patch("ringback.operations.PATIENCE", 0):
            # As a browser that ends after its start because it has no display.
            self.broker.sign_in("work", open=lambda url: True, show=show)
            self.broker.sign_in("work", open=browser, show=shown.append)
        [line] = shown
        self.assertTrue(line.startswith(f"The page has not been opened yet. Open: {STAGE.issuer}/"), line)

    def test_a_device_code_is_shown(self):
        shown = []

        def show(line):
            shown.append(line)
            # The provider is asked every five seconds.
            raise InterruptedError
        with self.assertRaises(InterruptedError):
            self.broker.sign_in("work", "device", show=show)
        self.assertRegex(shown[0], f"^Open: {re.escape(STAGE.issuer)}/device and enter: [A-Z0-9-]+$")
        self.assertNotIn("flow", self.broker.account("work"))

    def test_a_flow_that_is_not_opened_can_be_waited_for_and_cancelled(self):
        flow = self.broker.sign_in("work", open=False)
        self.assertEqual((flow["status"], flow["waiting_for"]), ("pending", "callback"))
        self.assertEqual([each["id"] for each in self.broker.flows() if each["status"] == "pending"], [flow["id"]])
        self.assertEqual(self.broker.cancel(flow)["status"], "cancelled")
        with self.assertRaises(RingbackError) as raised:
            self.broker.wait(flow)
        self.assertEqual(raised.exception.code, "flow_cancelled")
        flow = self.broker.sign_in("work", open=False)
        browser(flow["open_url"])
        self.assertEqual(self.broker.wait(flow)["status"], "completed")

    def test_a_callback_by_another_way(self):
        flow = self.broker.sign_in("work", open=False)
        opener = urllib.request.build_opener(KeepRedirect)
        with opener.open(flow["authorization_url"], timeout=20) as response:
            url = response.headers["Location"]
        self.assertEqual(self.broker.complete(url)["flow"]["status"], "completed")

    def test_what_a_session_includes(self):
        self.broker.sign_in("work", open=browser)
        session = self.broker.session(include=["user", "id_token"], min_valid=30)
        self.assertEqual(session["user"]["email"], "alice@example.org")
        self.assertEqual(session["id_token"].count("."), 2)
        with self.assertRaisesRegex(RingbackError, "has no profile"):
            self.broker.session(include="profile")

    def test_a_request_without_a_method_here(self):
        self.assertEqual(self.broker.request("POST", "/v1/reload")["accounts"], ["work"])
        self.assertIn("ringback_refreshes_attempted_total", self.broker.request("GET", "/v1/metrics"))
        entries = self.broker.request("GET", "/v1/audit", query={"account": "work", "limit": 1})["entries"]
        self.assertEqual(len(entries), 1)
        for path in ["/v1/status HTTP/1.1\r\nX: y", "/v1/a b", "/v1/ü"]:
            with self.assertRaises(ValueError):
                self.broker.request("GET", path)
        self.assertEqual(self.broker.peer()["pid"], os.getpid())

    def test_links_of_an_app(self):
        # A link that comes before the listener is kept for it.
        arrived = []
        listening = threading.Thread(target=lambda: arrived.append(next(self.broker.links("ringback-test"))))
        listening.start()
        self.assertEqual(self.broker.complete("ringback-test://place?x=1")["deep_link"]["scheme"], "ringback-test")
        listening.join(20)
        self.assertEqual(arrived[0]["url"], "ringback-test://place?x=1")
        self.assertTrue(self.broker.acknowledge(arrived[0])["acknowledged"])

    def test_no_daemon(self):
        with self.assertRaises(NoDaemon):
            Broker(STAGE.socket + ".none").status()

    def test_a_server_of_another_user_is_sent_nothing(self):
        own = os.getuid()
        with patch("os.getuid", return_value=own + 1):
            with self.assertRaisesRegex(NoDaemon, f"served by uid {own}, which is not yours"):
                self.broker.status()
            with patch.dict(os.environ, {"RINGBACK_SERVER_UID": str(own)}):
                self.assertIn("version", self.broker.status())


class OwnBrowserTests(unittest.TestCase):
    """An account with a browser of its own."""

    def sign_in(self, browser, show):
        stage = Stage(f"{WORK}browser = {json.dumps(browser)}\n")
        self.addCleanup(stage.close)
        with patch("webbrowser.open") as other:
            flow = Broker(stage.socket).sign_in("work", show=show)
        self.assertEqual(flow["status"], "completed")
        other.assert_not_called()

    def test_it_is_started_by_the_daemon(self):
        shown = []
        self.sign_in(["curl", "-sSLf", "{url}"], shown.append)
        self.assertEqual(shown, [])

    def test_no_other_one_takes_its_place(self):
        shown = []

        def show(line):
            shown.append(line)
            browser(line.removeprefix("Open: "))
        self.sign_in(["ringback-test-no-such-browser"], show)
        self.assertEqual(len(shown), 1)


class KeepRedirect(urllib.request.HTTPRedirectHandler):
    """A browser that stops at the callback."""

    def redirect_request(self, request, answer, code, message, headers, url):
        return super().redirect_request(request, answer, code, message, headers, url) if "code=" not in url else None

    def http_error_302(self, request, answer, code, message, headers):
        return super().http_error_302(request, answer, code, message, headers) or answer

    http_error_303 = http_error_302


class AsyncBrokerTests(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.broker = AsyncBroker(STAGE.socket)
        await self.broker.sign_out("work")

    async def test_a_sign_in_beside_its_events(self):
        names = []

        async def listen():
            async for event in self.broker.events():
                names.append(event.name)
                if event.name == "signed_in":
                    return

        listening = asyncio.create_task(listen())
        await self.broker.sign_in("work", open=browser)
        await asyncio.wait_for(listening, 20)
        self.assertEqual(STAGE.userinfo(await self.broker.token("work", min_valid=60)), 200)
        sessions = await asyncio.gather(*[self.broker.session("work") for _ in range(20)])
        self.assertEqual(len({each["access_token"] for each in sessions}), 1)
        self.assertEqual(names[-1], "signed_in")

    async def test_a_sign_in_that_is_cancelled_leaves_no_flow(self):
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(
            self.broker.sign_in("work", open=lambda url: loop.call_soon_threadsafe(begun.set)))
        await asyncio.wait_for(begun.wait(), 20)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        self.assertNotIn("flow", await self.broker.account("work"))

    async def test_no_daemon_and_errors(self):
        with self.assertRaises(NoDaemon):
            await AsyncBroker(STAGE.socket + ".none").status()
        with self.assertRaises(RingbackError) as raised:
            await self.broker.session("work")
        self.assertEqual(raised.exception.code, "sign_in_required")


class API(BaseHTTPRequestHandler):
    """Refuses the token that `refused` names, and says what it got."""

    refused, seen, proofs = None, [], []

    def do_GET(self):
        got, proof = self.headers.get("Authorization"), self.headers.get("DPoP")
        API.seen.append(got)
        API.proofs.append(proof)
        if self.path in ("/away", "/here"):
            host = "localhost" if self.path == "/away" else "127.0.0.1"
            self.send_response(302)
            self.send_header("Location", f"http://{host}:{self.server.server_port}/proven")
        else:
            self.send_response(401 if got == API.refused or self.path == "/proven" and proof is None else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *words):
        pass


class BoundBroker:
    """Its tokens are bound to a key. A proof is the URL that it is for."""

    @staticmethod
    def _walk(steps):
        bound = {"access_token": "T", "token_type": "DPoP", "authorization": "DPoP T"}
        try:
            call = next(steps)
            while True:
                call = steps.send(bound | {"dpop": (call.body or {}).get("url", "")})
        except StopIteration as end:
            return end.value


class AsyncBoundBroker:
    @staticmethod
    async def _walk(steps):
        return BoundBroker._walk(steps)


class AuthTests(unittest.TestCase):
    def setUp(self):
        self.broker = Broker(STAGE.socket)
        self.broker.sign_in("work", open=browser)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), API)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        token = self.broker.token("work")
        API.refused, API.seen, API.proofs = f"Bearer {token}", [], []

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()

    def leave_out(self, package):
        # The line is counted by Scripts/count-tests.
        print(f"skip the Python package's {package}: it is not installed", flush=True)
        self.skipTest(f"{package} is not installed")

    def expect_one_replacement(self, status):
        self.assertEqual(status, 200)
        self.assertEqual(API.seen, [API.refused, f"Bearer {self.broker.token('work')}"])

    def test_requests(self):
        try:
            import requests
        except ImportError:
            self.leave_out("requests")
        from ringback.requests_auth import RequestsAuth
        with requests.Session() as session:
            session.auth = RequestsAuth("work", origin=self.url, broker=self.broker)
            self.expect_one_replacement(session.get(self.url, timeout=20).status_code)
            API.seen.clear()
            session.get(self.url + "/away", timeout=20)
            self.assertEqual(API.seen[1:], [None], "a redirect takes no token to another origin")

    def test_httpx(self):
        try:
            import httpx
        except ImportError:
            self.leave_out("httpx")
        from ringback.httpx_auth import HTTPXAuth
        auth = HTTPXAuth("work", origin=self.url, broker=self.broker)
        with httpx.Client(auth=auth, follow_redirects=True) as client:
            self.expect_one_replacement(client.get(self.url).status_code)
            API.seen.clear()
            client.get(self.url + "/away")
            self.assertEqual(API.seen[1:], [None], "a redirect takes no token to another origin")

    def test_httpx_with_asyncio(self):
        try:
            import httpx
        except ImportError:
            self.leave_out("httpx")
        from ringback.httpx_auth import HTTPXAuth

        async def get():
            auth = HTTPXAuth("work", origin=self.url, broker=self.broker)
            async with httpx.AsyncClient(auth=auth) as client:
                return (await client.get(self.url)).status_code
        self.expect_one_replacement(asyncio.run(get()))

    def drive(self, steps, *answers):
        """Plays the daemon. What it is asked for, and the fields."""
        calls, answers = [], list(answers)
        try:
            call = next(steps)
            while True:
                calls.append((call.path.rsplit("/", 1)[1], dict(call.body or {})))
                call = steps.send(answers.pop(0))
        except StopIteration as end:
            return calls, end.value

    def test_a_token_that_is_bound_to_a_key_gets_proofs(self):
        target = Target("https://api.example.org")
        url = "https://ada@api.example.org/a?b=c#d"
        bound = {"access_token": "T", "token_type": "DPoP"}
        proof = bound | {"authorization": "DPoP T", "dpop": "P"}
        first = Sending("work", target, "GET", url)
        asked = {"method": "GET", "url": "https://api.example.org/a"}
        self.assertEqual(
            self.drive(first.fields(), bound, proof),
            ([("session", {}), ("proof", asked)], {"Authorization": "DPoP T", "DPoP": "P"}))
        refusal = {"WWW-Authenticate": 'DPoP error="use_dpop_nonce"', "DPoP-Nonce": "n1"}
        self.assertEqual(self.drive(first.again(401, refusal), proof)[0], [("proof", asked | {"nonce": "n1"})])
        self.assertIsNone(target.nonce, "it is for this request alone")
        self.assertIsNone(first.again(401, refusal), "the request is sent again once")
        self.assertIsNone(first.again(200, {"DPoP-Nonce": "n2"}))
        # The next request has the newest nonce at once; a refused token is replaced.
        second = Sending("work", target, "GET", url)
        self.assertEqual(self.drive(second.fields(), proof)[0], [("proof", asked | {"nonce": "n2"})])
        self.assertIsNone(second.again(401, {"WWW-Authenticate": 'DPoP error="invalid_dpop_proof"'}))
        calls, _ = self.drive(second.again(401, {"WWW-Authenticate": 'DPoP error="invalid_token"'}), proof)
        self.assertEqual(calls, [("proof", asked | {"nonce": "n2", "rejected_sha256": sha256(b"T").hexdigest()})])
        # What is no nonce is in no proof: the daemon would refuse it, for this request and for all later ones.
        for stated in ("n3, n4", "n\"3", "n" * 2049):
            fourth = Sending("work", target, "GET", url)
            self.assertIsNone(fourth.again(401, refusal | {"DPoP-Nonce": stated}))
            self.assertEqual(target.nonce, "n2")
        # The account has Bearer tokens from now on.
        third = Sending("work", target, "GET", url)
        bearer = {"access_token": "B", "token_type": "Bearer", "authorization": "Bearer B"}
        self.assertEqual(self.drive(third.fields(), bearer)[1], {"Authorization": "Bearer B"})
        self.assertFalse(target.is_bound)

    def expect_no_proof_behind_a_redirect(self):
        here, proven, away = (self.url + path for path in ("/here", "/proven", "/away"))
        self.assertEqual(API.proofs, [here, None, proven, here, None, proven, away, None])
        self.assertEqual(API.seen, ["DPoP T"] * 7 + [None])

    def test_a_redirect_takes_no_proof_along_with_requests(self):
        try:
            import requests
        except ImportError:
            self.leave_out("requests")
        from ringback.requests_auth import RequestsAuth
        with requests.Session() as session:
            session.auth = RequestsAuth("work", origin=self.url, broker=BoundBroker())
            self.assertEqual(session.get(self.url + "/here", timeout=20).status_code, 200)
            self.assertEqual(session.post(self.url + "/here", data=io.BytesIO(b"x"), timeout=20).status_code, 200)
            self.assertEqual(session.get(self.url + "/away", timeout=20).status_code, 401)
        self.expect_no_proof_behind_a_redirect()

    def test_a_redirect_takes_no_proof_along_with_httpx(self):
        try:
            import httpx
        except ImportError:
            self.leave_out("httpx")
        from ringback.httpx_auth import HTTPXAuth
        auth = HTTPXAuth("work", origin=self.url, broker=self.broker)
        auth._broker, auth._async_broker = BoundBroker(), AsyncBoundBroker()
        requests = [("GET", "/here", None, 200), ("POST", "/here", b"x", 200), ("GET", "/away", None, 401)]
        with httpx.Client(auth=auth, follow_redirects=True) as client:
            for method, path, content, status in requests:
                self.assertEqual(client.request(method, self.url + path, content=content).status_code, status)
        self.expect_no_proof_behind_a_redirect()
        API.seen, API.proofs = [], []

        async def send():
            async with httpx.AsyncClient(auth=auth, follow_redirects=True) as client:
                for method, path, content, status in requests:
                    answer = await client.request(method, self.url + path, content=content)
                    self.assertEqual(answer.status_code, status)
        asyncio.run(send())
        self.expect_no_proof_behind_a_redirect()

    def test_no_token_leaves_without_tls_or_for_another_origin(self):
        with self.assertRaises(ValueError):
            Target("http://api.example.org")
        target = Target("https://api.example.org")
        self.assertTrue(target.takes("https://API.example.org:443/path"))
        for url in ["http://api.example.org/", "https://api.example.org:8443/", "https://api.example.org.evil.example/",
                    "https://api.example.org@evil.example/", "https://evil.example/?https://api.example.org/"]:
            self.assertFalse(target.takes(url), url)


class EventParserTests(unittest.TestCase):
    def test_a_stream_may_be_cut_anywhere(self):
        stream = (': a comment\n\nid: 7\nevent: signed_in\ndata: {"account": "wörk",\r\ndata: "at": 1}\n\n'
                  'event: bad\ndata: {\n\nevent: worse\ndata: [1]\n\nevent: signed_out\ndata: {}\n\n').encode()
        wanted = [Event("signed_in", {"account": "wörk", "at": 1}, "7"), Event("signed_out", {})]
        for cut in range(len(stream)):
            parser = EventParser()
            self.assertEqual(parser.feed(stream[:cut]) + parser.feed(stream[cut:]), wanted, cut)


class DocumentTests(unittest.TestCase):
    """The methods and models hold to the OpenAPI document."""

    def setUp(self):
        with open(os.path.join(ROOT, "Tests/Vectors/openapi/document.json")) as file:
            self.document = json.load(file)

    @staticmethod
    def rows():
        return {name: twin.row for name, twin in vars(Operations).items() if isinstance(twin, Twin) and twin.row}

    def schema(self, value):
        return self.document["components"]["schemas"][value["$ref"].split("/")[-1]] if "$ref" in value else value

    def test_each_route_has_a_method_or_is_only_for_requests(self):
        with open(os.path.join(ROOT, "Clients/raw-only.txt")) as file:
            raw = [line.strip() for line in file if not line.startswith("#")]
        described = [f"{method.upper()} {path}" for path, own in self.document["paths"].items() for method in own]
        self.assertEqual(sorted(raw + [f"{row.method} {row.path}" for row in self.rows().values()]), sorted(described))

    def test_each_method_has_the_parameters_of_its_route(self):
        for name, row in self.rows().items():
            with self.subTest(name):
                operation = self.document["paths"][row.path][row.method.lower()]
                hints = get_type_hints(row.function)
                taken = {}
                for parameter in row.signature.parameters.values():
                    if parameter.kind is parameter.VAR_KEYWORD:
                        [members] = get_args(hints[parameter.name])
                        taken.update(get_type_hints(members))
                    elif parameter.name not in row.names:
                        taken[parameter.name.removesuffix("_")] = hints[parameter.name]
                if "rejected" in taken:
                    taken["rejected_sha256"] = taken.pop("rejected")
                known = {each["name"]: each["schema"] for each in operation.get("parameters", []) if each["in"] == "query"}
                self.assertEqual(re.findall("{(.*?)}", row.path), [
                    each["name"] for each in operation.get("parameters", []) if each["in"] == "path"])
                if "requestBody" in operation:
                    [content] = operation["requestBody"]["content"].values()
                    known.update(content["schema"].get("properties", {}))
                if row.body is None:
                    self.assertEqual(set(taken), set(known))
                for member, schema in known.items():
                    if "enum" in schema and member in taken:
                        kinds = [taken[member], *get_args(taken[member])]
                        [words] = [get_args(kind) for kind in kinds if get_origin(kind) is Literal]
                        self.assertEqual(set(words), set(schema["enum"]), member)

    def test_each_method_returns_what_its_route_answers(self):
        for name, row in self.rows().items():
            answers = self.document["paths"][row.path][row.method.lower()]["responses"]
            [content] = {json.dumps(answer["content"]): answer["content"]
                         for status, answer in answers.items() if status < "300"}.values()
            [[kind, described]] = content.items()
            result = get_type_hints(row.function)["return"]
            with self.subTest(name):
                if kind == "application/json" and row.take is not None:
                    self.assertIn(row.take, self.schema(described["schema"])["properties"])
                elif kind == "application/json":
                    wanted = described["schema"]["$ref"].split("/")[-1]
                    # What was done at once is the account; the methods tell the two apart.
                    self.assertEqual(result.__name__, "Flow" if wanted == "Beginning" else wanted)

    def test_models(self):
        schemas = self.document["components"]["schemas"]
        link = schemas["SchemeDeepLinkEvent"]["properties"]["data"]
        found = {name: model for name, model in vars(models).items() if is_typeddict(model)}
        for name, model in found.items():
            described = schemas.get(name) or {"Link": link}.get(name)
            if described is not None:
                with self.subTest(name):
                    self.assertEqual(set(get_type_hints(model)), set(described["properties"]))
                    self.assertLessEqual(model.__required_keys__, set(described.get("required", [])))
        self.assertGreater(len(found.keys() & schemas.keys()), 20)

    def test_events(self):
        schemas = self.document["components"]["schemas"]
        path = self.document["paths"]["/v1/events"]["get"]
        stream = path["responses"]["200"]["content"]["text/event-stream"]["schema"]
        names, members = set(), set()
        for choice in schemas[stream["$ref"].split("/")[-1]]["anyOf"]:
            event = choice["$ref"].split("/")[-1]
            properties = schemas[event]["properties"]
            members.update(properties["data"]["properties"])
            if not event.startswith("Telemetry"):
                names.update(properties["event"]["enum"])
        self.assertEqual(EVENT_NAMES, names)
        self.assertEqual(set(get_type_hints(models.EventData)), members)


if __name__ == "__main__":
    unittest.main()
