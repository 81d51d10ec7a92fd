"""Relations that scans learn from rows: what they recognise, and that it changes nothing that is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.arrow.engine.faults import FEW
from wireformat.arrow.engine.scanner import Scanner
from wireformat.arrow.scan import scratch
from wireformat.arrow.scan.dictionary import DICTIONARY
from wireformat.arrow.scan.notes import COMPLETE, LEARNED_FULL, NEW, NO_ROOM, PRESENT, STEPPED, WANTS_ROOM, ScanInput
from wireformat.arrow.scan.relations.recognise import LEARNED_OF, MOST_IN_VAIN
from wireformat.formats.registry import find_format
from wireformat.options import ReadOptions

from ...engines import agree

FORMATS = (
    *("gaussdb-binary", "gaussdb-json", "gaussdb-text", "mppdb-json"),
    *("opengauss-test-decoding", "sql-decoding", "test-decoding"),
)

each_format = pytest.mark.parametrize("format", FORMATS)


def image(format: str, names: tuple[str, ...], number: int, is_new: bool = True) -> wf.TupleData:
    """A row image of integers and texts in turn."""
    values = tuple(str(number) if index % 2 == 0 else f"it's {number}" for index in range(len(names)))
    types = ("integer", "text")
    if format == "sql-decoding":
        types = ("?number", "?string")
        names = tuple(f"${index}" for index in range(1, len(names) + 1)) if is_new else names
    return wf.TupleData(names, values, tuple(types[index % 2] for index in range(len(names))))


def insert(format: str, table: str, names: tuple[str, ...], number: int) -> wf.Insert:
    lsn = number + 1 if format.startswith("gaussdb") else None
    return wf.Insert(lsn=lsn, table_schema="s", table_name=table, new=image(format, names, number))


def messages_of(format: str, events: list[wf.Event], encoding: str = "utf-8") -> list[bytes]:
    return list(wf.encode(events, format, encoding=encoding))


def complete_rows(format: str, messages: list[bytes], **options: object) -> Iterator[tuple[int, int, int]]:
    """For each step of the scan: rows, those whose new image is complete, row changes stepped over before the last."""
    scanner = Scanner(find_format(format), ReadOptions.check(**options))
    for batch_scan in scanner.batch_scans(messages):
        while not batch_scan.ended:
            count = batch_scan.step()
            rows = batch_scan.notes.rows[:, :count]
            yield count, int((rows[PRESENT] >> (COMPLETE + NEW) & 1).sum()), int(rows[STEPPED, -1]) if count else 0
        batch_scan.close()


@each_format
def test_all_rows_but_the_first_of_a_table_are_recognised(format: str) -> None:
    columns = [("a", "b", "c"), ("a", "b"), ("a",)]
    messages = messages_of(format, [insert(format, f"t{n % 3}", columns[n % 3], n) for n in range(300)])
    agree(messages, format=format)
    assert [(count, complete) for count, complete, _ in complete_rows(format, messages)] == [(300, 297)]


WORDS = {
    "gbk": ("编号", "客户", "丂a", "表"),
    "big5": ("編號", "客戶", "許功蓋", "表"),
    "gb18030": ("编号", "größe", "丂a", "ä表"),
    "euc_jp": ("番号", "ﾃｽﾄ", "丂態", "表"),
    "shift_jis": ("番号", "ﾃｽﾄ", "ソ表", "表"),
    "latin-1": ("Schlüssel", "ÿ", "größe", "größte"),
    "koi8-r": ("номер", "я", "статус", "таблица"),
}
"""For each encoding: names of columns, and of a table. Some characters of two bytes end with a backslash or a letter.
Some have three or four bytes."""


@pytest.mark.parametrize("encoding", sorted(WORDS))
@each_format
def test_names_in_other_encodings_are_recognised(format: str, encoding: str) -> None:
    """As those in ASCII are: here of tables whose rows have one list of columns, then another one."""

    def messages(words: tuple[str, ...], encoding: str) -> list[bytes]:
        *names, table = words
        columns = [tuple(names), tuple(names[:2]), ("d", names[0])]
        events = [insert(format, f"{table}{n % 3}", columns[n % 3 - n // 15], n) for n in range(30)]
        return messages_of(format, events, encoding)

    words = WORDS[encoding]
    own, plain = messages(words, encoding), messages(("a", "b", "c", "t"), "utf-8")
    for tables, plain_tables in ((None, None), ([f"s.{words[-1]}1"], ["s.t1"])):
        agree(own, format=format, encoding=encoding, tables=tables)
        found = complete_rows(format, own, encoding=encoding, tables=tables)
        expected = complete_rows(format, plain, tables=plain_tables)
        assert [step[:2] for step in found] == [step[:2] for step in expected]


@each_format
def test_names_of_other_characters_are_read_all_the_same(format: str) -> None:
    """The table of characters has none of three and four bytes."""
    for encoding, name in (("gb18030", "ÿ𠀀"), ("euc_jp", "丂")):
        events = [insert(format, "表", (name, "a"), n) for n in range(20)]
        agree(messages_of(format, events, encoding), format=format, encoding=encoding)


@pytest.mark.parametrize("encoding", ["gbk", "euc_jp", "shift_jis"])
@each_format
def test_wrong_values_in_tables_whose_names_were_recognised(format: str, encoding: str) -> None:
    """More of them than the declaration reads before compiled code says what is wrong."""
    *names, table = WORDS[encoding]
    messages = messages_of(format, [insert(format, table, tuple(names), n) for n in range(2 * FEW + 6)], encoding)
    messages = [b"\xff ".join(one.rsplit(b"s ", 1)) if n % 2 else one for n, one in enumerate(messages)]
    for options in ({"mode": "PERMISSIVE"}, {"mode": "DROPMALFORMED", "tables": [f"s.{table}"]}):
        agree(messages, format=format, encoding=encoding, **options)
    agree(messages[:9], format=format, encoding=encoding, encoding_errors="replace")


@pytest.mark.parametrize("encoding", ["utf-8", "gbk", "latin-1"])
@each_format
def test_tables_with_the_columns_of_another_one_are_recognised(format: str, encoding: str) -> None:
    *names, table = WORDS.get(encoding, ("a", "b", "c", "t"))
    messages = messages_of(format, [insert(format, f"{table}{n}", tuple(names), n) for n in range(300)], encoding)
    found = complete_rows(format, messages, encoding=encoding)
    assert [(count, complete) for count, complete, _ in found] == [(300, 299)]
    for tables in (None, [f"s.{table}7", f"s.{table}200"]):
        answer = agree(messages * 2, format=format, encoding=encoding, tables=tables)
        assert len(answer.events) == (600 if tables is None else 4)


@pytest.mark.parametrize("encoding", ["gb18030", "tis-620"])
def test_wrong_values_in_tables_whose_names_are_longer_in_utf8(encoding: str) -> None:
    """Of gaussdb-text, where what precedes the mark of a row is looked through: it ends where the names end."""
    schema, table = ("ก" * 60, "ข" * 60) if encoding == "tis-620" else ("表" * 31, "一.二")
    event = replace(insert("gaussdb-text", table, ("a", "b"), 1), table_schema=schema)
    good = next(iter(wf.encode([event], "gaussdb-text", encoding=encoding)))
    wrong = b"\xff ".join(good.rsplit(b"s ", 1))
    for messages in ([good, *[wrong] * (FEW + 3)], [good] * 2 + [wrong] * FEW + [good, wrong]):
        agree(messages, format="gaussdb-text", encoding=encoding, mode="PERMISSIVE")


@each_format
def test_columns_that_come_and_go(format: str) -> None:
    """More lists of columns than a table's relations may be, in turn, some of them the beginning of others."""
    names = "abcdefghijklmnop"
    lists = [tuple(names[begin:end]) for begin in range(3) for end in range(begin + 1, begin + 6)]
    events = [insert(format, "t", lists[n % len(lists)], n) for n in range(200)]
    agree(messages_of(format, events), format=format)


