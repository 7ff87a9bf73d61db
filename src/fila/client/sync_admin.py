"""The admin calls of the synchronous client."""

from collections.abc import Iterator
from datetime import datetime
from typing import Unpack

from fila.client import views
from fila.client.admin import AsyncAdmin
from fila.client.explanation import Explanation
from fila.client.portal import portal


class Admin:
    """Queues, runtime configuration, and a look at what is there: `client.admin`."""

    def __init__(self, admin: AsyncAdmin) -> None:
        self._admin = admin

    def create_queue(self, name: str, **options: Unpack[views.QueueOptions]) -> None:
        """Create a queue and its dead-letter queue."""
        portal().call(self._admin.create_queue, name, **options)

    def update_queue(
        self, name: str, **options: Unpack[views.QueueOptions]
    ) -> views.QueueDescription:
        """Change the settings that are given; the others stay as they are."""
        return portal().call(self._admin.update_queue, name, **options)

    def delete_queue(self, name: str, *, keep_dead_letters: bool = False) -> None:
        """Delete a queue and all in it; refused over dead letters if they are to be kept."""
        portal().call(self._admin.delete_queue, name, keep_dead_letters=keep_dead_letters)

    def list_queues(self) -> list[views.QueueInfo]:
        """All queues."""
        return portal().call(self._admin.list_queues)

    def get_queue(self, name: str) -> views.QueueDescription:
        """A queue's settings."""
        return portal().call(self._admin.get_queue, name)

    def stats(self, name: str) -> views.QueueStats:
        """What a queue holds and how it is served."""
        return portal().call(self._admin.stats, name)

    def purge_queue(self, name: str, *, include_leased: bool = False) -> int:
        """Remove what waits, on request also what is leased; how many were removed."""
        return portal().call(self._admin.purge_queue, name, include_leased=include_leased)

    def pause_queue(self, name: str) -> None:
        """Stop deliveries; everything else goes on."""
        portal().call(self._admin.pause_queue, name)

    def resume_queue(self, name: str) -> None:
        """Go on delivering."""
        portal().call(self._admin.resume_queue, name)

    def redrive(self, dlq: str, count: int = 0) -> int:
        """Move waiting dead letters back to where they came from, oldest first; how many moved.

        A count of 0 means all that wait now. The call lasts until it is done, however long that is.
        """
        return portal().call(self._admin.redrive, dlq, count)

    def remove_message(self, queue: str, message_id: str) -> None:
        """Remove one waiting message."""
        portal().call(self._admin.remove_message, queue, message_id)

    def reschedule(
        self,
        queue: str,
        message_id: str,
        *,
        delay: float | None = None,
        deliver_at: datetime | None = None,
    ) -> None:
        """Move a delayed message to another time: seconds from now, or a moment."""
        portal().call(self._admin.reschedule, queue, message_id, delay=delay, deliver_at=deliver_at)

    def consumers(self, queue: str | None = None) -> list[views.ConsumerInfo]:
        """Who is connected, to one queue or to any."""
        return portal().call(self._admin.consumers, queue)

    def explain(
        self, queue: str, *, message_id: str | None = None, key: str | None = None
    ) -> Explanation:
        """Why a message, a fairness key, or anything of a queue is not delivered now."""
        return portal().call(self._admin.explain, queue, message_id=message_id, key=key)

    def browse(self, queue: str, *, page_size: int = 100) -> Iterator[views.BrowsedMessage]:
        """Look at a queue's messages without leasing them, in order of acceptance."""
        token = ""
        while True:
            page, token = self.browse_page(queue, page_size=page_size, page_token=token)
            yield from page
            if not token:
                return

    def browse_page(
        self, queue: str, *, page_size: int = 100, page_token: str = ""
    ) -> tuple[list[views.BrowsedMessage], str]:
        """One page, and the token of the next; an empty token is the last page's."""
        return portal().call(
            self._admin.browse_page, queue, page_size=page_size, page_token=page_token
        )

    def set_config(self, key: str, value: str) -> None:
        """Store a runtime setting."""
        portal().call(self._admin.set_config, key, value)

    def get_config(self, key: str) -> str | None:
        """A runtime setting, None where there is none."""
        return portal().call(self._admin.get_config, key)

    def list_config(self, prefix: str = "") -> dict[str, str]:
        """The runtime settings whose keys begin with the prefix."""
        return portal().call(self._admin.list_config, prefix)

    def delete_config(self, key: str) -> bool:
        """Delete a runtime setting; whether it was there."""
        return portal().call(self._admin.delete_config, key)
