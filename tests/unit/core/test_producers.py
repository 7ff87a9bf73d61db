"""Which sequences of which producers were seen, and for how long that is remembered."""

from fila.core.producers import KEEP_NS, Producers
from fila.model import NS_PER_S, Outcome, ProducerSequence

_OUTCOME = Outcome(id_high=1, first_seq=1, count=1, at_ns=0)
_MINUTE_NS = 60 * NS_PER_S


def _key(sequence: int, producer: bytes = b"p") -> ProducerSequence:
    return ProducerSequence(producer, sequence)


def test_only_what_is_not_greater_than_all_before_may_be_a_repeat() -> None:
    producers = Producers()
    assert not producers.may_repeat(_key(5))
    producers.note(_key(5), _OUTCOME, 0)

    assert producers.may_repeat(_key(4))
    assert producers.may_repeat(_key(5))
    assert not producers.may_repeat(_key(6))
    assert not producers.may_repeat(_key(5, b"other"))


def test_a_sequence_that_was_overtaken_lowers_nothing() -> None:
    producers = Producers()
    producers.note(_key(5), _OUTCOME, 0)
    producers.note(_key(3), _OUTCOME, 1)

    assert producers.may_repeat(_key(5))


def test_an_outcome_is_known_here_until_the_pass_ends() -> None:
    producers = Producers()
    producers.note(_key(5), _OUTCOME, 0)
    assert producers.recent(_key(5)) == _OUTCOME

    producers.end_pass()

    assert producers.recent(_key(5)) is None


def test_a_producer_that_says_nothing_for_ten_minutes_is_forgotten() -> None:
    producers = Producers()
    producers.note(_key(5), _OUTCOME, 0)

    assert not list(producers.forget_old(KEEP_NS))
    assert list(producers.forget_old(KEEP_NS + 1)) == [(b"p", 5)]
    assert len(producers) == 0


def test_of_a_busy_producer_every_outcome_is_kept_ten_minutes_and_hardly_longer() -> None:
    producers = Producers()
    noted: dict[int, int] = {}
    forgotten = 0

    for second in range(3000):
        now_ns = second * NS_PER_S
        producers.note(_key(second), _OUTCOME, now_ns)
        noted[second] = now_ns
        for _, up_to in producers.forget_old(now_ns):
            assert now_ns - noted[up_to] > KEEP_NS
            forgotten = up_to
        oldest_kept = noted[min(forgotten + 1, second)]
        assert now_ns - oldest_kept <= KEEP_NS + 3 * _MINUTE_NS

    (producer,) = producers._producers.values()
    assert len(producer.marks) < 20
