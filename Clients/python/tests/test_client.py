"""The clients at a real daemon and the sandbox provider."""

import asyncio
import json
import os
import sys
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import get_type_hints

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "../src"), os.path.dirname(__file__)]
from stage import ROOT, Stage, browser  # noqa: E402

from ringback import EVENT_NAMES, AsyncBroker, Broker, NoDaemon, RingbackError, calls, models  # noqa: E402
from ringback.events import Event, EventParser  # noqa: E402
from ringback.origin import Target  # noqa: E402

STAGE = None


def setUpModule():
    global STAGE
    STAGE = Stage()


def tearDownModule():
    STAGE.close()


class BrokerTests(unittest.TestCase):
    def setUp(self):
        self.broker = Broker(STAGE.socket, "tests")
        self.broker.sign_out("work")

    def test_a_sign_in_gives_a_token_that_the_provider_takes(self):
        account = self.broker.sign_in_with_browser("work", open_page=browser)
        self.assertEqual(account["state"], "authenticated")
        self.assertEqual(STAGE.userinfo(self.broker.token()), 200)
        self.assertEqual([each["name"] for each in self.broker.accounts()], ["work"])

    def test_a_refused_token_is_replaced(self):
        self.broker.sign_in_with_browser("work", open_page=browser)
        token = self.broker.token("work")
        self.broker.refresh("work", rejected=token)
        self.assertNotEqual(self.broker.token("work"), token)

    def test_events_tell_of_a_sign_in_and_a_sign_out(self):
        events = self.broker.events("work")
        first = next(events)
        self.assertEqual((first.name, first.data["state"]), ("initial_session", "unauthenticated"))
        self.broker.sign_in_with_browser("work", open_page=browser)
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

    def test_a_sign_in_that_nobody_finishes_is_cancelled(self):
        with self.assertRaises(TimeoutError):
            self.broker.sign_in_with_browser("work", open_page=lambda url: None, timeout=0)
        self.assertNotIn("flow", self.broker.account("work"))

    def test_no_daemon(self):
        with self.assertRaises(NoDaemon):
            Broker(STAGE.socket + ".none").status()


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
        await self.broker.sign_in_with_browser("work", open_page=browser)
        await asyncio.wait_for(listening, 20)
        self.assertEqual(STAGE.userinfo(await self.broker.token("work", min_valid=60)), 200)
        sessions = await asyncio.gather(*[self.broker.session("work") for _ in range(20)])
        self.assertEqual(len({each["access_token"] for each in sessions}), 1)
        self.assertEqual(names[-1], "signed_in")

    async def test_no_daemon_and_errors(self):
        with self.assertRaises(NoDaemon):
            await AsyncBroker(STAGE.socket + ".none").status()
        with self.assertRaises(RingbackError) as raised:
            await self.broker.session("work")
        self.assertEqual(raised.exception.code, "sign_in_required")


class API(BaseHTTPRequestHandler):
    """Refuses the token that `refused` names, and says what it got."""

    refused, seen = None, []

    def do_GET(self):
        got = self.headers.get("Authorization")
        API.seen.append(got)
        if self.path == "/away":
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{self.server.server_port}/")
        else:
            self.send_response(401 if got == API.refused else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words):
        pass


class AuthTests(unittest.TestCase):
    def setUp(self):
        self.broker = Broker(STAGE.socket)
        self.broker.sign_in_with_browser("work", open_page=browser)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), API)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        token = self.broker.token("work")
        API.refused, API.seen = f"Bearer {token}", []

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
            session.auth = RequestsAuth(self.broker, "work", origin=self.url)
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
        auth = HTTPXAuth("work", origin=self.url, socket_path=STAGE.socket)
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
            auth = HTTPXAuth("work", origin=self.url, socket_path=STAGE.socket)
            async with httpx.AsyncClient(auth=auth) as client:
                return (await client.get(self.url)).status_code
        self.expect_one_replacement(asyncio.run(get()))

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
    """The calls and models hold to the OpenAPI document."""

    def setUp(self):
        with open(os.path.join(ROOT, "Tests/Vectors/openapi/document.json")) as file:
            self.document = json.load(file)

    def test_calls(self):
        made = [
            calls.status(), calls.accounts(), calls.account("a"), calls.refresh("a", "t", True), calls.events("a"),
            calls.session("a", 1, 2, "s", "a", "r", "id_token", "s", "user", "wait"), calls.flow("f", 1),
            calls.sign_in("a", "browser", {}), calls.cancel("f"), calls.sign_out("a", "local"),
            calls.lookup("https://a.example", "u", "t", True, True),
        ]
        for call in made:
            with self.subTest(f"{call.method} {call.path}"):
                operation = self.document["paths"][call.path][call.method.lower()]
                known = {each["name"] for each in operation.get("parameters", [])}
                self.assertLessEqual({*call.names, *call.query}, known)
                if call.body is not None:
                    [content] = operation["requestBody"]["content"].values()
                    self.assertLessEqual(set(call.body), set(content["schema"]["properties"]))

    def test_models(self):
        for model in [models.Session, models.Account, models.Flow, models.OriginCredential, models.Status]:
            with self.subTest(model.__name__):
                described = set(self.document["components"]["schemas"][model.__name__]["properties"])
                self.assertLessEqual(set(get_type_hints(model)), described)

    def test_events(self):
        schemas = self.document["components"]["schemas"]
        path = self.document["paths"][calls.events("a").path]["get"]
        stream = path["responses"]["200"]["content"]["text/event-stream"]["schema"]
        names, members = set(), set()
        for choice in schemas[stream["$ref"].split("/")[-1]]["anyOf"]:
            event = choice["$ref"].split("/")[-1]
            # The client does not ask for telemetry.
            if not event.startswith("Telemetry"):
                properties = schemas[event]["properties"]
                names.update(properties["event"]["enum"])
                members.update(properties["data"]["properties"])
        self.assertEqual(EVENT_NAMES, names)
        self.assertEqual(set(get_type_hints(models.EventData)), members)


if __name__ == "__main__":
    unittest.main()
