"""How a checker says that the broker broke a promise."""


class ViolationError(AssertionError):
    """A promise was broken; `checker` names who noticed."""

    def __init__(self, checker: str, text: str) -> None:
        super().__init__(f"[{checker}] {text}")
        self.checker = checker


def require(condition: object, checker: str, *what: object) -> None:
    """Raise unless the condition holds; what is given is put into words only then."""
    if not condition:
        raise ViolationError(
            checker, " ".join(each if isinstance(each, str) else repr(each) for each in what)
        )