@each_format
def test_old_images_of_a_key_and_of_all_columns(format: str) -> None:
    events: list[wf.Event] = []
    for number in range(40):
        lsn = number + 1 if format.startswith("gaussdb") else None
        of_table = {"lsn": lsn, "table_schema": "s", "table_name": f"t{number % 2}"}
        new = image(format, ("id", "note", "x"), number)
        key, whole = (image(format, names, number, False) for names in (("id",), ("id", "note", "x")))
        events += [
            wf.Update(**of_table, new=new, old=key),
            wf.Update(**of_table, new=new, old=whole if number % 3 else None),
            wf.Delete(**of_table, old=key if number % 5 else whole),
        ]
    agree(messages_of(format, events), format=format)


@each_format
def test_thousands_of_tables(format: str) -> None:
    """They are learned once, though there is room for few of them at first."""
    tables = 3_000
    messages = messages_of(format, [insert(format, f"t{n % tables}", ("a", "b"), n) for n in range(3 * tables)])
    complete = sum(complete for _, complete, _ in complete_rows(format, messages * 3))
    assert complete > 6 * tables
    assert len(agree(messages[::9], format=format).events) == tables // 3


@pytest.mark.parametrize("encoding", ["utf-8", "gbk"])
@each_format
def test_names_that_never_come_again(format: str, encoding: str) -> None:
    """Few of them are learned. Those that come again are recognised all the same, between them and behind them."""
    word, count = "" if encoding == "utf-8" else "表", MOST_IN_VAIN + 150
    new = [insert(format, f"t{word}{n}", (f"a{n}", f"{word}b{n}"), n) for n in range(count)]
    same = [insert(format, f"{word}u{n % 2}", (f"{word}a", "b"), n) for n in range(100)]
    messages = messages_of(
        format, new + same + [one for pair in zip(new, same, strict=False) for one in pair], encoding
    )
    agree(messages, format=format, encoding=encoding)
    found = complete_rows(format, messages, encoding=encoding)
    assert sum(complete for _, complete, _ in found) >= 2 * (len(same) - 2 * LEARNED_OF)


