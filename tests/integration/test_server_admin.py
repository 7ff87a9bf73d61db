"""What operators see and do, over the wire."""

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from fila.wire._pb import admin_pb2 as a
from fila.wire._pb import messages_pb2 as m
from fila.wire._pb import service_pb2 as s
from tests.integration.rpc import RefusedError, Rpc


def browse(rpc: Rpc, queue: str, page_size: int = 0) -> list[list[a.BrowsedMessage]]:
    """All pages."""
    pages: list[list[a.BrowsedMessage]] = []
    token = ""
    while not pages or token:
        request = a.BrowseRequest(queue=queue, page_size=page_size, page_token=token)
        response = rpc.call(request, a.BrowseResponse)
        pages.append(list(response.messages))
        token = response.next_page_token
    return pages


def test_messages_are_looked_at_page_by_page_without_leasing_them(rpc: Rpc) -> None:
    queue = rpc.queue()
    ids = rpc.enqueue(queue, *(b"%d" % number for number in range(25)))

    pages = browse(rpc, queue, 10)

    found = [shown.message for page in pages for shown in page]
    assert [len(page) for page in pages] == [10, 10, 5]
    assert [message.id for message in found] == ids
    assert [message.payload for message in found] == [b"%d" % number for number in range(25)]
    assert rpc.stats(queue).in_flight == 0


def test_a_page_shows_what_state_a_message_is_in(rpc: Rpc) -> None:
    queue = rpc.queue()
    rpc.enqueue(queue, b"leased", b"ready")
    rpc.enqueue(queue, b"later", options=m.MessageOptions(delay_ms=60_000))
    rpc.lease(queue)

    [shown] = browse(rpc, queue)

    assert [(each.message.payload, each.state) for each in shown] == [
        (b"leased", a.MESSAGE_STATE_LEASED),
        (b"ready", a.MESSAGE_STATE_READY),
        (b"later", a.MESSAGE_STATE_DELAYED),
    ]
    assert [each.HasField("due_at") for each in shown] == [True, False, True]
    # Looking does not let anyone settle.
    assert not shown[0].message.HasField("delivery")


def test_a_dead_letter_is_shown_in_its_queue_only(rpc: Rpc) -> None:
    queue = rpc.queue()
    rpc.enqueue(queue, b"dead", b"alive")
    [message] = rpc.lease(queue).messages
    nack = s.NackRequest(queue=queue, message_id=message.id, error="bad", dead_letter=True)
    rpc.call(nack, s.NackResponse)

    [[alive]] = browse(rpc, queue)
    [[dead]] = browse(rpc, f"{queue}.dlq")

    assert alive.message.payload == b"alive"
    assert dead.message.payload == b"dead"
    assert dead.message.dead_letter.last_error == "bad"
    assert dead.message.metadata.attempt_count == 1


def test_pages_of_large_messages_stay_within_what_clients_accept(rpc: Rpc) -> None:
    queue = rpc.queue()
    rpc.enqueue(queue, *([bytes(400_000)] * 10))

    pages = browse(rpc, queue)

    assert sum(map(len, pages)) == 10
    assert max(map(len, pages)) == 3


def test_a_page_token_that_was_not_given_out_is_refused(rpc: Rpc) -> None:
    request = a.BrowseRequest(queue=rpc.queue(), page_token="-1")

    with pytest.raises(RefusedError, match="INVALID_ARGUMENT"):
        rpc.call(request, a.BrowseResponse)


def test_settings_that_are_not_named_stay(rpc: Rpc) -> None:
    queue = rpc.queue(max_attempts=7, max_depth=9)
    config = a.QueueConfig(max_depth=0, visibility_timeout_ms=5000)

    updated = rpc.call(a.UpdateQueueRequest(queue=queue, config=config), a.UpdateQueueResponse)
    found = rpc.call(a.GetQueueRequest(queue=queue), a.GetQueueResponse)

    assert updated.config == found.config
    assert found.dead_letter_queue == f"{queue}.dlq"
    assert (found.config.max_attempts, found.config.max_depth) == (7, 0)
    assert found.config.visibility_timeout_ms == 5000
    assert found.config.retry_backoff == 2.0


