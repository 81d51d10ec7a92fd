"""Compresses the files of a wheel in fewer bytes than zlib does, in the same format."""

from __future__ import annotations

import zipfile
from pathlib import Path
from unittest import mock


class _Compressor:
    """Compresses a file as zlib's object of this kind does."""

    def __init__(self, *_: int | None) -> None:
        self._data: list[bytes] = []

    def compress(self, data: bytes) -> bytes:
        self._data.append(bytes(data))
        return b""

    def flush(self) -> bytes:
        from zopfli import zlib

        header, checksum = 2, 4  # zlib's, around the compressed bytes
        return bytes(zlib.compress(b"".join(self._data), numiterations=500)[header:-checksum])


def make_smaller(wheel: Path) -> None:
    """Writes a wheel anew, with the same files."""
    written = wheel.with_suffix(".smaller")
    with (
        mock.patch.object(zipfile, "_get_compressor", side_effect=_Compressor),  # zipfile takes no other compressor
        zipfile.ZipFile(wheel) as old,
        zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for file in old.infolist():
            new.writestr(file, old.read(file))
    written.replace(wheel)
