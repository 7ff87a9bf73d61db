"""Calls without an SDK in between: requests as they are, statuses as they come."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Protocol, TypeVar

import grpc
from google.protobuf.message import Message

from fila.wire._pb import admin_pb2, service_pb2
from fila.wire._pb.messages_pb2 import MessageOptions

DEADLINE_S = 10.0
ResponseT = TypeVar("ResponseT", bound=Message)
_names = itertools.count(1)


class RefusedError(AssertionError):
    """A status that is not OK."""

    def __init__(self, code: str, details: str, kind: str) -> None:
        super().__init__(f"{code}: {details}")
        self.code = code
        self.details = details
        self.kind = kind


class WorkStream(Protocol):
    """An open stream: its responses, a way to leave, and how it ended."""

    def __iter__(self) -> Iterator[service_pb2.WorkResponse]: ...

    def __next__(self) -> service_pb2.WorkResponse: ...

    def cancel(self) -> object: ...

    def code(self) -> grpc.StatusCode: ...


class Rpc:
    """One channel."""

    def __init__(self, address: str) -> None:
        options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        self.channel = grpc.insecure_channel(address, options=options)

    def __enter__(self) -> "Rpc":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.channel.close()

    def raw(self, method: str, data: bytes, timeout: float = DEADLINE_S) -> bytes:
        """A unary call in bytes; `method` such as "FilaAdmin/CreateQueue"."""
        call: Callable[..., bytes] = self.channel.unary_unary(
            f"/fila.v1.{method}", request_serializer=None, response_deserializer=None
        )
        try:
            response = call(data, timeout=timeout)
        except grpc.RpcError as error:
            raise refused(error) from None
        return response

    def call(self, request: Message, response_class: type[ResponseT]) -> ResponseT:
        """A unary call, by the name of its request."""
        name = request.DESCRIPTOR.name.removesuffix("Request")
        service = "FilaAdmin" if request.DESCRIPTOR.file is admin_pb2.DESCRIPTOR else "FilaService"
        data = self.raw(f"{service}/{name}", request.SerializeToString())
        response = response_class()
        response.ParseFromString(data)
        return response

    def queue(self, **config: int) -> str:
        """A new queue."""
        name = f"queue-{next(_names)}"
        settings = admin_pb2.QueueConfig(**config)  # type: ignore[arg-type]
        request = admin_pb2.CreateQueueRequest(name=name, config=settings)
        return self.call(request, admin_pb2.CreateQueueResponse).queue_id

    def enqueue(
        self, queue: str, *payloads: bytes, options: MessageOptions | None = None
    ) -> list[str]:
        """The ids."""
        return [
            self.call(
                service_pb2.EnqueueRequest(queue=queue, payload=payload, options=options),
                service_pb2.EnqueueResponse,
            ).message_id
            for payload in payloads
        ]

    def lease(self, queue: str, count: int = 1, wait_ms: int = 0) -> service_pb2.LeaseResponse:
        """A long poll."""
        request = service_pb2.LeaseRequest(queue=queue, max_messages=count, wait_ms=wait_ms)
        return self.call(request, service_pb2.LeaseResponse)

    def stats(self, queue: str) -> admin_pb2.GetStatsResponse:
        """In numbers."""
        return self.call(admin_pb2.GetStatsRequest(queue=queue), admin_pb2.GetStatsResponse)

    def work(self, requests: Iterable[service_pb2.WorkRequest]) -> WorkStream:
        """A Work stream; it can be cancelled."""
        call: Callable[..., WorkStream] = self.channel.stream_stream(
            "/fila.v1.FilaService/Work",
            request_serializer=service_pb2.WorkRequest.SerializeToString,
            response_deserializer=service_pb2.WorkResponse.FromString,
        )
        return call(iter(requests), timeout=60)


def refused(error: grpc.RpcError) -> RefusedError:
    """What a failed call says."""
    trailing = {datum.key: str(datum.value) for datum in error.trailing_metadata() or ()}
    return RefusedError(error.code().name, error.details() or "", trailing.get("fila-error", ""))
