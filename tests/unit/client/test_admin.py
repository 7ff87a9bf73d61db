"""Admin calls that can't be made are refused before anything is sent."""

from collections.abc import Awaitable, Callable

import pytest

import fila
from fila.client.admin import AsyncAdmin
from fila.errors import InvalidArgumentError

# What a file name that is not UTF-8 becomes on the command line.
BAD = "\udcff"


async def never(path: str, request: bytes, *, repeatable: bool, patient: bool = False) -> bytes:
    raise AssertionError(f"{path} was called with {request!r}, repeatable: {repeatable}")


@pytest.mark.parametrize(
    "call",
    [
        lambda admin: admin.create_queue(BAD),
        lambda admin: admin.update_queue(BAD),
        lambda admin: admin.delete_queue(BAD),
        lambda admin: admin.get_queue(BAD),
        lambda admin: admin.stats(BAD),
        lambda admin: admin.purge_queue(BAD),
        lambda admin: admin.pause_queue(BAD),
        lambda admin: admin.resume_queue(BAD),
        lambda admin: admin.remove_message("q", BAD),
        lambda admin: admin.reschedule("q", BAD, delay=1),
        lambda admin: admin.consumers(BAD),
        lambda admin: admin.browse_page(BAD),
        lambda admin: admin.browse_page("q", page_size=-1),
        lambda admin: admin.set_config("key", BAD),
        lambda admin: admin.get_config(BAD),
        lambda admin: admin.list_config(BAD),
        lambda admin: admin.delete_config(BAD),
    ],
)
async def test_what_can_not_travel_is_an_invalid_argument(
    call: Callable[[AsyncAdmin], Awaitable[object]],
) -> None:
    with pytest.raises(InvalidArgumentError, match="can't be sent"):
        await call(AsyncAdmin(never))


@pytest.mark.parametrize("addr", ["", " ", "\0", BAD])
def test_an_address_that_is_none_is_refused_at_once(addr: str) -> None:
    with pytest.raises(InvalidArgumentError, match="addr"):
        fila.Client(addr)
