"""The plan of one stream: what each of its chunks needs of the others, and the stream at its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wireformat.chunks.relations import RelationChanges, known_before
from wireformat.errors import OrderError, add_hint
from wireformat.events import Relation
from wireformat.sources.resumption import Resumption
from wireformat.stream.attempts import Attempt
from wireformat.stream.capture_position import CapturePosition, OpenTransaction, open_transaction
from wireformat.stream.chunk_plan import ChunkPlan, PlannedStream, controls_of, plan_chunks
from wireformat.stream.transactions import TransactionMachine

if TYPE_CHECKING:
    from wireformat.chunks.summary import ChunkSummary


@dataclass(frozen=True)
class StreamPlan:
    """The plan of a stream.

    plans     of the chunks, by their numbers
    planned   the stream at its end
    unseen    transactions that were open at the position before, and have not been seen again
    after     the position before
    refused   why the stream cannot go on after it: it does not reach back to what was open
    """

    plans: dict[int, ChunkPlan]
    planned: PlannedStream
    unseen: tuple[OpenTransaction, ...]
    after: CapturePosition | None = None
    refused: OrderError | None = None

    @property
    def error(self) -> OrderError | None:
        """The error of the stream, without its message."""
        return self.refused or self.planned.error

    @property
    def oldest_open(self) -> int | None:
        """The number of the chunk in which the oldest transaction began that is open; None if none is."""
        self.check()
        firsts = [attempt.handles[0][0] for _, _, attempt in self._attempts() if attempt.handles]
        return [*self.plans][min(firsts)] if firsts else None

    @property
    def last_read(self) -> int:
        """The number of the last chunk that is delivered, which raises the error if there is one."""
        return [number for number, plan in self.plans.items() if plan.start is not None][-1]

    def check(self) -> None:
        """Raises the OrderError of the stream, if it has one."""
        if self.error is not None:
            raise self.error

    def position(
        self, format: str, changes: Iterable[RelationChanges], relations: tuple[Relation, ...] | None = None
    ) -> CapturePosition:
        """Returns the position at the end of the stream.

        changes     of relations, by all messages
        relations   before the oldest message that is needed; None takes those at the end
        """
        self.check()
        if self.after is not None and self.planned.machine.is_behind(self.after.delivered):
            return self.after._replace(relations_of_input=None)  # the messages only repeat what comes before it
        if relations is None:
            relations = known_before(None, changes).before(None)()
        return CapturePosition(format, self.planned.machine.position, (*self._open(), *self.unseen), relations)

    def _open(self) -> Iterable[OpenTransaction]:
        for stage, gid, attempt in self._attempts():
            yield open_transaction(stage, gid, attempt.begin, attempt.delivered)

    def _attempts(self) -> Iterable[tuple[str, str | None, Attempt[int]]]:
        """Yields the open attempts with stage and gid. Of those without their first block nothing is needed."""
        machine = self.planned.machine
        return (one for one in machine.staged() if one[2].begin.xid not in machine.without_first_block)


def plan_stream(
    chunks: Mapping[int, ChunkSummary], after: CapturePosition | None, two_phase: str, drop_resent: bool
) -> StreamPlan:
    """Returns the plan of a stream.

    chunks   the summaries of its chunks, by their numbers, in the order of the stream
    after    the position of an earlier capture

    Raises OrderError if no stream can go on after the position.
    """
    machine: TransactionMachine[int] = TransactionMachine(two_phase=two_phase, drop_resent=drop_resent)
    if after is not None:
        machine.continue_after(after.delivered, {one.xid for one in after.open if one.stage in ("block", "streamed")})
    resumption, resumptions, refused = Resumption(after), {}, None
    read = []
    for number in chunks:
        read.append(chunks[number].items)
        try:
            if resumption.unseen:
                resumptions[number] = deepcopy(resumption)
                resumption.take_controls(controls_of(chunks[number].items))
        except OrderError as error:
            refused = error
            break
    planned = plan_chunks(read, machine)
    try:
        if refused is None and planned.error is None:
            resumption.finish()
    except OrderError as error:
        refused = error
    if refused is not None:
        add_hint(refused, resumption.hint())
    plans = {
        number: plan._replace(messages=chunks[number].messages, resumption=resumptions.get(number))
        for number, plan in zip(chunks, planned.plans, strict=False)
    }
    return StreamPlan(plans, planned, resumption.unseen, after, refused)