@each_format
def test_names_that_are_never_learned(format: str) -> None:
    """Those that are not in the encoding. The names of other tables are learned, between them and behind them."""
    bad = [insert(format, f"表{n % 3}", ("编号", "客户", "状态"), n) for n in range(MOST_IN_VAIN + 150)]
    good = [insert(format, f"t{n % 2}", ("a", "b"), n) for n in range(100)]
    for events in (bad + good, [one for pair in zip(bad, good, strict=False) for one in pair] + bad + good):
        messages = messages_of(format, events)
        agree(messages, format=format, encoding="gbk", mode="PERMISSIVE")
        found = complete_rows(format, messages, encoding="gbk")
        assert sum(complete for _, complete, _ in found) >= len(good) - 2 * LEARNED_OF


@pytest.mark.parametrize("encoding", ["utf-8", "gbk"])
@each_format
def test_memory_that_is_full_begins_anew(format: str, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LEAST_ENTRIES": 64, "MOST_ENTRIES": 256, "LEAST_TEXT": 128, "MOST_TEXT": 512}.items():
        monkeypatch.setattr(scratch, name, value)
    names = ("a", "b", "c") if encoding == "utf-8" else WORDS[encoding][:3]
    messages = messages_of(format, [insert(format, f"t{n % 40}", names, n) for n in range(400)], encoding)
    agree(messages * 3, format=format, encoding=encoding)
    monkeypatch.setattr("wireformat.arrow.scan.message_batches.MESSAGE_BATCH_BYTES", 1000)
    agree(messages, format=format, encoding=encoding)


@pytest.mark.parametrize("encoding", ["gbk", "latin-1"])
@each_format
def test_names_that_are_learned_once_there_is_more_room(
    format: str, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are in UTF-8, while values of the same rows are decoded, as some were before there was more room."""
    monkeypatch.setattr(scratch, "LEAST_ENTRIES", 64)
    monkeypatch.setattr(scratch, "LEAST_TEXT", 128)
    *names, table = WORDS[encoding]
    events = []
    for number in range(60):
        event = insert(format, f"{table}{number // 2}", tuple(names), number)
        values = tuple(value.replace("it's", names[0]) for value in event.new.values)
        events.append(replace(event, new=replace(event.new, values=values)))
    messages = messages_of(format, events, encoding)
    for tables in (None, [f"s.{table}{number}" for number in range(20, 30)]):
        answer = agree(messages, format=format, encoding=encoding, tables=tables)
        assert len(answer.events) == (60 if tables is None else 20)


def test_what_is_learned_takes_eight_megabytes_at_most() -> None:
    relations = scratch.LearnedRelations(ScanInput(DICTIONARY, np.zeros(0, np.int64), b""))
    for _ in range(20):
        relations.cursor[LEARNED_FULL] = max(relations.cursor[LEARNED_FULL], WANTS_ROOM)
        relations.make_room()
    assert relations.cursor[LEARNED_FULL] == NO_ROOM
    size = relations.room + relations.dictionary.nbytes - DICTIONARY.nbytes
    assert 4 << 20 < size <= 8 << 20


@each_format
def test_a_table_that_is_not_asked_for_is_stepped_over(format: str) -> None:
    messages = messages_of(format, [insert(format, ("t", "u")[n % 10 > 0], ("a", "b"), n) for n in range(200)])
    patterns = ["s.t", *(f"other.table_{n}" for n in range(1000))]
    answer = agree(messages, format=format, tables=patterns)
    assert [event.new.values[0] for event in answer.events] == [str(10 * n) for n in range(20)]
    assert [(count, stepped) for count, _, stepped in complete_rows(format, messages, tables=patterns)] == [(20, 171)]


@pytest.mark.parametrize("encoding", ["gbk", "latin-1", "utf-8"])
@each_format
def test_names_in_other_encodings(format: str, encoding: str) -> None:
    name = "tÿ" if encoding == "latin-1" else "表"
    events = [insert(format, "other" if n == 0 else name, ("a", name if n % 2 else "b"), n) for n in range(21)]
    messages = list(wf.encode(events, format, encoding=encoding))
    for tables in (None, [f"s.{name}"], ["s.other"]):
        answer = agree(messages, format=format, encoding=encoding, tables=tables)
        assert len(answer.events) == {None: 21, "s.other": 1}.get(tables and tables[0], 20)
    agree(messages, format=format, mode="PERMISSIVE")


@pytest.mark.parametrize("is_of_columns", [False, True])
@each_format
def test_names_that_are_text_only_if_they_are_joined(format: str, is_of_columns: bool) -> None:
    """All rows of such a table are bad. All but the first were once read, with names that were no text."""
    schema, table, names = ("s", "t", ("aÃ", "©b")) if is_of_columns else ("sÃ", "©t", ("a", "b"))
    image = wf.TupleData(names, ("1", "x"), ("?number", "?string") if format == "sql-decoding" else ("integer", "text"))
    event = wf.Delete(lsn=1 if format.startswith("gaussdb") else None, table_schema=schema, table_name=table, old=image)
    other = [] if is_of_columns else [replace(event, table_schema="s", table_name="t")]  # with the same columns
    messages = list(wf.encode([*other, *[event] * 3], format, encoding="latin-1"))
    answer = agree(messages, format=format, mode="PERMISSIVE")
    assert [event.kind for event in answer.events[-3:]] == ["CORRUPT"] * 3


def test_a_bad_record_whose_table_could_end_at_a_later_mark() -> None:
    """Of gaussdb-text, where the first mark that can be read tells: a table that nobody asked for ends the search."""
    good = b"table s t INSERT: a[integer]:1"
    for bad in (b"table s t DELETE: (n\xff s t DELETE: a[integer]:1", b"table s t DELETE: (n s t DELETE: a[integer]:1"):
        for messages in ([bad], [good, bad]):
            for tables in (["x.*"], ["s.t"], ["s.*"]):
                agree(messages, format="gaussdb-text", mode="PERMISSIVE", tables=tables)


_TABLES = st.sampled_from(["t", "T 1", "t.u", 'q"', "a_table_with_a_long_name", "s"])
_COLUMNS = st.lists(st.sampled_from(["a", "B c", "d.e", "column_of_twenty_bytes", 'x"y', "é"]), unique=True, max_size=5)


@each_format
@given(
    rows=st.lists(st.tuples(_TABLES, _COLUMNS, st.integers(0, 10**9)), max_size=30),
    encoding=st.sampled_from(["utf-8", *sorted(WORDS)]),
    data=st.data(),
)
def test_any_rows(format: str, rows: list[tuple[str, list[str], int]], encoding: str, data: st.DataObject) -> None:
    """Rows of few tables with any columns, in any encoding, some of them with a byte that is wrong."""
    words = WORDS.get(encoding, ("é", "s"))
    rows = [
        (words[-1] if table == "s" else table, [words[0] if one == "é" else one for one in columns], number)
        for table, columns, number in rows
    ]
    if format == "gaussdb-text":
        rows = [(table.replace('"', "").replace(" ", "_"), columns, number) for table, columns, number in rows]
    events = [insert(format, table, tuple(columns) or ("a",), number) for table, columns, number in rows]
    messages = messages_of(format, list(events), encoding) * 2
    if messages:
        index = data.draw(st.integers(0, len(messages) - 1))
        at = data.draw(st.integers(0, len(messages[index]) - 1))
        changed = bytes([data.draw(st.integers(0, 255))])
        messages[index] = messages[index][:at] + changed + messages[index][at + 1 :]
    for tables in (None, ["s.t"]):
        agree(messages, format=format, mode="PERMISSIVE", encoding=encoding, tables=tables)