def test_a_paused_queue_delivers_nothing_until_it_is_resumed(rpc: Rpc) -> None:
    queue = rpc.queue()
    rpc.call(a.PauseQueueRequest(queue=queue), a.PauseQueueResponse)
    rpc.enqueue(queue, b"x")

    assert rpc.stats(queue).paused
    assert not rpc.lease(queue).messages
    rpc.call(a.ResumeQueueRequest(queue=queue), a.ResumeQueueResponse)
    assert rpc.lease(queue).messages


def test_a_purge_takes_what_waits_and_on_request_what_is_leased(rpc: Rpc) -> None:
    queue = rpc.queue()
    rpc.enqueue(queue, b"a", b"b", b"c")
    rpc.lease(queue)

    waiting = rpc.call(a.PurgeQueueRequest(queue=queue), a.PurgeQueueResponse)
    everything = rpc.call(
        a.PurgeQueueRequest(queue=queue, include_leased=True), a.PurgeQueueResponse
    )

    assert (waiting.purged, everything.purged) == (2, 1)
    assert rpc.stats(queue).depth == 0


def test_one_message_is_removed_and_not_twice(rpc: Rpc) -> None:
    queue = rpc.queue()
    first, _ = rpc.enqueue(queue, b"a", b"b")
    request = a.RemoveMessageRequest(queue=queue, message_id=first)

    rpc.call(request, a.RemoveMessageResponse)

    with pytest.raises(RefusedError, match="NOT_FOUND"):
        rpc.call(request, a.RemoveMessageResponse)
    assert [message.payload for message in rpc.lease(queue, 9).messages] == [b"b"]


def test_a_delayed_message_is_moved_to_now(rpc: Rpc) -> None:
    queue = rpc.queue()
    [later] = rpc.enqueue(queue, b"x", options=m.MessageOptions(delay_ms=3_600_000))
    move = a.RescheduleRequest(queue=queue, message_id=later, delay_ms=0)

    rpc.call(move, a.RescheduleResponse)

    assert rpc.lease(queue, wait_ms=5000).messages[0].id == later
    with pytest.raises(RefusedError, match="INVALID_ARGUMENT"):
        rpc.call(a.RescheduleRequest(queue=queue, message_id=later), a.RescheduleResponse)


def test_stats_show_each_key(rpc: Rpc) -> None:
    queue = rpc.queue()
    rpc.enqueue(queue, b"a", b"b", options=m.MessageOptions(fairness_key="acme", weight=3))
    rpc.enqueue(queue, b"c")
    rpc.lease(queue)

    stats = rpc.stats(queue)

    found = {key.key: key for key in stats.per_key_stats}
    assert set(found) == {"acme", "default"}
    assert (stats.depth, stats.ready, stats.in_flight, stats.key_count) == (3, 2, 1, 2)
    assert found["acme"].weight == 3
    assert sum(key.delivered for key in found.values()) == 1


def test_a_setting_that_is_not_there_is_said_not_to_be(rpc: Rpc) -> None:
    missing = rpc.call(a.GetConfigRequest(key="missing"), a.GetConfigResponse)
    deleted = rpc.call(a.DeleteConfigRequest(key="missing"), a.DeleteConfigResponse)

    assert (missing.value, missing.found, deleted.found) == ("", False, False)


def test_health_knows_the_whole_and_its_parts(rpc: Rpc) -> None:
    health = health_pb2_grpc.HealthStub(rpc.channel)

    for service in ("", "fila.v1.FilaService", "fila.v1.FilaAdmin", "fila.storage"):
        request = health_pb2.HealthCheckRequest(service=service)
        found = health.Check(request, timeout=10)
        assert found.status == health_pb2.HealthCheckResponse.SERVING


def test_reflection_lists_the_services_and_describes_them(rpc: Rpc) -> None:
    stub = reflection_pb2_grpc.ServerReflectionStub(rpc.channel)
    wanted = [
        reflection_pb2.ServerReflectionRequest(list_services=""),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol="fila.v1.FilaService"),
    ]

    services, file = stub.ServerReflectionInfo(iter(wanted), timeout=10)

    names = {service.name for service in services.list_services_response.service}
    described = [
        FileDescriptorProto.FromString(data)
        for data in file.file_descriptor_response.file_descriptor_proto
    ]
    assert {"fila.v1.FilaService", "fila.v1.FilaAdmin", "grpc.health.v1.Health"} <= names
    assert "fila/v1/service.proto" in {each.name for each in described}
