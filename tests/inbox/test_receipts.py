"""Receipts of an inbox: owed by the commit that changes the state, told to its own address, until they were heard."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from surehook.core import effects, ids, receipt_message, signature
from surehook.core.receipt import Word
from surehook.core.receipt_message import ITEMS
from surehook.core.verification import VerifyError
from surehook.core.verification import verify as believe
from surehook.inbox import Ignore, Inbox, Later, ReceiptsTo, Refuse, sources
from surehook.inbox.receipt_batches import MOST_S
from surehook.inbox.sources import SourceError
from tests.client.stand_in import Heard, StandIn, answer, stand_in
from tests.inbox.house import NOW, SECRET, House, call, message, partner

MATERIAL = signature.read_secret(SECRET)[1]
OTHER = "whsec_" + "b3RoZXJvdGhlcm90aGVyb3RoZXJvdGhlcg=="
ENDPOINT = ids.text(ids.ENDPOINT, ids.uuid7(NOW, b"e" * 10))
OK = answer(200, {"taken": 1, "unknown": []})
TAKEN = "/v1/receipts"


def evt(n: int) -> str:
    return ids.text(ids.EVENT, ids.uuid7(NOW, n.to_bytes(10, "big")))


def dlv(n: int) -> str:
    return ids.text(ids.DELIVERY, ids.uuid7(NOW, n.to_bytes(10, "big")))


class Sender:
    """Delivers and asks; hears receipts on its own address, and believes them as the product does."""

    def __init__(self, house: House, server: Any) -> None:
        self.house = house
        self.server = server

    def deliver(
        self, n: int, *, endpoint: str | None = ENDPOINT, delivery: str | None = None, **more: str
    ) -> Any:
        event_id, body = message(evt(n))
        asked = call(event_id, body, at=self.house.clock.at)
        extra = [("webhook-delivery-id", delivery or dlv(n)), *more.items()]
        if endpoint is not None:
            extra.append(("Webhook-Receipts", endpoint))
        return self.house.do(
            self.house.inbox.receive(structs.replace(asked, headers=[*asked.headers, *extra]))
        )

    def tells(self) -> int:
        return self.house.do(self.house.inbox.send_receipts())

    @property
    def heard(self) -> list[Heard]:
        return self.server.heard

    def words(self) -> list[dict[str, Word]]:
        """What each message said, by delivery; every one of them is signed as it must be."""
        return [{ids.text("dlv", one.delivery): one.word for one in self.said(heard)} for heard in self.heard]

    def said(self, heard: Heard) -> list[Any]:
        assert (heard.method, heard.target, heard.headers["webhook-receipts"]) == ("POST", TAKEN, ENDPOINT)
        receipt_message.verify(heard.headers, heard.body, [MATERIAL], now=self.house.clock.at / 1000)
        return receipt_message.read(heard.body)


@pytest.fixture(params=["sync", "async"])
def small(
    request: pytest.FixtureRequest, runner: asyncio.Runner, tmp_path: Path
) -> Iterator[Callable[..., House]]:
    """Makes houses of both kinds on SQLite."""
    made: list[House] = []

    def make(**options: Any) -> House:
        made.append(House(request.param, f"sqlite:///{tmp_path / 'inbox.db'}", runner, **options))
        return made[-1].prepare() if len(made) == 1 else made[-1]

    yield make
    for house in made:
        house.close()


@pytest.fixture
def server() -> Iterator[StandIn]:
    with stand_in(OK) as made:
        yield made


@pytest.fixture
def sender(small: Callable[..., House], server: StandIn) -> Sender:
    return Sender(small(sources=[asked_of(server)]), server)


def asked_of(server: StandIn, **choices: Any) -> sources.Source:
    return partner(receipts=ReceiptsTo(server.url + TAKEN, **choices))


def test_a_document_is_told_of_from_acceptance_to_its_end(houses, server):
    """On every database: processed here, finalized later by a process that knows no sources."""
    house = houses(sources=[asked_of(server)])
    sender = Sender(house, server)
    house.on(final=False)
    sender.deliver(1)
    house.clock.passes(1)
    house.work()
    assert sender.tells() == 1
    house.clock.passes(1)
    stranger = house.twin(sources=[partner(), sources.named("github", secret="x" * 20)])
    (event,) = house.events()
    assert stranger.do(stranger.inbox.finalize(event.ref, "checked"))
    stranger.close()
    assert (sender.tells(), sender.tells()) == (1, 0)
    processed = Word(accepted_at=NOW, processed_at=NOW + 1000)
    assert sender.words() == [
        {dlv(1): processed},
        {dlv(1): structs.replace(processed, finalized_at=NOW + 2000, note="checked")},
    ]


@pytest.mark.parametrize(
    ("does", "told"),
    [
        (lambda event: None, Word(accepted_at=NOW, processed_at=NOW, finalized_at=NOW)),
        (Ignore("old"), Word(accepted_at=NOW, finalized_at=NOW, code="ignored")),
        (Refuse("late", "too late"), Word(accepted_at=NOW, rejected_at=NOW, code="late", note="too late")),
        (Later("1h"), Word(accepted_at=NOW, code="later")),
        (ValueError("secrets of the application"), Word(accepted_at=NOW, code="handler_failed")),
    ],
)
def test_what_a_handler_says_is_what_is_told(sender, does, told):
    def effect(event: Any) -> None:
        if isinstance(does, Exception):
            raise does

    sender.house.on(effect)
    sender.deliver(1)
    sender.house.work()
    sender.tells()
    assert sender.words() == [{dlv(1): told}]
    assert b"secrets of the application" not in sender.heard[0].body


def test_a_dead_event_is_told_as_rejected_and_a_replay_may_still_finalize_it(sender):
    fails = True

    def effect(event: Any) -> None:
        if fails:
            raise ValueError

    sender.house.on(effect)
    sender.deliver(1)
    for _ in range(10):
        sender.house.work()
        sender.house.clock.passes(3 * 3600)
    sender.tells()
    fails = False
    sender.house.do(sender.house.inbox.replay(reason="mended", state="dead"))
    sender.house.work()
    sender.tells()
    first, last = (word[dlv(1)] for word in sender.words())
    assert (first.stage, first.code, first.note) == ("rejected", "handler_failed", None)
    assert (last.stage, last.code, last.rejected_at) == ("finalized", None, first.rejected_at)


def test_a_rejection_by_a_person_is_told_with_code_and_note(sender):
    sender.house.on(final=False)
    sender.deliver(1)
    sender.house.work()
    (event,) = sender.house.events()
    assert sender.house.do(sender.house.inbox.reject(event.ref, "not_compliant", "no passport"))
    assert not sender.house.do(sender.house.inbox.finalize(event.ref))
    sender.tells()
    (word,) = sender.words()
    assert (word[dlv(1)].stage, word[dlv(1)].code, word[dlv(1)].note) == (
        "rejected",
        "not_compliant",
        "no passport",
    )


def test_a_decision_is_still_told_when_the_request_is_gone(sender):
    """Bodies and headers have a shorter life than a compliance check."""
    sender.house.on(final=False)
    sender.deliver(1)
    sender.house.work()
    sender.house.clock.passes(31 * 86_400)
    assert sender.house.do(sender.house.inbox.prune()).requests == 1
    (event,) = sender.house.events()
    sender.house.do(sender.house.inbox.finalize(event.ref))
    sender.tells()
    (word,) = sender.words()
    assert word[dlv(1)].stage == "finalized"


# -- who is told ------------------------------------------------------------------------------------------------


def test_nobody_is_told_who_did_not_ask(sender):
    sender.house.on()
    sender.deliver(1, endpoint=None)
    sender.deliver(2, endpoint="")
    sender.deliver(3, endpoint="https://elsewhere.example/v1/receipts")
    sender.deliver(4, delivery="dlv_of_mine")
    sender.house.work()
    assert sender.tells() == 0
    assert sender.house.sql("select count(*) from surehook_inbox_receipts") == [(0,)]


def test_a_source_without_an_address_tells_nobody_whoever_asks(small, server):
    sender = Sender(small(sources=[partner()]), server)
    sender.house.on(final=False)
    sender.deliver(1)
    sender.house.work()
    (event,) = sender.house.events()
    sender.house.do(sender.house.inbox.finalize(event.ref))
    assert sender.tells() == 0
    assert sender.house.sql("select count(*) from surehook_inbox_receipts") == [(0,)]


def test_no_request_says_where_receipts_go(sender):
    """Every header and field that might be taken for an address names a listener of somebody else."""
    with stand_in(OK) as theirs:
        sender.house.on()
        there = theirs.url + TAKEN
        event_id, body = evt(1), json.dumps({
            "type": "document.signed", "receipts": there, "receipts_url": there, "callback": there, "url": there,
        }).encode()  # fmt: skip
        asked = call(event_id, body, at=NOW)
        names = (
            "host",
            "origin",
            "referer",
            "x-forwarded-host",
            "webhook-receipts-url",
            "webhook-receipts-to",
            "forwarded",
        )
        headers = [
            *asked.headers, ("webhook-receipts", ENDPOINT), ("webhook-delivery-id", dlv(1)),
            *((name, there) for name in names),
        ]  # fmt: skip
        url = f"{theirs.url}/partner?receipts={there}"
        sender.house.do(sender.house.inbox.receive(structs.replace(asked, headers=headers, url=url)))
        sender.house.work()
        assert sender.tells() == 1
        assert (len(sender.heard), theirs.connections) == (1, 0)
        assert theirs.url.encode() not in sender.heard[0].body


def test_a_redirect_is_not_followed(small):
    with stand_in(OK) as theirs, stand_in(answer(307, location=theirs.url + TAKEN)) as server:
        sender = Sender(small(sources=[asked_of(server)]), server)
        sender.house.on()
        sender.deliver(1)
        sender.house.work()
        sender.tells()
        assert (len(server.heard), theirs.connections) == (1, 0)
        assert sender.house.sql("select attempts from surehook_inbox_receipts") == [(1,)]


def test_a_receipt_that_is_sent_back_is_no_event(sender):
    sender.house.on()
    sender.deliver(1)
    sender.house.work()
    sender.tells()
    (heard,) = sender.heard
    reflected = structs.replace(call("x", b"", at=NOW), headers=list(heard.headers.items()), body=heard.body)
    assert sender.house.do(sender.house.inbox.receive(reflected)).status == 401
    with pytest.raises(VerifyError, match="bad_signature"):
        believe(SECRET, heard.headers, heard.body, now=NOW / 1000)


# -- until it was heard -------------------------------------------------------------------------------------------


def test_what_is_not_heard_is_told_again_later_and_never_given_up(small):
    replies = [
        None,
        answer(500),
        answer(401, {"code": "bad_signature"}),
        answer(404),
        answer(503, retry_after="7"),
        OK,
    ]
    with stand_in(*replies) as server:
        sender = Sender(small(sources=[asked_of(server)]), server)
        sender.house.on()
        sender.deliver(1)
        sender.house.work()
        waits = []
        while sender.tells():
            ((due_at,),) = sender.house.sql("select due_at from surehook_inbox_receipts")
            if due_at is None:
                break
            waits.append((due_at - sender.house.clock.at) / 1000)
            sender.house.clock.at = due_at - 1
            assert sender.tells() == 0
            sender.house.clock.at = due_at
        assert len(server.heard) >= len(replies)
        for wait, base in zip(waits, (1, 4, 16, 64, 256), strict=True):
            assert base <= wait <= base * 1.2
        (said,) = sender.said(server.heard[-1])  # signed anew, at the time of this attempt
        assert said.word == Word(accepted_at=NOW, processed_at=NOW, finalized_at=NOW)


def test_waits_have_a_bound(small):
    with stand_in(answer(503, retry_after="999999")) as server:
        sender = Sender(small(sources=[asked_of(server)]), server)
        sender.house.on()
        sender.deliver(1)
        sender.house.work()
        for attempts in (0, 1000):
            sender.house.sql("update surehook_inbox_receipts set attempts = :n, due_at = 0", n=attempts)
            assert sender.tells() == 1
            ((due_at,),) = sender.house.sql("select due_at from surehook_inbox_receipts")
            assert MOST_S <= (due_at - sender.house.clock.at) / 1000 <= MOST_S * 1.2


def test_a_sender_that_does_not_know_the_delivery_any_more_is_not_asked_again(small):
    with stand_in(answer(404, {"code": "unknown_delivery"})) as server:
        sender = Sender(small(sources=[asked_of(server)]), server)
        sender.house.on()
        sender.deliver(1)
        sender.house.work()
        assert sender.tells() == 1
        sender.house.clock.passes(30 * 86_400)
        assert sender.tells() == 0


def test_what_changes_while_it_is_told_is_told_as_well(small):
    house: House | None = None

    def meanwhile(heard: Heard) -> bytes:
        """The document is finalized while the news of its processing is on the way."""
        if len(server.heard) == 1:
            other = Inbox(house.url, clock=house.clock)  # type: ignore[union-attr]
            ((raw,),) = [tuple(row) for row in house_rows(other)]
            assert other.finalize(ids.text("inb", raw))
            other.close()
        return OK

    def house_rows(inbox: Inbox) -> list[Any]:
        with inbox.store.engine.begin() as connection:
            return connection.exec_driver_sql("select event from surehook_inbox_receipts").fetchall()

    with stand_in(meanwhile) as server:
        house = small(sources=[asked_of(server)])
        sender = Sender(house, server)
        house.on(final=False)
        sender.deliver(1)
        house.work()
        assert sender.tells() == 2
        assert [next(iter(word.values())).stage for word in sender.words()] == ["processed", "finalized"]


def test_a_teller_that_died_is_followed_by_another(sender):
    sender.house.on()
    sender.deliver(1)
    sender.house.work()
    receipt_batches, store = sender.house.inbox.receipt_batches, sender.house.inbox.store
    assert len(sender.house.do(store.run(receipt_batches.claim_work(b"t" * 16)))) == 1
    assert sender.tells() == 0
    sender.house.clock.passes(121)
    assert sender.tells() == 1
    sender.house.do(store.run(receipt_batches.settle_work(b"t" * 16, [], [])))
    assert sender.tells() == 0


def test_a_failed_commit_owes_nothing(sender):
    """The handler swallows an error of its statement; its work and the word about it are both undone."""
    sender.house.on(lambda event: None)
    sender.deliver(1)
    inbox = sender.house.inbox
    settled = inbox.pending_receipts.settled

    def breaks(transaction: Any, ended: Any) -> None:
        settled(transaction, ended)
        raise RuntimeError("the process dies before its commit")

    inbox.pending_receipts.settled = breaks
    with pytest.raises(RuntimeError):
        sender.house.work()
    assert sender.house.sql("select count(*) from surehook_inbox_receipts") == [(0,)]
    assert sender.house.effects() == []
    inbox.pending_receipts.settled = settled
    sender.house.clock.passes(61)
    sender.house.work()
    assert sender.tells() == 1


def test_many_are_told_in_few_letters(sender):
    sender.house.on()
    for n in range(ITEMS + 1):
        sender.deliver(n)
    sender.house.work()
    assert sender.tells() == ITEMS + 1
    assert sorted(len(words) for words in sender.words()) == [1, ITEMS]


def test_who_is_stopped_sends_no_further_letter_and_leaves_the_rest_to_others_at_once(sender):
    sender.house.on()
    for n in range(ITEMS + 1):
        sender.deliver(n)
    sender.house.work()
    inbox = sender.house.inbox
    stopped, written = inbox._receipt_sender(), inbox.receipt_batches.written

    def last(batch: Any) -> Any:
        stopped.stop()
        return written(batch)

    inbox.receipt_batches.written = last
    turn = stopped.turn()
    sender.house.do(effects.run(turn) if sender.house.kind == "sync" else effects.run_async(turn))
    inbox.receipt_batches.written = written
    (first,) = sender.words()
    stopped.close()
    assert sender.tells() == ITEMS + 1 - len(first)


def test_all_secrets_of_a_rotation_sign(small, server):
    house = small(sources=[sources.named("standard", name="partner", secret=[OTHER, SECRET],
                                         receipts=ReceiptsTo(server.url + TAKEN))])  # fmt: skip
    sender = Sender(house, server)
    house.on()
    sender.deliver(1)
    house.work()
    sender.tells()
    (heard,) = server.heard
    for material in (MATERIAL, signature.read_secret(OTHER)[1]):
        receipt_message.verify(heard.headers, heard.body, [material], now=NOW / 1000)


def test_receipts_go_with_their_events(sender):
    sender.house.on()
    sender.deliver(1)
    sender.house.work()
    sender.house.clock.passes(91 * 86_400)
    sender.house.do(sender.house.inbox.prune())
    assert sender.house.sql("select count(*) from surehook_inbox_receipts") == [(0,)]


def test_workers_tell_by_themselves(small, server, runner):
    house = small(sources=[asked_of(server)])
    sender = Sender(house, server)
    house.on()
    sender.deliver(1)

    async def go() -> None:
        async with house.inbox.lifespan():
            async with asyncio.timeout(10):
                while not server.heard:  # noqa: ASYNC110 (a thread of the stand-in hears it)
                    await asyncio.sleep(0.01)

    runner.run(go())
    assert sender.words() == [{dlv(1): Word(accepted_at=NOW, processed_at=NOW, finalized_at=NOW)}]


# -- the setting --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    ["", "elsewhere", "ftp://x.example/a", "https:///v1/receipts", "https://x.example", "https://x.example/",
     "https://x.example/a?b=c", "https://x.example/a#b", "https://x.example:port/a", "https://x.example/\r\na", 5, None],
)  # fmt: skip
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(SourceError, match="address"):
        ReceiptsTo(url)


def test_what_cannot_sign_is_refused_when_it_is_defined():
    to = ReceiptsTo("https://x.example/v1/receipts")
    seed = bytes(range(32))
    public, private = signature.write_public_key(seed), signature.write_secret("v1a", seed)
    with pytest.raises(SourceError, match="public key"):
        sources.named("standard", secret=public, receipts=to)
    with pytest.raises(SourceError, match="Standard Webhooks"):
        sources.named("github", secret="x" * 20, receipts=to)
    with pytest.raises(SourceError, match="whsec_"):
        sources.named("standard", secret=SECRET, receipts=ReceiptsTo(to.url, private))
    with pytest.raises(SourceError, match="timeout"):
        ReceiptsTo(to.url, timeout_s=0)
    assert sources.named("standard", secret=public, receipts=ReceiptsTo(to.url, SECRET)).receipt_secrets == (
        MATERIAL,
    )
    assert SECRET not in repr(ReceiptsTo(to.url, SECRET))


def test_receipts_that_nobody_takes_are_told_once_a_minute_and_when_they_are_taken(small, caplog):
    replies = [*[answer(401, {"code": "bad_signature"})] * 50, OK, answer(500), OK]
    with stand_in(*replies) as server:
        sender = Sender(small(sources=[asked_of(server)]), server)
        clock, url = sender.house.clock, server.url + TAKEN
        sender.house.on()
        sender.deliver(1)
        sender.deliver(2, endpoint=ids.text(ids.ENDPOINT, ids.uuid7(NOW, b"f" * 10)))
        sender.house.work()

        def told() -> list[str]:
            lines = [
                (one.levelname, one.getMessage())
                for one in caplog.records
                if "receipts of" in one.getMessage()
            ]
            assert {level for level, _ in lines} <= {"WARNING"}
            caplog.clear()
            return [line.removeprefix("receipts of partner are ") for _, line in lines]

        def tried_at(passes: float) -> list[str]:
            clock.passes(passes)
            sender.house.sql(
                "update surehook_inbox_receipts set due_at = 0, attempts = 0 where due_at is not null"
            )
            sender.tells()
            return told()

        (line,) = tried_at(0)
        assert line.startswith(f"not taken by {url}: 401 bad_signature; tried again at 2025-11-24T16:00:01.")
        assert tried_at(30) == [], "once a minute"
        (line,) = tried_at(31)
        assert "401 bad_signature" in line
        while len(server.heard) < 50:
            tried_at(0)
        over, other = tried_at(2)
        assert over == f"taken again by {url}, after 63 s"
        assert other.startswith(f"not taken by {url}: 500; tried again at "), (
            "of the other endpoint, and news"
        )
        assert tried_at(2) == [], "once a minute"
        assert [due_at for (due_at,) in sender.house.sql("select due_at from surehook_inbox_receipts")] == [
            None
        ] * 2


def test_a_sender_that_is_away_is_one_line_for_all_of_its_endpoints(small, caplog):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}{TAKEN}"
        house = small(sources=[partner(receipts=ReceiptsTo(url))])
        sender = Sender(house, None)
        house.on()
        for n in range(20):
            sender.deliver(n, endpoint=ids.text(ids.ENDPOINT, ids.uuid7(NOW, n.to_bytes(10, "big"))))
        house.work()
        assert sender.tells() == 20
    (line,) = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert line.startswith(f"receipts of partner are not taken by {url}: connection refused; tried again at ")


def test_a_sender_that_knows_no_delivery_is_told_of(small, caplog):
    with stand_in(answer(404, {"code": "unknown_delivery"})) as server:
        sender = Sender(small(sources=[asked_of(server)]), server)
        sender.house.on()
        for n in range(3):
            sender.deliver(n)
        sender.house.work()
        sender.tells()
    assert f"{server.url}{TAKEN} knows none of 3 deliveries of partner" in caplog.text
