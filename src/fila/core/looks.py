"""How much one look at the scheduler may cost: it is answered on the loop, between deliveries."""

# Lanes, keys, consumers and entries of lines that are looked at for one answer.
LOOKS_MAX = 4000


class Looks:
    """What is left to look at, and whether it has sufficed."""

    def __init__(self, left: int = LOOKS_MAX) -> None:
        self.left = left
        self.is_exact = True

    def take(self, count: int = 1) -> bool:
        """Look at so many more, if that is within bounds."""
        if count > self.left:
            self.is_exact = False
            return False
        self.left -= count
        return True
