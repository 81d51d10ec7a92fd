"""What a server printed with test_decoding, in all option sets: each record is read, and written again as it was."""

from __future__ import annotations

import pytest

import wireformat as wf

from ..codec_checks import check_pieces
from ..engines import agree, read
from ..servers.captures import capture_names, read_capture

FORMAT = "test-decoding"
READS_ALL = {"include-xids": "on", "include-timestamp": "on"}


@pytest.mark.parametrize("name", capture_names(FORMAT))
def test_every_record_is_read_and_written_again(name: str) -> None:
    capture = read_capture(name)
    assert capture.facts["plugin"] == "test_decoding"
    answer = agree(capture.messages, format=FORMAT)
    assert not any(isinstance(event, wf.Unknown) for event in answer.events)
    shown = {key: value for key, value in capture.facts["options"].items() if key in READS_ALL}
    assert list(wf.encode(answer.events, FORMAT, options=READS_ALL | shown)) == capture.messages
    file = b"".join(message + b"\n" for message in capture.messages)
    check_pieces([file[place : place + 4096] for place in range(0, len(file), 4096)], answer.events, format=FORMAT)


@pytest.mark.parametrize("name", capture_names(FORMAT))
def test_the_number_of_the_transaction(name: str) -> None:
    """The server gives it beside each record: a record that has one says the same, or one of its subtransactions."""
    capture = read_capture(name)
    events = read(capture.messages, format=FORMAT)
    pairs = [(event, xid) for event, xid in zip(events, capture.xids, strict=True) if getattr(event, "xid", None)]
    assert (len(pairs) > 300) == (capture.facts["options"].get("include-xids") != "off")
    assert all(event.xid == xid for event, xid in pairs if not isinstance(event, wf.StreamAbort))  # type: ignore[attr-defined]


def test_empty_transactions_are_left_out_as_the_server_does() -> None:
    """But for transactions of nothing but messages, which have no BEGIN in 15, the server's release, and one in 17."""
    plain, skipped = (read_capture(f"15-test-decoding-{name}") for name in ("plain", "skip-empty"))
    written = list(wf.encode(read(plain.messages, format=FORMAT), FORMAT, options={"skip-empty-xacts": "on"}))
    assert len(written) < len(plain.messages)
    transactions = b"\n\n".join(written)
    for place, message in enumerate(written):
        ends = place + 2 < len(written) and written[place + 2].startswith(b"COMMIT")
        if message.startswith(b"BEGIN") and written[place + 1].startswith(b"message: transactional: 1") and ends:
            alone = b"\n\n".join(written[place : place + 3])
            transactions = transactions.replace(alone, written[place + 1])
    assert transactions == b"\n\n".join(skipped.messages)
