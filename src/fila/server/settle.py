"""The calls that settle deliveries, one or many, and the part of them that `Work` shares."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from fila import ids
from fila.core.commands import Action, Settle
from fila.core.effects import Reply, SettleResult
from fila.errors import (
    FilaError,
    InvalidArgumentError,
    LeaseNotFoundError,
)
from fila.model import DELAY_MAX_MS
from fila.server.boundary import Context
from fila.server.failures import Failures
from fila.server.runner import Answer
from fila.server.shell import Shell
from fila.wire import reply as wire
from fila.wire._pb import service_pb2 as pb
from fila.wire.names import check_queue_name
from fila.wire.request import parse
from fila.wire.status import CODE_NUMBERS

_SETTLEMENTS_MAX = 10_000
# No message has this number.
_NOBODY = 0
_ID_BYTES = 16
_ACTIONS = {
    "ack": Action.ACK,
    "nack": Action.NACK,
    "release": Action.RELEASE,
    "extend": Action.EXTEND,
}
_NONE_REFUSED = pb.SettlementResult()


class SettleBatch:
    """Settlements that are answered together: `done` is called when the last one is."""

    def __init__(self, counts: Sequence[int], done: Callable[[], None]) -> None:
        self.results: list[pb.SettlementResult] = [_NONE_REFUSED] * len(counts)
        self._counts = counts
        self._remaining = len(counts)
        self._done = done

    @property
    def is_done(self) -> bool:
        """Whether all of them are answered."""
        return not self._remaining

    def answer(self, index: int) -> Answer:
        """What the reply to one of them goes to."""
        return partial(self._take, index)

    def refuse(self, index: int, error: FilaError) -> None:
        """Answer one of them, all of whose messages are refused alike."""
        code, text = CODE_NUMBERS[error.code], str(error)
        errors = [
            pb.ItemError(index=item, code=code, message=text) for item in range(self._counts[index])
        ]
        self._finish(index, pb.SettlementResult(errors=errors))

    def _take(self, index: int, reply: Reply) -> None:
        if isinstance(reply, FilaError):
            # The queue was deleted between the check and the settling.
            self.refuse(index, reply)
        elif isinstance(reply, SettleResult) and reply.errors:
            errors = [wire.item_error(error) for error in reply.errors]
            self._finish(index, pb.SettlementResult(errors=errors))
        else:
            self._finish(index, _NONE_REFUSED)

    def _finish(self, index: int, result: pb.SettlementResult) -> None:
        self.results[index] = result
        self._remaining -= 1
        if not self._remaining:
            self._done()


class SettleService:
    """Ack, Nack and Settle."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._failures = Failures(shell)

    async def ack(self, data: bytes, _context: Context) -> bytes:
        """Settle one delivery as done."""
        request = parse(pb.AckRequest, data)
        await self._settle_one(request, Action.ACK)
        return b""

    async def nack(self, data: bytes, _context: Context) -> bytes:
        """Settle one delivery as failed, or give it back."""
        request = parse(pb.NackRequest, data)
        if request.release and (request.dead_letter or request.HasField("delay_ms")):
            raise InvalidArgumentError("release excludes dead_letter and delay_ms")
        await self._settle_one(
            request,
            Action.RELEASE if request.release else Action.NACK,
            error=self._error_text(request.error),
            delay_ms=_delay_ms(request),
            dead_letter=request.dead_letter,
        )
        return b""

    async def settle(self, data: bytes, _context: Context) -> bytes:
        """Settle many, with a result for each."""
        request = parse(pb.SettleRequest, data)
        if not request.settlements:
            return b""
        done = asyncio.get_running_loop().create_future()
        batch = self.submit(request.settlements, partial(_wake, done))
        await done
        return pb.SettleResponse(results=batch.results).SerializeToString()

    def submit(self, settlements: Sequence[pb.Settlement], done: Callable[[], None]) -> SettleBatch:
        """Hand settlements to the core; what is malformed as a whole is raised."""
        if len(settlements) > _SETTLEMENTS_MAX:
            raise InvalidArgumentError(
                f"{len(settlements)} settlements in a call; the limit is {_SETTLEMENTS_MAX}"
            )
        counts = [self._checked_count(settlement) for settlement in settlements]
        batch = SettleBatch(counts, done)
        for index, settlement in enumerate(settlements):
            try:
                command = self._command(settlement, counts[index], batch.answer(index))
            except FilaError as error:
                batch.refuse(index, error)
            else:
                self._failures.submit(command)
        return batch

    def _checked_count(self, settlement: pb.Settlement) -> int:
        count, rest = divmod(len(settlement.message_ids), _ID_BYTES)
        if rest:
            raise InvalidArgumentError(f"message_ids must hold {_ID_BYTES} bytes for each id")
        limit = self._shell.limits.batch_messages_max
        if count > limit:
            raise InvalidArgumentError(
                f"{count} messages in a settlement; the limit is {limit} "
                "(limits.batch_messages_max)"
            )
        if len(settlement.lease_tokens) not in (0, count):
            raise InvalidArgumentError("lease_tokens must be empty, or one for each message")
        return count

    def _command(self, settlement: pb.Settlement, count: int, answer: Answer) -> Settle:
        kind = settlement.WhichOneof("action")
        if kind is None:
            raise InvalidArgumentError("a settlement needs an action")
        check_queue_name(settlement.queue, self._shell.limits)
        tokens = settlement.lease_tokens or [0] * count
        command = Settle(
            tag=answer,
            queue=settlement.queue,
            action=_ACTIONS[kind],
            sequences=self._sequences(settlement, tokens),
            tokens=tokens,
            partition=self._shell.scheduler.partition_of(settlement.queue),
        )
        if kind == "nack":
            command.error = self._error_text(settlement.nack.error)
            command.delay_ms = _delay_ms(settlement.nack)
            command.dead_letter = settlement.nack.dead_letter
        elif kind == "extend":
            command.delay_ms = checked_delay("extend_ms", settlement.extend.extend_ms) or None
        return command

    def _sequences(self, settlement: pb.Settlement, tokens: Sequence[int]) -> list[int]:
        partition = self._shell.scheduler.partition_of(settlement.queue)
        halves = ids.unpack_ids(settlement.message_ids)
        sequences = ids.sequences_of(halves[1::2], partition)
        if not all(tokens):
            for index, token in enumerate(tokens):
                if not token and not self._is_stored(
                    partition, sequences[index], halves[2 * index]
                ):
                    sequences[index] = _NOBODY
        return sequences

    def _is_stored(self, partition: int, sequence: int, id_high: int) -> bool:
        """Whether the id is a message's in full; a token proves as much without looking."""
        entry = self._shell.storage.read_entry(partition, sequence)
        return entry is not None and entry.id_high == id_high

    async def _settle_one(
        self,
        request: pb.AckRequest | pb.NackRequest,
        action: Action,
        *,
        error: str = "",
        delay_ms: int | None = None,
        dead_letter: bool = False,
    ) -> None:
        queue = request.queue
        check_queue_name(queue, self._shell.limits)
        high, low = ids.parse_id(request.message_id)
        partition = self._shell.scheduler.partition_of(queue)
        sequence, token = ids.sequence_of(low), request.lease_token
        if not ids.belongs_to(low, partition):
            raise LeaseNotFoundError(queue)
        if not token and not self._is_stored(partition, sequence, high):
            raise LeaseNotFoundError(queue)

        def command(answer: Answer) -> Settle:
            return Settle(
                tag=answer,
                queue=queue,
                action=action,
                sequences=(sequence,),
                tokens=(token,),
                partition=partition,
                error=error,
                delay_ms=delay_ms,
                dead_letter=dead_letter,
            )

        result = await self._failures.ask(command)
        if isinstance(result, SettleResult) and result.errors:
            raise LeaseNotFoundError(queue)

    def _error_text(self, text: str) -> str:
        """As much of an error's text as is kept: refusing a nack for it would help nobody."""
        limit = self._shell.limits.error_bytes_max
        return text.encode()[:limit].decode(errors="ignore")


def checked_delay(what: str, delay_ms: int) -> int:
    """A time span that a request names."""
    if delay_ms > DELAY_MAX_MS:
        raise InvalidArgumentError(f"{what} is {delay_ms}; it must be at most {DELAY_MAX_MS}")
    return delay_ms


def _delay_ms(action: pb.NackRequest | pb.NackAction) -> int | None:
    if not action.HasField("delay_ms"):
        return None
    return checked_delay("delay_ms", action.delay_ms)


def _wake(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
