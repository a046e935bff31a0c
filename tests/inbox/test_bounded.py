"""What one handler holds is bounded: how long a transaction takes, whose rows it has locked, and when it begins."""

from __future__ import annotations

import math

import pytest
from sqlalchemy import text

from surehook.inbox import Inbox, Rules
from surehook.inbox.batch_time import BatchTime, ClaimSize
from surehook.inbox.handler_times import LONG_S, QUICK_S, HandlerTimes
from surehook.inbox.handlers import Handlers
from tests.inbox.house import NOW, Clock, call, known_as_quick, message, partner
from tests.inbox.test_documents import table

TOKEN = b"t" * 16


def signed(event_id, type="document.signed", **data):
    return call(*message(event_id, type, **data), at=NOW)


# -- which runs share a transaction -----------------------------------------------------------------------------


class Run:
    source = "partner"

    def __init__(self, type: str) -> None:
        self.type = type


def paced(**took: float) -> HandlerTimes:
    """Handlers of these types, each seen to take so long; `new` was never seen."""
    handlers = Handlers(Rules(), may_wait=False)
    handler_times = HandlerTimes(handlers, lambda: 0.0)
    for type in (*took, "new"):
        handlers.add(
            lambda event, tx: None, "partner", type, version=None, final=True, name=type, timeout_s=None
        )
        if type in took:
            handler_times.took(handlers.fitting("partner", type)[0], took[type])
    return handler_times


def test_a_document_that_is_followed_elsewhere_keeps_no_idle_worker_busy(house):
    house.on()
    house.sql(
        "insert into surehook_inbox_documents (document_type, tenant, document, state, body, wake_at, updated_at)"
        " values ('old', '', 'd', 'sent', '{}', 1, 1)"
    )
    worker = house.inbox.worker()
    assert house.turn(worker) == house.inbox.rules.idle_s


@pytest.mark.parametrize(
    ("types", "together"),
    [
        ("quick quick quick", 3),
        ("quick slow quick", 1),
        ("slow quick", 0),
        ("new quick", 0),
        ("quick none none", 3),
        ("", 0),
    ],
)
def test_those_up_to_the_first_slow_one_share_a_transaction(types, together):
    handler_times = paced(quick=QUICK_S / 2, slow=QUICK_S)
    assert handler_times.together([Run(type) for type in types.split()]) == together  # type: ignore[misc]


def slow_for(handler_times: HandlerTimes, type: str, *, quick_s: float) -> int:
    """How many quick calls it takes until the handler counts as quick again."""
    (handler,) = handler_times._handlers.fitting("partner", type)
    calls = 0
    while not handler_times.together([Run(type)]):  # type: ignore[list-item]
        handler_times.took(handler, quick_s)
        calls += 1
    return calls


def test_a_long_call_is_remembered_for_long_and_a_short_one_counts_with_the_others():
    assert slow_for(paced(once=20.0), "once", quick_s=0.001) == 178
    assert slow_for(paced(once=0.2), "once", quick_s=0.001) == 14
    handler_times = paced(common=0.001)
    (handler,) = handler_times._handlers.fitting("partner", "common")
    handler_times.took(handler, 0.4)
    assert handler_times.together([Run("common")]) == 1, "the machine stood still"  # type: ignore[list-item]
    handler_times.took(handler, LONG_S)
    assert handler_times.together([Run("common")]) == 0  # type: ignore[list-item]


def test_one_of_fifty_calls_that_hangs_keeps_its_handler_alone():
    handler_times = paced(hangs=5.0)
    (handler,) = handler_times._handlers.fitting("partner", "hangs")
    for number in range(200):
        handler_times.took(handler, 5.0 if number % 50 == 0 else 0.001)
        assert not handler_times.together([Run("hangs")])  # type: ignore[list-item]


