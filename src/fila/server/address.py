"""Whether the broker can listen where it is told to, and in plain words why not."""

import socket

from fila.errors import ConfigError
from fila.server.sources import split_address


def check_free(address: str) -> None:
    """Refuse an address that is taken, or not this machine's.

    gRPC would only say that it could not, and only after the data directory was opened.
    """
    host, port = split_address(address, "server.listen_addr")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, target = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(target)
    except UnicodeError as error:
        raise ConfigError(f"cannot listen on {address}: no host has such a name") from error
    except OSError as error:
        raise ConfigError(f"cannot listen on {address}: {error.strerror}") from error
