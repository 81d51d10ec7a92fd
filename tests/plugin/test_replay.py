"""replay: which callbacks are called with which events, what they may write, and that encoders are such plugins."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.formats.registry import find_format
from wireformat.plugin import Context, Encoder, OutputPlugin, replay

from .. import text_strategies
from ..golden_cases import CASES, Case
from .plugins import ALL, FILTERS, called, make_plugin

ROW = wf.Insert(table_schema="s", table_name="t", new=wf.TupleData(("a",), ("1",), ("integer",)))
TRUNCATE = wf.Truncate(tables=(("s", "t"),))
MESSAGE = wf.Message(transactional=True, prefix="p", content="c")
LOOSE = wf.Message(transactional=False, prefix="p", content="c")
HEARTBEAT = wf.Heartbeat(wal_end=1, time=2)

PLAIN = [wf.Begin(xid=1), ROW, TRUNCATE, MESSAGE, LOOSE, wf.Ddl(sql="x"), HEARTBEAT, wf.Commit(xid=1)]
BLOCK = [wf.StreamStart(xid=2), ROW, wf.StreamChange(xid=2), TRUNCATE, MESSAGE, LOOSE, HEARTBEAT, wf.StreamStop(xid=2)]

SEQUENCES: dict[str, tuple[list[wf.Event], str]] = {
    "a transaction": (PLAIN, "begin change truncate message message ddl other commit"),
    "a block": (
        BLOCK,
        "stream_start stream_change stream_change stream_truncate stream_message message other stream_stop",
    ),
    "a prepared one": (
        [wf.Begin(xid=3, gid="g"), ROW, wf.Prepare(xid=3, gid="g"), wf.CommitPrepared(gid="g")],
        "begin_prepare change prepare commit_prepared",
    ),
    "one that does not say it will be prepared": (
        [wf.Begin(xid=3), ROW, wf.Prepare(xid=3, gid="g"), wf.RollbackPrepared(gid="g")],
        "begin change prepare rollback_prepared",
    ),
    "the ends of streamed ones": (
        [wf.StreamAbort(xid=2), wf.StreamCommit(xid=3), wf.StreamPrepare(xid=2, gid="g"), wf.Abort(xid=5)],
        "stream_abort stream_commit stream_prepare abort",
    ),
    "what no server's plugin is called for": (
        [wf.Origin(origin="o"), wf.Type(type_oid=1, namespace="n", name="t"), wf.Unknown(raw=b"?"), HEARTBEAT],
        "other other other other",
    ),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_callbacks_in_order(name: str) -> None:
    events, names = SEQUENCES[name]
    assert called(events, ALL - FILTERS) == list(zip(names.split(), events, strict=True))


def test_what_is_optional_is_left_out() -> None:
    names = {"begin", "change", "commit"}
    assert called(PLAIN, names) == [("begin", PLAIN[0]), ("change", ROW), ("commit", PLAIN[-1])]
    streaming = names | {"stream_start", "stream_stop", "stream_abort", "stream_commit", "stream_change"}
    expected = ["stream_start", "stream_change", "stream_change", "stream_stop"]
    assert [call[0] for call in called(BLOCK, streaming)] == expected


def test_the_transaction_is_the_event_that_opened_it() -> None:
    seen: list[Any] = []

    class Plugin(Encoder):
        def write(self, ctx: Context, event: wf.Event) -> None:
            seen.append(ctx.transaction)

        change = stream_change = commit = stream_stop = other = begin = stream_start = stream_commit = write
        message = truncate = ddl = stream_message = stream_truncate = write

    list(replay([HEARTBEAT, *PLAIN, HEARTBEAT, *BLOCK, wf.StreamCommit(xid=2)], Plugin("gaussdb-binary")))
    assert seen == [None, *[PLAIN[0]] * 8, None, *[BLOCK[0]] * 8, None]


class Script(OutputPlugin):
    """Runs a function in a callback, or at startup."""

    def __init__(self, run: Callable[[Context], object], where: str = "change", output_type: str = "binary") -> None:
        self.run, self.where, self.output_type = run, where, output_type
        self.down = 0

    def startup(self, ctx: Context) -> None:
        ctx.output_type = self.output_type
        self._at("startup", ctx)

    def begin(self, ctx: Context, event: wf.Begin) -> None:
        self._at("begin", ctx)

    def change(self, ctx: Context, event: wf.RowChange) -> None:
        self._at("change", ctx)

    def commit(self, ctx: Context, event: wf.Commit) -> None:
        self._at("commit", ctx)

    def filter_by_origin(self, ctx: Context, origin: int | str | None) -> bool:
        self._at("filter_by_origin", ctx)
        return False

    def flush(self, ctx: Context) -> None:
        self._at("flush", ctx)

    def shutdown(self, ctx: Context) -> None:
        self.down += 1
        self._at("shutdown", ctx)

    def _at(self, where: str, ctx: Context) -> None:
        if where == self.where:
            self.run(ctx)


def run(function: Callable[[Context], object], where: str = "change", **options: Any) -> list[bytes]:
    return list(replay([wf.Begin(), ROW, wf.Commit()], Script(function, where, **options)))


def write(ctx: Context, text: bytes = b"x", last: bool = True) -> None:
    ctx.prepare_write(last)
    ctx.out += text
    ctx.write(last)


@pytest.mark.parametrize("where", ["begin", "change", "commit", "flush"])
def test_writes_come_out_as_messages(where: str) -> None:
    def several(ctx: Context) -> None:
        write(ctx, b"first", last=False)
        ctx.send(b"second", last_write=False)
        ctx.prepare_write()
        ctx.out += b"th"
        ctx.out.extend(b"ird")
        ctx.write()

    assert run(several, where) == [b"first", b"second", b"third"]


REFUSED: dict[str, tuple[Callable[[Context], object], str]] = {
    "out before prepare_write": (lambda ctx: ctx.out.extend(b"x"), "output only between prepare_write and write"),
    "out after write": (lambda ctx: (write(ctx), ctx.out.extend(b"x")), "output only between"),
    "write without prepare_write": (lambda ctx: ctx.write(), "output only between"),
    "prepare_write twice": (
        lambda ctx: (ctx.prepare_write(), ctx.prepare_write()),
        "prepare_write twice without write",
    ),
    "a write after the last one": (lambda ctx: (write(ctx), write(ctx)), "the write before was its last one"),
    "send after the last one": (lambda ctx: (ctx.send(b""), ctx.send(b"")), "the write before was its last one"),
    "send of a text": (lambda ctx: ctx.send("abc"), "expected a message of bytes, got str"),
    "send of nothing": (lambda ctx: ctx.send(None), "expected a message of bytes, got NoneType"),
    "send within a write": (lambda ctx: (ctx.prepare_write(), ctx.send(b"")), "send between prepare_write and write"),
    "two words about last_write": (
        lambda ctx: (ctx.prepare_write(last_write=False), ctx.write(last_write=True)),
        "differ in last_write",
    ),
    "no write at the end": (lambda ctx: ctx.prepare_write(), "it ended between prepare_write and write"),
    "another out": (lambda ctx: (ctx.prepare_write(), setattr(ctx, "out", bytearray())), "it is not replaced"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_writes_that_are_refused(name: str) -> None:
    function, words = REFUSED[name]
    with pytest.raises(wf.PluginError, match=rf"^change: .*{words}"):
        run(function)


@pytest.mark.parametrize("where", ["startup", "filter_by_origin", "shutdown"])
def test_callbacks_that_write_nothing(where: str) -> None:
    for function in (write, lambda ctx: ctx.send(b"x")):
        with pytest.raises(wf.PluginError, match=f"^{where}: writes are not accepted here"):
            run(function, where)


def test_text_must_be_valid() -> None:
    assert run(lambda ctx: ctx.send("é".encode()), output_type="text") == ["é".encode()]
    assert run(lambda ctx: ctx.send(b"\xff")) == [b"\xff"]
    with pytest.raises(
        wf.PluginError, match="change: expected text in utf-8, got none at byte 2 of a message of 3"
    ) as raised:
        run(lambda ctx: ctx.send(b"ab\xff"), output_type="text")
    assert "ab" not in str(raised.value).replace("able", "")
    latin = replay([wf.Begin(), ROW], Script(lambda ctx: ctx.send(b"\xff"), output_type="text"), encoding="latin-1")
    assert list(latin) == [b"\xff"]
    with pytest.raises(wf.PluginError, match="expected output_type binary or text, got 'txt'"):
        run(lambda ctx: None, output_type="txt")


def test_startup_checks_the_options() -> None:
    def check(ctx: Context) -> None:
        if ctx.options != {"a": 1}:
            raise wf.OptionError("option a: expected 1")

    assert list(replay([], Script(check, "startup"), {"a": 1})) == []
    with pytest.raises(wf.OptionError, match="option a: expected 1"):
        replay([], Script(check, "startup"), {"a": 2})
    with pytest.raises(wf.OptionError, match="has no startup, so it takes no options; got a, b"):
        replay([], make_plugin({"begin", "change", "commit"}), {"a": 1, "b": 2})
    with pytest.raises(wf.OptionError, match="option encoding"):
        replay([], make_plugin({"begin", "change", "commit"}), encoding="utf-99")


def test_shutdown_comes_after_errors_too() -> None:
    def stream() -> Iterator[wf.Event]:
        yield wf.Begin()
        raise wf.DecodeError("a", "b")

    for events, error in (([ROW], None), (stream(), wf.DecodeError), ([wf.Corrupt(error="", raw=b"")], wf.EncodeError)):
        plugin = Script(lambda ctx: ctx.send(b"end"), "flush")
        found: list[bytes] = []
        if error is None:
            found += replay(events, plugin)
            assert found == [b"end"]
        else:
            with pytest.raises(error):
                found += replay(events, plugin)
            assert found == []
        assert plugin.down == 1


def test_messages_come_as_they_are_written() -> None:
    """An endless stream is no trouble."""
    events = itertools.cycle([wf.Begin(), ROW, wf.Commit()])
    plugin = Script(lambda ctx: ctx.send(b"row"))
    assert list(itertools.islice(replay(events, plugin), 1000)) == [b"row"] * 1000


def directly(events: list[wf.Event], format: str, options: Any, encoding: str, size: int = 1 << 20) -> list[bytes]:
    """What the format's writer makes of events, without a plugin."""
    writer = find_format(format).writer(options, encoding=encoding, batch_bytes=size)
    return [message for event in events for message in writer.write(event)] + writer.flush()


