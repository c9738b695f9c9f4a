"""What mypy says of calls: the campaign of the tools' packages checks this file with --strict. Nothing here runs.

An unused `type: ignore` is a mistake there, so each of these lines has to be refused.
"""

from typing import Any, assert_type

from ringback import Account, AsyncBroker, Broker, Event, Flow, Link, Session


def waits(broker: Broker) -> None:
    assert_type(broker.session("a", include=["user", "profile"], sign_in="wait"), Session)
    assert_type(broker.token(), str)
    assert_type(broker.accounts(), list[Account])
    flow = broker.sign_in("a", "otp", phone="+1", open=False, timeout=60)
    assert_type(flow, Flow)
    assert_type(broker.verify(flow, "123456"), Flow)
    assert_type(broker.verify(flow["id"], token_hash="x"), Flow)
    assert_type(flow["words"], str)
    assert_type(broker.rpc("a", "f", {"x": None}), Any)
    assert_type(broker.invoke("a", "f", {"x": None}), Any)
    assert_type(next(broker.events("a")), Event)
    assert_type(next(broker.links("scheme")), Link)
    broker.sign_in("a", "opt")  # type: ignore[arg-type]
    broker.sign_in("a", "otp", fone="+1")  # type: ignore[call-arg]
    broker.sign_in("a", "otp", phone=1)  # type: ignore[arg-type]
    broker.update_user("a", channel="fax")  # type: ignore[arg-type]
    broker.token_("a")  # type: ignore[attr-defined]
    broker.session("a")["acces_token"]  # type: ignore[misc]


async def awaited(broker: AsyncBroker) -> None:
    assert_type(await broker.session("a", issuer=None), Session)
    assert_type(await broker.sign_in("a", oauth_provider="google", show=print), Flow)
    assert_type(await broker.factors("a"), list[dict[str, Any]])
    async for event in broker.events():
        assert_type(event, Event)
    async for link in broker.links("scheme"):
        assert_type(link["url"], str)
    await broker.verify("f", 1)  # type: ignore[arg-type]
    broker.token()["x"]  # type: ignore[index]
