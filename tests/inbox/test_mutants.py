"""Bugs planted in a copy of the inbox: each must be found by the test that is there for it."""

from __future__ import annotations

import pytest

from lab import ROOT
from tests.planted import PlantedCopy

TESTS_S = 120  # one test in a process of its own, on a busy machine
PYTEST = "import pytest, sys; raise SystemExit(pytest.main(sys.argv[1:]))"

# file, the line as it is, the line with the bug, the test that finds it
PLANTED = {
    "a worker does not look whether the lease is still its own": (
        "sql/claiming.py", 'still = (theirs, runs.c.lease == bindparam("token"))', "still = (theirs,)",
        "test_inbox.py::test_a_worker_that_lost_its_lease_does_nothing",
    ),
    "a leased run is still due": (
        "sql/claiming.py", '"until": now + lease_ms', '"until": now',
        "test_inbox.py::test_what_is_leased_is_nobody_elses_until_the_lease_lapses",
    ),
    "what is due is looked for among all documents": (
        "sql/tables.py", 'return column.concat("")', "return column",
        "test_no_scans.py::test_nothing_that_accepts_or_works_reads_a_table_from_end_to_end",
    ),
    "keys of several columns are looked for in the whole table": (
        "sql/keyed.py", 'if dialect.name == "sqlite":', "if False:",
        "test_no_scans.py::test_nothing_that_accepts_or_works_reads_a_table_from_end_to_end",
    ),
    "another body under a known id is taken for a repeat": (
        "sql/arriving.py", "elif found[1] == event.body_sha256:", "elif found[1]:",
        "test_inbox.py::test_another_body_under_a_known_id_is_kept_answered_409_and_changes_nothing",
    ),
    "what a failing handler did is kept": (
        "sql/transaction.py", 'f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}"', 'f"RELEASE SAVEPOINT {_SAVEPOINT}"',
        "test_inbox.py::test_one_that_fails_spoils_nothing_for_those_beside_it",
    ),
    "the answer is given without a commit": (
        "sql/stores.py", "as deadline, self.engine.begin() as connection:",
        "as deadline, self.engine.connect() as connection:",
        "test_inbox.py::test_what_was_answered_2xx_is_in_the_database_byte_for_byte",
    ),
    "a lease is not looked at again as SQLite's transaction begins": (
        "sql/deferred_begin.py", "if claiming.hold(connection, runs, token) != mine:", "if False:",
        "test_bounded.py::TestOnSqlite::test_who_lost_the_lease_before_its_transaction_began_writes_nothing",
    ),
    "a document is not looked at again as SQLite's transaction begins": (
        "sql/deferred_begin.py", "if _bodies(documenting.locked(connection, keys)) != _bodies(rows):", "if False:",
        "test_bounded.py::TestOnSqlite::test_a_document_that_moved_before_the_transaction_began_is_decided_on_anew",
    ),
    "the transaction of a handler that hangs is left open": (
        "sql/interrupting.py", "            own.rollback()\n", "",
        "test_cutting.py::test_a_transaction_is_cut_of_which_rows_are_still_to_be_fetched",
    ),
    "who is cut may write on": (
        "sql/interrupting.py", "            own.execute(_NO_MORE)\n", "",
        "test_cutting.py::test_a_statement_that_was_let_through_before_the_cut_writes_nothing_after_it",
    ),
    "who looks at what is noted of a connection begins": (
        "sql/driver_connections.py", "return pooled(self).info", "return super().info",
        "test_timeouts.py::test_one_that_waits_for_the_writer_of_sqlite_is_cancelled_where_it_waits",
    ),
    "a statement of SQLite goes on as it is cut": (
        "sql/interrupting.py", "set_progress_handler(brake.is_set, STEPS)", "set_progress_handler(bool, STEPS)",
        "test_cutting.py::test_a_statement_that_goes_on_is_ended",
    ),
    "a connection goes back with what a handler left on it": (
        "sql/deferred_begin.py", "            let_go(connection)\n\n    def end", "            pass\n\n    def end",
        "test_left_on_connections.py::test_what_a_statement_sets_is_gone_with_the_transaction",
    ),
    "a handler that committed and hangs is taken for one that is late": (
        "pool.py", "error = HandlerEndedIt()", "pass",
        "test_ended_by_handler.py::test_one_that_hangs_after_it_is_dead_at_once_as_well",
    ),
    "documents are given back whose lease is another's": (
        "sql/waking.py", 'given, _at == bindparam("until")', "given, _at.is_not(None)",
        "test_leaving.py::TestADocumentThatCannotGoOn::test_is_not_given_back_by_whoever_has_lost_its_lease",
    ),
    "who is cut is committed": (
        "sql/stores.py", "        writer.check_cut()\n", "",
        "test_cutting.py::test_what_was_cut_is_not_taken_for_committed",
    ),
    "a transaction is cut that is over": (
        "sql/deferred_begin.py", "            if self._is_over:", "            if False:",
        "test_cutting.py::test_a_transaction_that_is_over_is_nobodys_to_cut",
    ),
    "a handler may commit": (
        "sql/stores.py", 'event.listen(engine, "commit", refuse)', "",
        "test_inbox.py::test_a_handler_that_commits_is_refused_before_its_effects_stand",
    ),
    "later counts as an attempt": (
        "result_policy.py", "attempts=max(run.attempts - 1, 0)", "attempts=run.attempts",
        "test_inbox.py::test_later_undoes_waits_and_does_not_count",
    ),
    "what leaves the line in its own batch is forgotten": (
        "document_batch.py", "            if here is not None:\n                found.add(here)", "            if here is not None:\n                pass",
        "test_documents.py::test_any_order_with_repeats_gives_the_same_document_and_calls_handlers_once_in_order",
    ),
    "handlers hear of what moved nothing": (
        "step_ends.py", 'if not step.is_move and step.verdict != "informational":\n            return ()',
        "if not step.is_move:\n            return self._policy.handlers.fitting(run.source, run.type)",
        "test_documents.py::test_a_stale_replay_after_a_terminal_state_moves_nothing_and_is_recorded",
    ),
    "information that no pattern fits counts for no order": (
        "process.py", "if workflow.table.name(arrival.type) in workflow.table.informational:", "if False:",
        "test_ways_out.py::test_an_informational_event_counts_for_the_order_and_reaches_the_handler_that_asks",
    ),
    "every handler hears of information": (
        "following.py", "if is_beside or one.informational or not any", "if True or not any",
        "test_ways_out.py::test_a_handler_of_moves_hears_of_information_only_by_its_word",
    ),
    "a rejected event leaves its document advanced": (
        "operations.py", 'if state == "rejected":', 'if state == "never":',
        "test_ways_out.py::test_a_document_does_not_stay_advanced_after_its_event_was_rejected",
    ),
    "a word is written down and nobody is woken for it": (
        "document_commands.py", "wake_at=word.at, updated_at", "updated_at",
        "test_ways_out.py::test_a_release_lets_what_is_held_go_on_and_the_journal_says_who_and_why",
    ),
    "what was taken back is replayed as if it stood": (
        "sql/documenting.py", "return None if 0 < moves <= undone else", "return None if False else",
        "test_ways_out.py::test_a_document_does_not_stay_advanced_after_its_event_was_rejected",
    ),
    "what undoes something and ends its process is called each lease": (
        "worker.py", "may_undo=False)", "may_undo=True)",
        "test_undoing.py::TestOneThatEndsItsProcess::test_is_tried_less_and_less_often_and_keeps_no_other_document_waiting",
    ),
    "a document goes back although what was done for it could not be undone": (
        "undoing.py", "raise UndoFailed(run, structs.replace(ended, attempts=attempt)) from error", 'log.error("%s", error)',
        "test_undoing.py::test_until_it_is_undone_the_document_and_its_events_wait_and_nothing_is_counted",
    ),
    "an event that failed leaves its number behind": (
        "document_batch.py", "back_at = self._policy.back_at(ended)", "back_at = None",
        "test_leaving.py::TestAFailureGivesNoNumberUp::test_as_waits_are_over",
    ),
    "an event ends the waits of others": (
        "document_batch.py", "passes=own is None", "passes=True",
        "test_leaving.py::TestWhatCameInTime::test_is_in_time_though_it_is_processed_later",
    ),
    "a document that wakes ends all waits that are over by now": (
        "../core/workflow/queue.py", "min(until, self.now)", "self.now",
        "test_leaving.py::TestWhatCameInTime::test_for_a_later_wait_though_an_earlier_one_is_over",
    ),
    "a document goes on before what another worker has": (
        "sql/waking.py", 'select(literal("begun"), _NOBODY, _BEGUN_SINCE.scalar_subquery()),', "",
        "test_leaving.py::TestWhatCameInTime::test_another_event_of_the_document_ends_no_wait",
    ),
    "a document goes on before what another process has for longer": (
        "sql/waking.py", "now + (LEASES + 1) * lease_ms", "now + lease_ms",
        "test_leaving.py::TestWhatCameInTime::test_another_event_of_the_document_ends_no_wait",
    ),
    "a document goes on before what somebody looks at": (
        "tried_again.py", "return may_come_first(", "return bool(",
        "test_full_lines.py::TestWhatIsClaimedIsInTime::test_from_the_first_moment_of_its_lease",
    ),
    "a document goes on before what failed once and its process had": (
        "sql/waking.py", "_due.c.lease.is_not(None), _due.c.number == 0", "_due.c.lease.is_not(None), _due.c.number < 0",
        "test_leaving.py::TestWhatCameInTime::test_so_it_is_where_its_process_has_ended",
    ),
    "a document that is held up keeps all others from going on": (
        "worker_transactions.py", "limit=most + HELD_UP_MOST", "limit=most",
        "test_full_lines.py::TestWhatIsClaimedIsInTime::test_and_other_documents_go_on_beside_it",
    ),
    "a run that changes hands is in none of two looks": (
        "sql/waking.py", 'select(literal("due"), _NOBODY, _WAITS_SINCE.scalar_subquery()),', "",
        "test_waking.py::TestALook::test_sees_all_runs_as_of_one_moment",
    ),
    "a document goes on before what failed once and was given back": (
        "sql/claiming.py", "stood[run.id]", "now",
        "test_leaving.py::TestWhatCameInTime::test_so_it_is_once_it_is_given_back",
    ),
    "a token is asked about within a claim": (
        "tried_again.py", "asks=False", "asks=True",
        "test_leaving.py::TestWhatCameInTime::test_so_it_is_while_nobody_can_say_whether_its_token_is_good",
    ),
    "whoever was frozen lets time pass": (
        "standing_documents.py", "self._now() < leased_until == at", "True",
        "test_leaving.py::TestWhatCameInTime::test_is_in_time_for_whoever_was_frozen_past_its_lease",
    ),
    "a batch that is done run by run was all there is": (
        "worker.py", "is_all = is_all and done.is_all", "pass",
        "test_leaving.py::TestWhatCameInTime::test_is_in_time_where_it_is_put_off_as_its_batch_is_done_run_by_run",
    ),
    "what is claimed has left its line": (
        "busy_documents.py", "self._late.setdefault(token, {})[run] = key\n\n    def enter(", "pass\n\n    def enter(",
        "test_busy_documents.py::test_newer_ones_stay_behind_what_a_worker_has_claimed_and_not_begun",
    ),
    "a document goes on before what a process had that ended long ago": (
        "sql/waking.py", 'select(literal("begun"), _NOBODY, _LAPSED_SINCE.scalar_subquery()),', "",
        "test_leaving.py::TestWhatCameInTime::test_what_a_process_had_that_ended_long_ago_is_in_time",
    ),
    "an event keeps no place as its transaction is refused": (
        "process.py", "self._keep_place(transaction, run, settlement)", "pass",
        "test_leaving.py::TestAFailureGivesNoNumberUp::test_whose_transaction_is_refused",
    ),
    "an event keeps no place as it fails": (
        "document_batch.py", "self._keep_place(workflow, key, arrival, failed)", "pass",
        "test_leaving.py::TestAFailureGivesNoNumberUp::test_that_failed_as_its_turn_came",
    ),
    "a document is not looked at again as its table is changed": (
        "changed_tables.py", "transaction.wake(sorted(keys), now=now)", "pass",
        "test_leaving.py::TestATableThatWasChanged::test_decides_anew_on_what_waits",
    ),
    "what waits by a table without an order goes on in any": (
        "document_batch.py", 'shared[:1] if workflow.table.order.mode == "free" else shared', "shared",
        "test_leaving.py::TestATableThatWasChanged::test_lets_what_waits_go_on_in_its_order_where_there_is_none_any_more",
    ),
    "a grant wakes nobody": (
        "document_commands.py", "wake_at = now if is_held else row.wake_at", "wake_at = row.wake_at",
        "test_leaving.py::test_a_grant_wakes_the_event_that_carries_its_token",
    ),
    "what a failing event let go on has left its line": (
        "document_batch.py", "if mark is not None:", "if False:",
        "test_leaving.py::test_what_lets_others_go_on_and_fails_has_let_none_go",
    ),
    "an event that ended with its process is waited for": (
        "process.py", "batch.gives_up(one.workflow, one.key, one.arrival, one.run)", "pass",
        "test_leaving.py::test_an_event_that_ends_with_its_process_gives_its_number_up",
    ),
    "a full line is asked each second": (
        "step_ends.py", "LATER_MS = (1_000, 60_000)", "LATER_MS = (1_000, 1_000)",
        "test_full_lines.py::test_one_for_which_there_is_no_room_is_tried_less_and_less_often",
    ),
    "who was handed back is not kept in mind": (
        "../core/workflow/bounds.py", "if event.sequence is not None:\n            known", "if event.sequence is None:\n            known",
        "test_full_lines.py::test_all_go_on_as_soon_as_what_is_missing_comes",
    ),
    "who was handed back is not told that there is room": (
        "document_batch.py", "self._transaction.hasten(", "bool(",
        "test_full_lines.py::test_all_go_on_as_soon_as_what_is_missing_comes",
    ),
    "the lines of a full queue are a flood": (
        "gaps.py", "and not self._full.may(one.key)", "and False",
        "test_full_lines.py::test_a_full_line_is_said_once_a_minute",
    ),
    "an event is blamed for those that it lets go on": (
        "worker.py", "elif failed.is_shared and not alone:", "elif False:",
        "test_leaving.py::TestEachFailureIsItsOwnEvents::test_a_commit_that_is_refused",
    ),
    "what time lets go on is handled where no attempt is counted": (
        "document_batch.py", "None, None, alone=True, until", "None, None, alone=False, until",
        "test_leaving.py::TestEachFailureIsItsOwnEvents::test_a_handler_that_ends_its_process",
    ),
    "a document that cannot go on is tried at once again": (
        "sql/waking.py", "[(until, *key) for key in keys]", "[]",
        "test_leaving.py::TestADocumentThatCannotGoOn::test_is_one_workers_until_its_lease_lapses",
    ),
    "ids of two sources are one": (
        "workflow.py", 'source="" if source is None else source', 'source=""',
        "test_leaving.py::TestTwoSourcesOfOneWorkflow::test_an_id_of_one_is_no_repeat_of_the_others",
    ),
    "a handler that forgot a coroutine is done": (
        "result_policy.py", "if call.unawaited is not None:", "if False:",
        "test_forgotten.py::test_every_attempt_fails_not_only_the_first_that_python_would_warn_of",
    ),
    "what is put off for its document is not called back": (
        "worker_transactions.py", "            self._call_back(transaction, token)\n", "",
        "test_busy_documents.py::test_another_worker_has_it_and_the_others_events_are_handled_meanwhile",
    ),
    "what is put off is out of its document's mind": (
        "sql/claiming.py", '_untried(PUT_OFF, bindparam("until"))', '_untried(None, bindparam("until"))',
        "test_busy_documents.py::test_what_is_put_off_is_in_time_for_the_waits_of_its_document",
    ),
    "slow events of one document are looked at one by one": (
        "worker_transactions.py", "first, busy = self.processor.first_free(runs, token)", "first, busy = runs[0], ()",
        "test_busy_documents.py::test_slow_ones_are_passed_by_in_a_few_turns_and_come_one_after_the_other",
    ),
    "what is carried over to the next batch is forgotten": (
        "worker.py", "runs = carried.with_claimed(claimed.runs)", "runs = claimed.runs",
        "test_busy_documents.py::test_quick_ones_are_carried_over_to_the_next_batch",
    ),
    "the last worker of a process leaves a line behind": (
        "worker.py", "if transactions.busy.strands():", "if False:",
        "test_busy_documents.py::test_the_last_worker_leaves_no_line_behind",
    ),
    "a document sleeps on though what it waited for is dead": (
        "../core/workflow/waits.py", "instants = [*self._turns()]", "instants = list[int]()",
        "test_leaving.py::TestItHasWaitedSinceItCame::test_one_that_was_let_go_has_its_turn_as_soon_as_what_it_waits_for_is_dead",
    ),
    "those of a batch see what one of them has set": (
        "process.py", "is_late or transaction.has_changed_session", "is_late",
        "test_shared_session.py::test_a_temporary_table_of_one_is_not_there_for_another",
    ),
    "a log that raises ends who logs": (
        "safe_log.py", "except Exception as error:", "except ZeroDivisionError as error:",
        "test_safe_log.py::test_a_failed_attempt_that_cannot_be_logged_is_a_failed_attempt",
    ),
    "retention removes what is still open": (
        "sql/pruning.py", "due_at is not None or state in WAITING", 'state == "parked"',
        "test_inbox.py::test_dedupe_outlives_bodies_and_what_is_open_is_never_removed",
    ),
}  # fmt: skip


def found(copy: PlantedCopy, test: str) -> bool:
    """Whether a test fails with the product of this copy, on SQLite with blocking handlers."""
    name = test.rpartition("::")[2]
    arguments = [
        "-q", "-x", "-p", "no:schemathesis", "-W", "ignore::pytest.PytestAssertRewriteWarning", f"tests/inbox/{test}",
        "-k", f"{name} and sqlite and not async and not django",
    ]  # fmt: skip
    ended = copy.run(PYTEST, *arguments, folder=ROOT, seconds=TESTS_S)
    assert ended.returncode in (0, 1), ended.stdout[-3_000:]
    return ended.returncode == 1


@pytest.mark.slow
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug, planted_copy):
    file, right, wrong, test = PLANTED[bug]
    name = f"src/surehook/inbox/{file}"
    text = (ROOT / name).read_text()
    assert right in text, "the line has changed: renew the bug"
    with planted_copy.changed({name: text.replace(right, wrong)}):
        assert found(planted_copy, test)


@pytest.mark.slow
def test_without_a_bug_nothing_is_found(planted_copy):
    assert not found(planted_copy, PLANTED["later counts as an attempt"][3])
