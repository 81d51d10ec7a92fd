"""Which tests `make quick` and `make test` leave out: the marks that follow from what a test uses.

A test that uses Spark's session is marked `spark`, one that uses a server `server`. Of tests alike, which differ in the
capture or the server only, some are enough for a short run; the others are marked `slow`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from functools import cache
from types import ModuleType
from typing import Any

import pytest
from hypothesis import is_hypothesis_test

import wireformat as wf

from .golden_cases import CASES, Case
from .servers.captures import capture_names

COLLECTED = pytest.StashKey[tuple[pytest.Item, ...]]()
"""All tests that pytest found in what it was given, whatever -m leaves out then."""

MARKS = {"spark": "spark", "servers": "server", "runs": "server", "live_server": "server"}
"""The mark of the tests that use a fixture."""

WAITING = {
    "tests/live/test_bad_days.py::test_a_promoted_standby",
    "tests/live/test_bad_days.py::test_a_server_that_is_behind_when_it_is_back",
    "tests/live/test_feedback.py::test_a_keepalive_that_asks_is_answered",
    "tests/live/test_feedback.py::test_by_sql_functions_of_a_server_that_does_not_say_what_is_on_disk",
    "tests/live/test_feedback.py::test_by_sql_functions_what_is_not_on_disk_is_not_confirmed",
    "tests/live/test_feedback.py::test_once_ends_when_a_server_that_decodes_in_parallel_is_quiet",
    "tests/live/test_slot_ranges.py::test_a_connection_that_is_lost_late",
    "tests/live/test_slot_ranges.py::test_an_idle_stream_moves_now_and_then",
    "tests/live/test_slot_ranges.py::test_connections_that_break",
    "tests/live/test_slot_ranges.py::test_the_same_range_again",
    "tests/live/test_standby_behind.py::test_follow_does_not_wait_for_ever",
    "tests/live/test_standby_behind.py::test_follow_waits_from_the_start",
    "tests/live/test_standby_behind.py::test_ranges_wait_from_the_start",
    "tests/live/test_waits.py::test_a_look_that_takes_long",
    "tests/live/test_walsender.py::test_a_full_disk_of_the_server",
    "tests/live/test_walsender.py::test_a_keepalive_inside_a_transaction_moves_nothing",
    "tests/live/test_walsender.py::test_a_server_that_shuts_down_does_not_wait_for_a_reader",
    "tests/live/test_walsender.py::test_a_server_that_shuts_down_hears_where_it_is",
    "tests/live/test_walsender.py::test_connections_that_live_for_a_moment",
    "tests/live/test_walsender.py::test_gaussdb_over_connections_that_break",
    "tests/live/test_walsender.py::test_pgoutput_over_connections_that_break",
    "tests/live/test_what_is_told.py::test_a_lost_connection_says_how_long_it_is_tried_again",
    "tests/live/test_what_is_told.py::test_the_end_of_the_attempts_says_so",
}
"""Tests that wait for seconds until a server of the tests, or a connection to it, is lost, back, or heard from. They
are marked `server`, too."""

CAPTURES_OF_A_FORMAT = 2
"""Number of captures of each format that a test takes in a short run."""

CASES_OF_A_TEST = 12
"""Number of cases of a test in a short run: each format, if a test has formats, its engines in turn."""

CASES_ENOUGH = {
    "tests/agreement/test_detours.py::test_every_detour_beside_every_other": 1,
    "tests/arrow/columns/test_events.py::test_captures_of_servers": 2,
    "tests/arrow/committed/test_assembler.py::test_captures": 2,
    "tests/arrow/committed/test_undone.py::test_every_combination": 1,
    "tests/arrow/engine/test_corrupt_rows.py::test_messages_that_are_cut": 1,
    "tests/arrow/engine/test_faults_in_encodings.py::test_more_texts_than_are_listed_at_a_time": 4,
    "tests/arrow/engine/test_parallel.py::test_relations_are_kept_for_the_next_batch_but_not_without_end": 1,
    "tests/arrow/engine/test_parallel.py::test_relations_come_from_other_batches": 1,
    "tests/arrow/noted/test_stepped_over.py::test_captures_of_gaussdb": 6,
    "tests/arrow/noted/test_stepped_over.py::test_captures_of_servers": 1,
    "tests/arrow/scan/test_learned_relations.py::test_memory_that_is_full_begins_anew": 1,
    "tests/arrow/scan/test_learned_relations.py::test_thousands_of_tables": 1,
    "tests/arrow/scan/test_scratch.py::test_generated_events_with_little_room": 1,
    "tests/arrow/scan/test_scratch.py::test_little_room_gives_the_same_rows": 1,
    "tests/arrow/scan/test_scratch.py::test_text_styles_with_little_room": 5,
    "tests/arrow/scan/test_scratch.py::test_texts_that_are_too_many_for_a_batch_make_more_batches": 1,
    "tests/arrow/scan/test_statements.py::test_both_engines_agree": 1,
    "tests/arrow/scan/test_transcode.py::test_both_engines_agree_on_relations": 5,
    "tests/arrow/scan/test_transcode.py::test_both_engines_agree_on_text_styles": 10,
    "tests/arrow/scan/test_transcode.py::test_both_engines_agree_on_texts": 4,
    "tests/arrow/scan/test_transcode.py::test_every_short_text": 4,
    "tests/arrow/scan/test_transcode.py::test_texts_of_any_length": 8,
    "tests/arrow/scan/test_transcode.py::test_texts_of_three_bytes": 1,
    "tests/arrow/typed_tables/latest/test_keys.py::test_keys_of_every_type": 10,
    "tests/arrow/written/test_encode.py::test_captures_of_servers": 2,
    "tests/arrow/written/test_encode.py::test_golden_captures": 8,
    "tests/arrow/written/test_encode.py::test_made_up_streams": 1,
    "tests/benchmarks/test_readers.py::test_the_readers_by_hand_give_the_rows_of_the_package": 1,
    "tests/capture/test_pieces.py::test_a_stream_read_in_pieces": 1,
    "tests/capture/test_pieces.py::test_an_older_piece_that_is_read_again_moves_no_position_back": 1,
    "tests/capture/test_verbs.py::test_all_tables_in_one_pass": 3,
    "tests/capture/test_verbs.py::test_captures_of_gaussdb": 8,
    "tests/capture/test_verbs.py::test_captures_of_servers": 1,
    "tests/chunks/test_chunks.py::test_captures_of_gaussdb": 7,
    "tests/chunks/test_chunks.py::test_captures_of_servers": 1,
    "tests/chunks/test_chunks.py::test_facts_of_rows_of_gaussdb": 7,
    "tests/chunks/test_chunks.py::test_facts_of_rows_of_servers": 1,
    "tests/chunks/test_micro_batches.py::test_captures_of_gaussdb": 3,
    "tests/chunks/test_micro_batches.py::test_captures_of_servers": 1,
    "tests/chunks/test_micro_batch_records.py::test_cut_anywhere": 2,
    "tests/chunks/test_files.py::test_ranges_of_files_give_what_the_whole_gives": 1,
    "tests/chunks/test_records.py::test_cut_anywhere": 2,
    "tests/chunks/test_records.py::test_other_questions_cut_anywhere": 1,
    "tests/cli/test_convert.py::test_a_format_can_say_what_it_said": 7,
    "tests/cli/test_convert.py::test_bad_usage": 2,
    "tests/cli/test_convert.py::test_binary_to_json_to_text_to_binary_changes_nothing": 1,
    "tests/cli/test_inputs.py::test_other_files_are_not_taken_for_lines": 1,
    "tests/cli/test_line_feeds.py::test_a_file_that_ends_in_a_record": 1,
    "tests/cli/test_line_feeds.py::test_decode_writes_the_rows": 1,
    "tests/cli/test_line_feeds.py::test_what_begins_no_record": 1,
    "tests/cli/test_screen.py::TestOnATerminal::test_show_prints_one_line_a_record": 1,
    "tests/cli/test_table_filter.py::test_it_is_told": 6,
    "tests/cli/test_usage.py::test_bad_usage": 6,
    "tests/formats/test_conformance.py::test_batches": 9,
    "tests/formats/test_conformance.py::test_both_engines_agree_on_it": 54,
    "tests/formats/test_conformance.py::test_failfast_says_what_is_wrong_and_where": 63,
    "tests/formats/test_conformance.py::test_mutants": 20,
    "tests/formats/test_conformance.py::test_mutants_in_other_readings": 12,
    "tests/formats/test_conformance.py::test_other_encodings": 10,
    "tests/formats/test_conformance.py::test_permissive_keeps_it_and_goes_on": 63,
    "tests/formats/test_conformance.py::test_samples": 20,
    "tests/formats/test_conformance.py::test_splices": 9,
    "tests/formats/test_direct.py::test_layouts_are_forgotten_where_there_are_many": 2,
    "tests/formats/test_direct.py::test_records_around_transactions": 1,
    "tests/formats/test_golden.py::test_a_stream_fed_byte_by_byte_gives_the_same_events": 1,
    "tests/formats/test_pgoutput.py::test_rows_of_captures": 1,
    "tests/formats/test_pgoutput_bad_input.py::test_mutated_rows": 30,
    "tests/formats/test_postgres_text_captures.py::test_every_record_is_read_and_written_again": 1,
    "tests/framing/test_line_feeds.py::test_what_cannot_be_decided_is_an_error": 4,
    "tests/fuzz/test_volume.py::test_many_records": 4,
    "tests/grammar/test_unquoted.py::test_the_scan_splits_as_the_grammar": 3,
    "tests/inspection/test_trees.py::test_captures_of_servers": 1,
    "tests/inspection/test_trees.py::test_golden_cases": 8,
    "tests/inspection/test_trees.py::test_mutated_bytes_never_fail": 12,
    "tests/lake/test_captures.py::test_captures_of_gaussdb": 8,
    "tests/lake/test_captures.py::test_changes_of_servers": 1,
    "tests/lake/test_captures.py::test_current_rows_of_servers": 1,
    "tests/lake/test_columns.py::test_partitions": 1,
    "tests/lake/test_full_disk.py::test_at_each_moment": 2,
    "tests/lake/test_kept_options.py::test_a_lake_keeps_its_tables": 4,
    "tests/lake/test_kept_tables.py::test_each_is_opened_once": 1,
    "tests/lake/test_kept_tables.py::test_others_write_to_it": 1,
    "tests/lake/test_later_writes.py::test_a_column_that_was_text_has_the_text_of_the_server": 4,
    "tests/lake/test_later_writes.py::test_changes": 5,
    "tests/lake/test_later_writes.py::test_current_rows": 3,
    "tests/lake/test_names.py::test_hostile_names": 1,
    "tests/lake/test_power.py::test_at_any_moment_a_parquet_lake_is_whole": 1,
    "tests/lake/test_power.py::test_what_was_written_is_there": 3,
    "tests/lake/test_rejects.py::test_rejects": 1,
    "tests/lake/test_stopped_writes.py::test_a_full_disk": 1,
    "tests/lake/test_stopped_writes.py::test_a_write_that_stops_between_tables": 3,
    "tests/live/test_connection_options.py::test_no_password_is_told": 2,
    "tests/servers/test_agreement.py::test_captures_give_the_tables": 1,
    "tests/servers/test_agreement.py::test_written_in_another_style_they_are_the_same_changes": 1,
    "tests/servers/test_auto_cdc.py::test_captures": 1,
    "tests/servers/test_current_tables_in_arrow.py::test_every_table": 1,
    "tests/servers/test_delta_table.py::test_captures": 1,
    "tests/servers/test_typed_captures.py::test_every_cell_is_what_psycopg_reads": 2,
    "tests/servers/test_typed_captures.py::test_the_changes_lead_to_the_tables_of_the_server": 2,
    "tests/sources/test_picked.py::test_broken_bytes_are_found_as_they_are_when_read": 2,
    "tests/stream/test_order.py::test_captures_are_in_order": 7,
    "tests/stream/test_order.py::test_every_record_in_every_state": 2,
    "tests/stream/test_transaction_filter.py::test_captures": 1,
    "tests/test_extras.py::test_an_example": 1,
    "tests/testing/test_streams.py::test_the_same_seed_gives_the_same_stream": 4,
    "tests/testing/test_streams.py::test_what_is_read_is_what_the_tables_hold": 9,
}
"""Number of cases of these tests: fewer if each takes long, more if each is a bad message of its own."""

SERVERS = (15, 18)
"""So are these versions: test_decoding is there with the first, the newest protocol with the other."""

_FORMATS = {case.name: case.format for case in CASES} | {
    name: next(format for format in ("pgoutput", "test-decoding") if format in name) for name in capture_names()
}
"""The format of each capture."""


def mark(items: Iterable[pytest.Item]) -> None:
    """Mark the tests by the fixtures that they use; then those that a short run has enough of."""
    alike: dict[tuple[Any, ...], list[pytest.Item]] = {}
    of_test: dict[str, list[pytest.Item]] = {}
    for item in items:
        of_test.setdefault(item.nodeid.split("[")[0], []).append(item)
        parameters = parameters_of(item)
        for name in {MARKS[fixture] for fixture in MARKS.keys() & fixtures_of(item)}:
            item.add_marker(name)
        if item.nodeid.split("[")[0] in WAITING:
            item.add_marker("server")
        captures = {name: format for name, value in parameters.items() if (format := format_of_capture(value))}
        if captures and item.nodeid.split("[")[0] not in CASES_ENOUGH:
            others = [repr(value) for name, value in parameters.items() if name not in captures]
            alike.setdefault((item.nodeid.split("[")[0], *captures.values(), *others), []).append(item)
        if item.get_closest_marker("server") and parameters.get("version", SERVERS[0]) not in SERVERS:
            item.add_marker("slow")
        if has_more_examples(item):
            item.add_marker("examples")
    for cases in alike.values():
        _mark_others(cases, CAPTURES_OF_A_FORMAT)
    for name, cases in of_test.items():
        if cases[0].get_closest_marker("spark"):
            _mark_others(cases, 1)  # Spark takes seconds for each
        elif name in CASES_ENOUGH:
            _mark_others(cases, CASES_ENOUGH[name])
        else:
            _mark_many([item for item in cases if not item.get_closest_marker("slow")])


def _mark_many(cases: list[pytest.Item]) -> None:
    """Marks those that are more than enough, some of each format."""
    of_format: dict[str | None, list[pytest.Item]] = {}
    for item in cases:
        of_format.setdefault(format_of(item), []).append(item)
    for turn, some in enumerate(of_format.values()):
        if len(cases) > CASES_OF_A_TEST:
            _mark_others(some, max(1, CASES_OF_A_TEST // len(of_format)), turn)


def _mark_others(cases: list[pytest.Item], enough: int, turn: int = 0) -> None:
    """Marks all but some, which are spread evenly; those of another turn are others."""
    chosen = {(len(cases) * (2 * number + 1) // (2 * enough) + turn) % len(cases) for number in range(enough)}
    for number, item in enumerate(cases):
        if number not in chosen:
            item.add_marker("slow")


def has_more_examples(item: pytest.Item) -> bool:
    """Whether a test may have more examples in a long run."""
    return isinstance(item, pytest.Function) and (is_hypothesis_test(item.function) or _follows_profile(item.module))


@cache
def _follows_profile(module: ModuleType) -> bool:
    """Whether the number of examples in a module, or in those that its functions are from, follows the profile."""
    if any(source in inspect.getsource(module) for source in ("import ONE_IN", "import PROFILE", "@thinned")):
        return True
    names = {value.__module__ for value in vars(module).values() if inspect.isfunction(value)} - {module.__name__}
    return any(_follows_profile(sys.modules[name]) for name in names if name.startswith("tests."))


def fixtures_of(item: pytest.Item) -> set[str]:
    """The fixtures that a test uses, or that those use; pytest counts its parameters among them."""
    return set(getattr(item, "fixturenames", ())) - parameters_of(item).keys()


def parameters_of(item: pytest.Item) -> dict[str, Any]:
    """The values of a test's parameters, by name."""
    return item.callspec.params if hasattr(item, "callspec") else {}


def format_of_capture(value: Any) -> str | None:
    """The format of a capture or of its name; None of anything else."""
    return value.format if isinstance(value, Case) else _FORMATS.get(value) if isinstance(value, str) else None


def format_of(item: pytest.Item) -> str | None:
    """The format that a test's parameters name, or that its capture is in."""
    for value in parameters_of(item).values():
        if isinstance(value, str) and value in wf.FORMATS:
            return value
        if format := format_of_capture(value):
            return format
    return None
