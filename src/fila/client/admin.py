"""The admin calls of the asynchronous client."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from typing import Protocol, TypeVar, Unpack

from google.protobuf.message import Message as WireMessage

from fila.client import views
from fila.client.connection import ADMIN
from fila.client.explanation import Explanation, explanation
from fila.client.items import check_aware, milliseconds
from fila.errors import InvalidArgumentError
from fila.wire._pb import admin_pb2 as pb

R = TypeVar("R", bound=WireMessage)


class _Call(Protocol):
    """A unary call of the client; a patient one has no deadline."""

    def __call__(
        self, path: str, request: bytes, *, repeatable: bool, patient: bool = False
    ) -> Awaitable[bytes]: ...


class AsyncAdmin:
    """Queues, runtime configuration, and a look at what is there: `client.admin`."""

    def __init__(self, call: _Call) -> None:
        self._call = call

    async def create_queue(self, name: str, **options: Unpack[views.QueueOptions]) -> None:
        """Create a queue and its dead-letter queue."""
        request = _checked(lambda: pb.CreateQueueRequest(name=name, config=_config(options)))
        await self._write("CreateQueue", request, pb.CreateQueueResponse)

    async def update_queue(
        self, name: str, **options: Unpack[views.QueueOptions]
    ) -> views.QueueDescription:
        """Change the settings that are given; the others stay as they are."""
        request = _checked(lambda: pb.UpdateQueueRequest(queue=name, config=_config(options)))
        await self._write("UpdateQueue", request, pb.UpdateQueueResponse)
        return await self.get_queue(name)

    async def delete_queue(self, name: str, *, keep_dead_letters: bool = False) -> None:
        """Delete a queue and all in it; refused over dead letters if they are to be kept."""
        request = _checked(
            lambda: pb.DeleteQueueRequest(queue=name, keep_dead_letters=keep_dead_letters)
        )
        await self._write("DeleteQueue", request, pb.DeleteQueueResponse)

    async def list_queues(self) -> list[views.QueueInfo]:
        """All queues."""
        answer = await self._read("ListQueues", pb.ListQueuesRequest(), pb.ListQueuesResponse)
        return [views.queue_info(info) for info in answer.queues]

    async def get_queue(self, name: str) -> views.QueueDescription:
        """A queue's settings."""
        request = _checked(lambda: pb.GetQueueRequest(queue=name))
        answer = await self._read("GetQueue", request, pb.GetQueueResponse)
        return views.QueueDescription(
            name=name,
            settings=views.queue_settings(answer.config),
            paused=answer.paused,
            dead_letter_queue=answer.dead_letter_queue or None,
        )

    async def stats(self, name: str) -> views.QueueStats:
        """What a queue holds and how it is served."""
        request = _checked(lambda: pb.GetStatsRequest(queue=name))
        return views.queue_stats(await self._read("GetStats", request, pb.GetStatsResponse))

    async def purge_queue(self, name: str, *, include_leased: bool = False) -> int:
        """Remove what waits, on request also what is leased; how many were removed."""
        request = _checked(lambda: pb.PurgeQueueRequest(queue=name, include_leased=include_leased))
        return (await self._write("PurgeQueue", request, pb.PurgeQueueResponse)).purged

    async def pause_queue(self, name: str) -> None:
        """Stop deliveries; everything else goes on."""
        request = _checked(lambda: pb.PauseQueueRequest(queue=name))
        await self._write("PauseQueue", request, pb.PauseQueueResponse)

    async def resume_queue(self, name: str) -> None:
        """Go on delivering."""
        request = _checked(lambda: pb.ResumeQueueRequest(queue=name))
        await self._write("ResumeQueue", request, pb.ResumeQueueResponse)

    async def redrive(self, dlq: str, count: int = 0) -> int:
        """Move waiting dead letters back to where they came from, oldest first; how many moved.

        A count of 0 means all that wait now. The call lasts until it is done, however long that is.
        """
        if count < 0:
            raise InvalidArgumentError(f"count is {count}; it must be 0 for all, or more")
        request = _checked(lambda: pb.RedriveRequest(dlq_queue=dlq, count=count))
        content = request.SerializeToString()
        answer = await self._call(ADMIN + "Redrive", content, repeatable=False, patient=True)
        return pb.RedriveResponse.FromString(answer).redriven

    async def remove_message(self, queue: str, message_id: str) -> None:
        """Remove one waiting message."""
        request = _checked(lambda: pb.RemoveMessageRequest(queue=queue, message_id=message_id))
        await self._write("RemoveMessage", request, pb.RemoveMessageResponse)

    async def reschedule(
        self,
        queue: str,
        message_id: str,
        *,
        delay: float | None = None,
        deliver_at: datetime | None = None,
    ) -> None:
        """Move a delayed message to another time: seconds from now, or a moment."""
        if (delay is None) == (deliver_at is None):
            raise InvalidArgumentError("give either delay or deliver_at")
        request = _checked(
            lambda: pb.RescheduleRequest(
                queue=queue, message_id=message_id, delay_ms=milliseconds("delay", delay)
            )
        )
        if deliver_at is not None:
            check_aware(deliver_at)
            request.deliver_at.FromDatetime(deliver_at)
        await self._write("Reschedule", request, pb.RescheduleResponse)

    async def consumers(self, queue: str | None = None) -> list[views.ConsumerInfo]:
        """Who is connected, to one queue or to any."""
        request = _checked(lambda: pb.ListConsumersRequest(queue=queue or ""))
        answer = await self._read("ListConsumers", request, pb.ListConsumersResponse)
        return [views.consumer_info(info) for info in answer.consumers]

    async def explain(
        self, queue: str, *, message_id: str | None = None, key: str | None = None
    ) -> Explanation:
        """Why a message, a fairness key, or anything of a queue is not delivered now."""
        if message_id is not None and key is not None:
            raise InvalidArgumentError("give either message_id or key")
        if "" in {message_id, key}:
            raise InvalidArgumentError("neither message_id nor key may be empty; leave it out")
        request = _checked(
            lambda: pb.ExplainRequest(queue=queue, message_id=message_id, fairness_key=key)
        )
        return explanation(await self._read("Explain", request, pb.ExplainResponse))

    async def browse(
        self, queue: str, *, page_size: int = 100
    ) -> AsyncIterator[views.BrowsedMessage]:
        """Look at a queue's messages without leasing them, in order of acceptance."""
        token = ""
        while True:
            page, token = await self.browse_page(queue, page_size=page_size, page_token=token)
            for browsed in page:
                yield browsed
            if not token:
                return

    async def browse_page(
        self, queue: str, *, page_size: int = 100, page_token: str = ""
    ) -> tuple[list[views.BrowsedMessage], str]:
        """One page, and the token of the next; an empty token is the last page's."""
        request = _checked(
            lambda: pb.BrowseRequest(queue=queue, page_size=page_size, page_token=page_token)
        )
        answer = await self._read("Browse", request, pb.BrowseResponse)
        return [views.browsed_message(one) for one in answer.messages], answer.next_page_token

    async def set_config(self, key: str, value: str) -> None:
        """Store a runtime setting."""
        request = _checked(lambda: pb.SetConfigRequest(key=key, value=value))
        await self._write("SetConfig", request, pb.SetConfigResponse)

    async def get_config(self, key: str) -> str | None:
        """A runtime setting, None where there is none."""
        request = _checked(lambda: pb.GetConfigRequest(key=key))
        answer = await self._read("GetConfig", request, pb.GetConfigResponse)
        return answer.value if answer.found else None

    async def list_config(self, prefix: str = "") -> dict[str, str]:
        """The runtime settings whose keys begin with the prefix."""
        request = _checked(lambda: pb.ListConfigRequest(prefix=prefix))
        answer = await self._read("ListConfig", request, pb.ListConfigResponse)
        return {entry.key: entry.value for entry in answer.entries}

    async def delete_config(self, key: str) -> bool:
        """Delete a runtime setting; whether it was there."""
        request = _checked(lambda: pb.DeleteConfigRequest(key=key))
        return (await self._write("DeleteConfig", request, pb.DeleteConfigResponse)).found

    async def _read(self, method: str, request: WireMessage, answer: type[R]) -> R:
        content = request.SerializeToString()
        return answer.FromString(await self._call(ADMIN + method, content, repeatable=True))

    async def _write(self, method: str, request: WireMessage, answer: type[R]) -> R:
        content = request.SerializeToString()
        return answer.FromString(await self._call(ADMIN + method, content, repeatable=False))


def _config(options: views.QueueOptions) -> pb.QueueConfig:
    unknown = options.keys() - views.QueueOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"a queue has no setting {', '.join(sorted(unknown))}")
    return pb.QueueConfig(**options)


def _checked(build: Callable[[], R]) -> R:
    try:
        return build()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"{error.object!r} can't be sent: {error.reason}") from error
    except ValueError as error:
        raise InvalidArgumentError(f"the request can't be sent: {error}") from error
