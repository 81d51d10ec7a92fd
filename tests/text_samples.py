"""Good messages of the text formats, put together by hand: the small ones that tests make bad."""

from __future__ import annotations

J = (
    b'{"table_name":"s.t","op_type":"INSERT","columns_name":["a","b"],"columns_type":["integer","text"],'
    b'"columns_val":["1","\'x\'"],"old_keys_name":[],"old_keys_type":[],"old_keys_val":[]}'
)


def batched(*texts: bytes, end: bytes = bytes(4)) -> bytes:
    """A batch put together by hand."""
    records = [
        (8 + len(text)).to_bytes(4, "big") + (16 + place).to_bytes(8, "big") + text for place, text in enumerate(texts)
    ]
    return b"".join(records) + end


def insert(columns: bytes) -> bytes:
    return b"table s t INSERT:" + columns


SAMPLES: dict[str, list[bytes]] = {
    "gaussdb-json": [
        J,
        batched(b"BEGIN CSN: 5 first_lsn: 0/1 xid: 7 commit_time: 2026-11-21 01:02:03+08 origin_id: -1", J, b"commit"),
        J.replace(b"INSERT", b"UPDATE")
        .replace(b'_keys_name":[]', rb'_keys_name":["\"A\""]')
        .replace(b'_keys_type":[]', b'_keys_type":["bit"]')
        .replace(b'_keys_val":[]', b'_keys_val":["B\'1\'"]'),
        J.replace(b"'x'", rb"'\u001f\\\"''\ud83d\ude00'"),
    ],
    "gaussdb-text": [
        insert(b" a[integer]:-1.5e+3 \"b c\"[\"T]\"[]]:'it''s' c[bit varying]:B'01' d[boolean]:true e[text]:null"),
        batched(
            b"BEGIN CSN: 5 commit_lsn: 0/1", b"table my s t UPDATE: old-key: a[integer]:1 new-tuple:", b"commit xid: 5"
        ),
        b"table s t DELETE: (no-tuple-data)",
    ],
    "mppdb-json": [
        b"COMMIT 5 (at 2026-11-21 01:02:03+08) CSN 7",
        b"prefix: deparse, lsn: 21, relid 3, cmdtype: Simple, size: 3, content: {}\ndecode to: DROP, [owner omm]",
        b'table s.t, "S".t: TRUNCATE: restart_seqs cascade',
        b'{"JDDL": {"fmt": "A", "b": [1, null]}}',
    ],
    "opengauss-test-decoding": [
        b'table "S".t: UPDATE: old-key: a[integer]:1 new-tuple: a[text]:unchanged-toast-datum',
        b"message: prefix deparse, relid 3, cmdtype: Simple, sz: 3 content: {}\ndecode to : DROP, [owner omm]",
        b"ABORT 5 (at (timestamp out of range))",
    ],
    "test-decoding": [
        b'table "S".t: UPDATE: old-key: a[integer]:1 new-tuple: a[text]:unchanged-toast-datum',
        b"message: transactional: 1 prefix: a, sz: 3 content:, sz: 6 content:a\nb's\0",
        b"PREPARE TRANSACTION E'a\\\\b''c', txid 907 (at 2024-05-06 07:08:09.5+00)",
        b"streaming change for TXN 812",
        b"preparing streamed transaction TXN 'g, txid 9', txid 812",
        b"streaming message: transactional: 1 prefix: a, sz: 5, sz: 12",
        b"COMMIT 5 (at 2026-11-21 01:02:03+08)",
    ],
    "sql-decoding": [
        b"delete from s.\"T\" where a = 1 and \"B\" = 'x''y';insert into s.\"T\" values (2, null, B'1', true, );",
        b"insert into s.t values  (no-tuple-data);",
        b'{"TDDL": "DROP TABLE \\"a\\""}',
    ],
}
"""Good messages, to be made bad."""
