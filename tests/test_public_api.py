"""What `import fila` offers is what it says it offers."""

import inspect

import fila
from fila import errors


def test_the_public_names_are_sorted_and_there() -> None:
    assert sorted(fila.__all__) == list(fila.__all__)
    assert not [name for name in fila.__all__ if not hasattr(fila, name)]


def test_the_public_names_are_complete() -> None:
    defined = {
        name
        for name, value in vars(fila).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }

    assert defined <= set(fila.__all__)


def test_every_error_is_public() -> None:
    tree = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.FilaError)
    }

    missing = {name for name in tree if not hasattr(fila, name) and not hasattr(fila.errors, name)}

    assert not missing


def test_public_names_have_docstrings() -> None:
    undocumented = [
        name
        for name in fila.__all__
        if (inspect.isclass(value := getattr(fila, name)) or inspect.isfunction(value))
        and not inspect.getdoc(value)
    ]

    assert not undocumented