@pytest.mark.parametrize("case", [case for case in CASES if not case.has_bad_text], ids=lambda case: case.name)
def test_an_encoder_writes_what_its_writer_writes(case: Case) -> None:
    events = list(wf.decode(case.messages, case.format, **case.reading))[:400]
    for options in (None, {"include-xids": False, "skip-empty-xacts": True}):
        written = directly(events, case.format, options, case.encoding)
        assert list(wf.encode(events, case.format, options=options, encoding=case.encoding)) == written
        assert list(replay(events, Encoder(case.format), options, encoding=case.encoding)) == written


@given(st.lists(text_strategies.any_events(), max_size=8), st.sampled_from(sorted(wf.FORMATS)), st.booleans())
def test_an_encoder_refuses_what_its_writer_refuses(events: list[wf.Event], format: str, batched: bool) -> None:
    options = {"sending-batch": 1} if batched and format.startswith("gaussdb-") else {}
    answers = []
    for encode in (
        lambda: directly(events, format, options, "utf-8", 60),
        lambda: list(wf.encode(events, format, options=options, batch_bytes=60)),
    ):
        try:
            answers.append(encode())
        except wf.WireformatError as error:
            answers.append((type(error), str(error)))
    assert answers[0] == answers[1]


def test_an_encoder_can_be_changed() -> None:
    class Masked(Encoder):
        def change(self, ctx: Context, event: wf.RowChange) -> None:
            if event.table_name == "t":
                super().change(ctx, wf.Insert(lsn=1, table_schema="s", table_name="masked", new=wf.TupleData()))

    events = [wf.Begin(lsn=1, csn=1, first_lsn=1), ROW, wf.Commit(lsn=1)]
    messages = replay(events, Masked("gaussdb-binary"), {"sending-batch": 1})
    kinds = [(event.kind, getattr(event, "table_name", None)) for event in wf.decode(messages, "gaussdb-binary")]
    assert kinds == [("BEGIN", None), ("INSERT", "masked"), ("COMMIT", None)]
