"""The lakes that a capture is written to: one for each stream."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from wireformat.arrow.typed_tables.listed import names_of
from wireformat.errors import counted
from wireformat.lake.chunks import LakePlan, discard, joined, publish
from wireformat.lake.options import LakeOptions, check_named_tables, check_patterns
from wireformat.lake.result import result, with_open_changes
from wireformat.lake.stored.names import folder_of
from wireformat.options import ReadOptions
from wireformat.options.checks import in_home
from wireformat.options.table_names import written
from wireformat.sources.resumption import begins_before, going_on
from wireformat.stream.capture_position import CapturePosition
from wireformat.stream.chunk_plan import controls_of

from .groups import stream_key
from .light_pass import LightPass
from .rejects import RejectsFolder, check_order_by
from .writing import Write, WrittenChunk

if TYPE_CHECKING:
    from wireformat.lake.lake import Lake


@dataclass(frozen=True)
class StreamLake:
    """The lake of a stream, before a write.

    folder   of the lake
    after    the position after which the stream goes on
    """

    folder: Any
    lake: Lake
    after: CapturePosition | None


class StreamLakes:
    """The lakes of streams, in the folder that a caller gives, or below it if there are several streams.

    streams   the values of stream_by of each
    after     the positions after which the streams go on
    mode      for values that do not fit
    order     the columns order_by
    locks     keeps other writes out of the lakes; with state="latest", the tasks do

    Raises OptionError, StateError and LakeConflict.
    """

    def __init__(
        self,
        locks: ExitStack,
        folder: Any,
        options: LakeOptions,
        format: str,
        streams: Iterable[tuple[Any, ...]],
        after: Mapping[str, CapturePosition],
        mode: str,
        order: pa.Schema,
    ) -> None:
        if options.rejects is not None:
            check_order_by(order.names)
        folder, rejects_folder = (_absolute(given, options) for given in (folder, options.rejects))
        self._options = options
        self._format = format
        self._mode = mode
        self._lakes: dict[str, StreamLake] = {}
        self._rejects: dict[str, RejectsFolder] = {}
        for stream in streams:
            key = stream_key(stream)
            own = _below(folder, stream)
            lake = locks.enter_context(options.locked(own, format))
            if options.state == "latest":
                locks.close()
            self._lakes[key] = one = StreamLake(own, lake, going_on(after.get(key), lake.position, format))
            if rejects_folder is not None:
                own, uri, write = _below(rejects_folder, stream), lake.store.uri(""), lake.manifest.writes + 1
                self._rejects[key] = RejectsFolder(own, uri, options, write, lake.writer, one.after, order)

    @property
    def after(self) -> dict[str, CapturePosition]:
        """The positions after which the streams go on."""
        return {key: one.after for key, one in self._lakes.items() if one.after is not None}

    def find_starts(self, pass_after: Callable[[dict[str, CapturePosition]], LightPass]) -> None:
        """Finds out which streams begin where their lakes end, though an earlier position was given.

        pass_after   returns a light pass over the streams after positions that skips what cannot be read. It is needed
                     only if tables have been described since then
        """
        after = self.after
        if all(position.relations_of_input is None for position in after.values()):
            return
        summaries = pass_after(after).summaries
        for key, position in after.items():
            items = (summary.items for summary in summaries.get(key, {}).values())
            if not begins_before(position, chain.from_iterable(map(controls_of, items))):
                self._lakes[key] = replace(self._lakes[key], after=position._replace(relations_of_input=None))

    def writes(self, light: LightPass, tables: Sequence[str] | None) -> dict[str, Write]:
        """Returns what the workers need to write each stream.

        Raises OptionError for tables that no stream and no lake has.
        """
        filtered = ReadOptions.check(tables=tables)
        if all(one.lake.position is None for one in self._lakes.values()):
            check_patterns(filtered, _names(light.listed), lambda: _names(light.listed_with_others))
        known = {key: one.lake.known_versions() for key, one in self._lakes.items()}
        there = _names(light.listed).union(*known.values())
        named = {"keys": self._options.keys, "schemas": self._options.schemas}
        check_named_tables(named, there, filtered)
        found = {}
        for key, one in self._lakes.items():
            listed = light.listed_of(key, known[key])
            versions = {
                table: {chunk: version for (_, chunk), version in of_chunks.items() if chunk is not None}
                for table, of_chunks in light.versions_before([key], known[key]).items()
            }
            options = _of_tables(self._options, listed)
            plan = LakePlan(one.folder, options, self._format, one.lake.manifest, one.lake.writer)
            found[key] = Write(plan, listed, versions, tables, one.after, self._mode, self._rejects.get(key))
            if self._options.state == "changes":
                one.lake.begin()  # the files of the workers become part of it
        return found

    def discard(self) -> None:
        """Removes the files that tasks have written, which nothing names, as far as that is possible."""
        for key, one in self._lakes.items():
            with suppress(OSError):
                for path in one.lake.other_files():
                    one.lake.store.delete(path)
                if key in self._rejects:
                    self._rejects[key].discard()

    def publish(
        self,
        parts: Mapping[str, Mapping[int, WrittenChunk]],
        light: LightPass,
        positions: Mapping[str, CapturePosition],
    ) -> dict[str, pa.Table]:
        """Publishes the files that the workers have written, and returns what was written, by the stream.

        parts       what was written of the chunks of each stream
        positions   of the streams, at their end
        """
        chunks = {key: [*parts.get(key, {}).values()] for key in self._lakes}
        files = {key: joined(chunk.files for chunk in of_stream) for key, of_stream in chunks.items()}
        rejects = {key: [chunk.rejects for chunk in chunks[key] if chunk.rejects is not None] for key in self._rejects}
        done = {}
        try:
            light.check_whole(parts)
            for key, one in self._lakes.items():
                position = positions.get(key, CapturePosition(self._format))
                unread = sum(file.unread for file in rejects.get(key, ()))
                one.lake.check_alone()  # before rejects get names that another write may have given, too
                if key in rejects:
                    self._rejects[key].publish(rejects.pop(key))
                own = files.pop(key)
                publish(one.lake, own, position)
                left_open = sum(open.changes for open in position.open)
                dropped = light.dropped_of(key) + (unread if self._mode == "DROPMALFORMED" else 0)
                open_changes: Counter[tuple[str, str]] = Counter()
                for chunk in chunks[key]:
                    open_changes.update(chunk.open)
                done[key] = with_open_changes(result(one.lake, own, left_open, dropped, unread), open_changes)
        except BaseException:
            for key, of_stream in files.items():
                discard(self._lakes[key].lake, of_stream)
            with suppress(OSError):
                for key in rejects:
                    self._rejects[key].discard()
            raise
        return done


def _absolute(folder: Any, options: LakeOptions) -> Any:
    """Returns a path of this machine from its root, as the driver sees it: workers have other working folders."""
    if options.filesystem is not None or not isinstance(folder, (str, os.PathLike)):
        return folder
    text = os.fspath(folder)
    return str(Path(in_home(text)).absolute()) if text and "://" not in text else folder


def _below(folder: Any, stream: tuple[Any, ...]) -> Any:
    """Returns the folder of a stream: this one if there is only one stream, else one below it."""
    return f"{os.fspath(folder)}/{folder_of(tuple(map(str, stream)))}" if stream else folder


def _names(listed: pa.Table) -> set[tuple[str, str]]:
    return {*names_of(listed)}


def _of_tables(options: LakeOptions, listed: pa.Table) -> LakeOptions:
    """Returns the options without those of tables that only other streams have."""
    names = {*map(written, _names(listed))}
    keys = options.keys
    if isinstance(keys, dict):
        keys = {table: value for table, value in keys.items() if table in names}
    schemas = {table: value for table, value in options.schemas.items() if table in names}
    return replace(options, keys=keys, schemas=schemas, rejects=None)


def log_written(done: Mapping[str, pa.Table], light: LightPass) -> None:
    """Logs what was read, written, left open and dropped of each stream."""
    for key, found in done.items():
        total = {name: sum(filter(None, found[name].to_pylist())) for name in ("rows", "files", "open", "dropped")}
        logging.getLogger(__package__).info(
            "stream %s: read %s, wrote %s of %s to %s; left open %s; dropped %s",
            key,
            counted(light.messages_of(key), "message"),
            counted(total["rows"], "row"),
            counted(len(found["table_name"].drop_null()), "table"),
            counted(total["files"], "file"),
            counted(total["open"], "change"),
            counted(total["dropped"], "row"),
        )
