"""Which Fila this is."""

from importlib.metadata import PackageNotFoundError, version


def installed_version() -> str:
    """The version of the installed distribution."""
    try:
        return version("fila-mq")
    except PackageNotFoundError:
        return "from source"