def test_a_worker_claims_what_it_can_do_and_more_as_it_does_all_of_it():
    assert ClaimSize(64, is_known=True).size == 64
    portion = ClaimSize(64, is_known=False)
    assert portion.size == 1, "nobody knows how long its handler takes"
    sizes = []
    for done, left, enough_for in (
        (1, 0, 5.0),  # with a connection, and its statements
        (50, 14, 49.5),
        (44, 0, 60.0),
        (54, 0, 1_000.0),
        (64, 0, 32.0),
        (1, 27, math.inf),
        (1, 0, math.inf),
        (4, 0, 0.5),
    ):
        portion.shared(done, left, enough_for)
        sizes.append(portion.size)
    assert sizes == [64, 44, 54, 64, 28, 1, 4, 1]
    portion.alone()
    after_a_slow_one = [portion.size]
    for done in (1, 4, 16, 64):
        portion.shared(done, 0, math.inf)
        after_a_slow_one.append(portion.size)
    assert after_a_slow_one == [1, 4, 16, 64, 64]


@pytest.mark.parametrize(("handler_s", "enough_for"), [(0.01, 25), (0.1, 2.5), (0.0, math.inf)])
def test_a_batch_is_measured_by_what_its_handlers_take_and_not_by_its_commit(handler_s, enough_for):
    clock = Clock()
    time = BatchTime(clock.boot, 0.25, lambda: False)
    for _ in range(3):
        assert not time.is_over()
        clock.passes(handler_s)
    time.is_over()
    clock.passes(60)  # the commit
    assert time.enough_for == pytest.approx(enough_for)


def test_the_first_of_a_batch_counts_as_the_others_do(house):
    """One that took long for once had the next ones in its transaction, and its row was locked as long as theirs."""
    house.on(lambda event: house.clock.passes(4))
    for n in range(3):
        house.receive(f"evt_{n}")
    known_as_quick(house.inbox)
    store, steps = house.inbox.store, house.inbox.transactions
    claimed = house.do(store.run(steps.claim_work(TOKEN)))
    done = house.do(store.run(steps.process_work(claimed.runs, TOKEN)))
    assert (len(done.settlements), done.left) == (1, 2)


def test_a_transaction_that_has_taken_its_time_is_committed_and_the_rest_is_given_back_untried(house):
    house.on(lambda event: house.clock.passes(0.04))
    for n in range(20):
        house.receive(f"evt_{n:02}")
    store, steps = house.inbox.store, house.inbox.transactions
    known_as_quick(house.inbox)
    claimed = house.do(store.run(steps.claim_work(TOKEN)))
    before = house.sql("select due_at, accepted_at from surehook_inbox_runs")
    assert all(due > accepted for due, accepted in before)
    done = house.do(store.run(steps.process_work(claimed.runs, TOKEN)))
    assert (len(done.settlements), done.left) == (7, 13), "0.25 s of work"
    given = "select attempts from surehook_inbox_runs where lease is null and due_at = accepted_at"
    assert house.sql(given) == [(0,)] * 13, "in their places, and the attempt is not counted"
    house.work()
    assert len(house.effects()) == 20


def handled(house, first, pattern="*", **choices):
    """A handler that calls `first(event)` and then writes a row of `effects`."""

    def blocking(event, tx):
        first(event)
        house.write(tx, event.id)

    async def waiting(event, tx):
        first(event)
        await house.write(tx, event.id)

    house.inbox.on("partner", pattern, **choices)(waiting if house.kind == "async" else blocking)


def quick(event, tx):
    tx.execute(text("insert into effects (event_id) values ('other')"))


@pytest.fixture
def other(ground):
    """Another process's inbox on the same database."""
    inbox = Inbox(ground[1], [partner()], clock=Clock())
    yield inbox
    inbox.close()


def rows(other, statement):
    with other.store.engine.connect() as connection:
        return connection.execute(text(statement)).scalars().all()


