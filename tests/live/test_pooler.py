"""A pooler between the server and `follow`: PgBouncer gives its own errors the SQLSTATE of a broken protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wireformat as wf

from .walsender import Session, Walsender, serving

FAR = 1 << 40
FOLLOW: dict[str, Any] = {"slot": "s", "publication": "p", "once": True, "threads": 1}


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("server conn crashed?", True),
        ("query_wait_timeout", True),
        ("server shutting down", True),
        ("server login has been failing, cached error: connect failed (server_login_retry)", True),
        ("server login has been failing, cached error: password authentication failed (server_login_retry)", False),
        ("bad packet", False),
    ],
)
def test_a_pooler_that_has_lost_its_server(
    text: str, passes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wireformat.live.follower.WAIT_SECONDS", (0.01,))

    def play(session: Session, number: int) -> None:
        if number == 0:
            session.fail("08P01", text)
        session.idle(FAR)

    with serving(Walsender(play, end=FAR)) as server:
        if passes:
            wf.live.follow(server.dsn, tmp_path / "lake", **FOLLOW)
        else:
            with pytest.raises(wf.ServerError) as raised:
                wf.live.follow(server.dsn, tmp_path / "lake", **FOLLOW)
            assert not raised.value.is_temporary
    assert len(server.starts) == (2 if passes else 1)
