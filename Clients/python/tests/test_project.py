"""The clients at the sandbox's Supabase project."""

import asyncio
import os
import sys
import unittest

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "../src"), os.path.dirname(__file__)]
from stage import APP, PROFILE, Stage, browser  # noqa: E402

from ringback import AsyncBroker, Broker, RingbackError  # noqa: E402

STAGE = None
PASSWORD = "correct horse battery"


def setUpModule():
    global STAGE
    STAGE = Stage(APP + PROFILE)


def tearDownModule():
    STAGE.close()


class ProjectTests(unittest.TestCase):
    def setUp(self):
        self.broker = Broker(STAGE.socket, "tests")
        self.broker.sign_out("app")

    def sign_up(self, email):
        flow = self.broker.sign_in("app", "sign_up", email=email, password=PASSWORD)
        self.assertEqual(flow, {"account": "app", "method": "sign_up", "status": "completed"})

    def expect(self, code, call, *arguments, **named):
        with self.assertRaises(RingbackError) as raised:
            call(*arguments, **named)
        self.assertEqual(raised.exception.code, code)

    def test_a_provider_and_its_identities(self):
        flow = self.broker.sign_in("app", oauth_provider="github", open=browser)
        self.assertEqual(flow["status"], "completed")
        self.assertEqual([each["provider"] for each in self.broker.identities("app")], ["github"])
        self.broker.link("app", oauth_provider="google", open=browser)
        first, second = self.broker.identities("app")
        left = self.broker.unlink("app", second["identity_id"])
        self.assertEqual([each["provider"] for each in left], [first["provider"]])

    def test_a_code_by_sms(self):
        flow = self.broker.sign_in("app", "otp", phone="+4915112345678")
        self.assertEqual((flow["status"], flow["waiting_for"]), ("pending", "code"))
        self.expect("rate_limited", self.broker.resend, flow)
        self.expect("invalid_credentials", self.broker.verify, flow, "000000")
        self.assertEqual(self.broker.verify(flow, STAGE.code())["status"], "completed")
        self.assertEqual(self.broker.user("app")["phone"].lstrip("+"), "4915112345678")

    def test_a_code_of_another_user_is_an_error_and_changes_nothing(self):
        self.sign_up("mira2@example.org")
        flow = self.broker.sign_in("app", "otp", email="other@example.org")
        self.expect("state_conflict", self.broker.verify, flow, STAGE.code("mailbox"))
        self.assertEqual(self.broker.user("app")["email"], "mira2@example.org")
        self.expect("flow_expired", self.broker.resend, flow)

    def test_a_code_by_mail(self):
        flow = self.broker.sign_in("app", "otp", email="otto@example.org")
        self.assertEqual(self.broker.verify(flow, STAGE.code("mailbox"))["status"], "completed")

    def test_a_password_that_is_changed_and_forgotten(self):
        self.sign_up("mira@example.org")
        changed = self.broker.update_user("app", password=PASSWORD + " 2", data={"full_name": "Mira"})
        self.assertEqual(changed["user"]["user_metadata"]["full_name"], "Mira")
        self.broker.sign_out("app")
        self.expect("invalid_credentials", self.broker.sign_in, "app", "password", email="mira@example.org",
                    password=PASSWORD)
        self.broker.sign_in("app", "password", email="mira@example.org", password=PASSWORD + " 2")
        self.assertTrue(self.broker.reauthenticate("app")["sent"])
        self.broker.sign_out("app")
        flow = self.broker.reset_password("app", email="mira@example.org")
        self.assertEqual(self.broker.verify(flow, STAGE.code("mailbox"))["status"], "completed")
        self.broker.update_user("app", password=PASSWORD)

    def test_the_row_of_the_user_is_the_profile(self):
        self.sign_up("nora@example.org")
        session = self.broker.session("app", include="user,profile")
        self.assertEqual((session["profile"]["email"], session["profile_status"]), ("nora@example.org", "active"))
        self.assertEqual(session["profile"]["id"], session["user"]["id"])

    def test_functions_and_second_factors(self):
        self.sign_up("olga@example.org")
        self.assertEqual(self.broker.rpc("app", "echo", {"a": 1, "b": None}), {"a": 1, "b": None})
        self.expect("validation_failed", self.broker.rpc, "app", "other")
        self.assertEqual(self.broker.invoke("app", "echo", {"a": 1}), {"a": 1})
        self.assertIsNone(self.broker.invoke("app", "nothing"))
        factor = self.broker.enroll_factor("app", friendly_name="phone", factor_type="phone", phone="+4915112345679")
        challenge = self.broker.challenge_factor("app", factor, channel="sms")
        self.broker.verify_factor("app", factor, STAGE.code(), challenge_id=challenge["id"])
        self.assertEqual(self.broker.session("app")["aal"], "aal2")
        self.assertEqual([each["id"] for each in self.broker.factors("app")], [factor["id"]])
        self.broker.remove_factor("app", factor)
        self.assertEqual(self.broker.factors("app"), [])

    def test_an_anonymous_user_and_a_migration(self):
        self.broker.sign_in("app", "anonymous", persist=False)
        account = self.broker.migrate("app", "device-7")
        self.assertEqual(account["migration"]["from"], "device-7")
        self.assertNotIn("migration", self.broker.finish_migration("app"))

    def test_passkeys_and_consents(self):
        STAGE.set_project(passkeys=True)
        self.sign_up("pavel@example.org")
        options = self.broker.passkey_options("app")
        self.expect("validation_failed", self.broker.register_passkey, "app", challenge_id=options["challenge_id"],
                    credential={})
        self.assertEqual(self.broker.passkeys("app"), [])
        self.expect("method_unsupported", self.broker.consents, "app")
        flow = self.broker.sign_in("app", "passkey")
        self.assertEqual((flow["waiting_for"], flow["status"]), ("passkey", "pending"))
        self.broker.cancel(flow)

    def test_a_page(self):
        shown = []
        opened = []

        def open_page(url):
            opened.append(url)
            raise InterruptedError
        with self.assertRaises(InterruptedError):
            self.broker.sign_in("app", "page", open=open_page, show=shown.append)
        self.assertRegex(shown[0], r"^The page shows the words: \w+ \w+$")
        self.assertIn("/start/", opened[0])

    def test_the_same_for_asyncio(self):
        async def run():
            broker = AsyncBroker(STAGE.socket)
            flow = await broker.sign_in("app", "otp", phone="+4915112345670")
            await broker.verify(flow, STAGE.code())
            user = await broker.user("app")
            self.assertEqual(user["phone"].lstrip("+"), "4915112345670")
            self.assertEqual(await broker.rpc("app", "echo", {"a": 1}), {"a": 1})
            with self.assertRaises(RingbackError):
                await broker.verify(flow, "000000")
            signed_out = await broker.sign_out("app", scope="global")
            self.assertTrue(signed_out["had_session"])
        asyncio.run(run())


if __name__ == "__main__":
    unittest.main()