def test_while_a_slow_handler_works_what_came_before_stands_and_others_have_the_rest(house, other):
    """On SQLite as well, although the slow one's transaction is under way there: it has not begun."""
    seen = []

    def slow(event):
        claimed = other.store.run(other.transactions.claim_work(b"o" * 16))
        seen.append((rows(other, "select event_id from effects"), [run.event_id for run in claimed.runs]))
        other.store.run(other.transactions.release_work([one.id for one in claimed.runs], b"o" * 16, 0))

    handled(house, lambda event: None, "document.quick")
    known_as_quick(house.inbox)
    handled(house, slow, "document.slow")
    for n, type in enumerate(["document.quick", "document.slow", "document.quick"]):
        house.receive(f"evt_{n}", type)
    house.do(house.inbox.work())
    assert seen == [(["evt_0"], ["evt_2"])]
    assert house.effects() == ["evt_0", "evt_1", "evt_2"]


# -- when SQLite's transaction begins ---------------------------------------------------------------------------


@pytest.fixture(params=["sync", "async", "django"], ids=lambda kind: f"sqlite-{kind}")
def file_of(request, ground_of):
    return ground_of("sqlite", request.param)


class TestOnSqlite:
    @pytest.fixture
    def ground(self, file_of):
        return file_of

    def test_what_arrives_is_stored_while_a_handler_is_slow_before_it_writes(self, house, other):
        answers = []
        handled(house, lambda event: answers.append(other.receive(signed("evt_2")).status))
        house.receive("evt_1")
        house.do(house.inbox.work())
        assert answers == [200, 200]
        assert house.effects() == ["evt_1", "evt_2"]

    def test_who_lost_the_lease_before_its_transaction_began_writes_nothing(self, house, other):
        calls = []

        def loses(event):
            calls.append(event.id)
            if len(calls) == 1:
                other.clock.passes(61)
                assert other.work() == 1

        other.on("partner")(quick)
        handled(house, loses)
        house.receive("evt_1")
        house.do(house.inbox.work())
        assert house.effects() == ["other"]
        assert house.inbox.watch.lost_leases == 1

    def sent_while(self, house, other, moves):
        """Handle the first event of a document, whose handler lets another process handle others of it."""
        for inbox in (house.inbox, other):
            inbox.follow(table(mode="free"), "partner")
        handled(house, moves)
        other.on("partner")(quick)
        house.send(*message("evt_1", "document.sent", document="doc_1"))
        house.do(house.inbox.work())

    def test_a_document_that_moved_before_the_transaction_began_is_decided_on_anew(self, house, other):
        calls = []

        def moves(event):
            calls.append((event.id, event.change.before))
            assert other.receive(signed("evt_2", "document.sent", document="doc_1")).status == 200
            assert other.work() == 1

        self.sent_while(house, other, moves)
        assert calls == [("evt_1", "draft")]
        assert house.effects() == ["other"]
        assert house.states() == {"evt_1": "ignored", "evt_2": "finalized"}

    def test_a_document_that_moves_again_and_again_counts_no_attempt(self, house, other):
        """Beside failing events of a hot document: an attempt was counted each sixth time."""
        calls = []

        def moves(event):
            calls.append(event.id)
            if len(calls) <= 8:
                informs = signed(f"info_{len(calls)}", "identity.verified", document="doc_1")
                assert other.receive(informs).status == 200
                assert other.work() == 1

        self.sent_while(house, other, moves)
        assert calls == ["evt_1"] * 9
        assert (house.states()["evt_1"], house.events(id="evt_1")[0].attempts) == ("finalized", 1)

    def test_what_a_handler_did_behind_our_back_is_undone_with_it(self, house):
        """By the driver itself, so that nobody was told that a transaction begins."""

        def wrong(event, tx):
            driver = tx.connection if hasattr(tx, "alias") else tx.connection.driver_connection
            driver.execute("insert into effects (event_id) values ('raw')")
            raise RuntimeError("no")

        async def also_wrong(event, tx):
            driver = (await tx.get_raw_connection()).driver_connection
            await driver.execute("insert into effects (event_id) values ('raw')")
            raise RuntimeError("no")

        house.inbox.on("partner")(also_wrong if house.kind == "async" else wrong)
        house.receive("evt_1")
        house.do(house.inbox.work())
        assert house.effects() == []
        assert house.events()[0].code == "handler_failed"
