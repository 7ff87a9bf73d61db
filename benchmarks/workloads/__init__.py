"""The workloads of the benchmarks, by the number under which they are demanded."""

from collections.abc import Callable, Iterator

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.workloads import (
    backlog,
    hooks,
    idle,
    isolation,
    keys,
    latency,
    limits,
    throughput,
)

Workload = Callable[[Bench], Iterator[Figure]]

# In the order of the table. One function may bring the figures of two.
WORKLOADS: dict[str, Workload] = {
    "W1": throughput.enqueue,
    "W2": throughput.enqueue_batches,
    "W3": throughput.consume,
    "W4": throughput.together,
    "W5": latency.enqueue_to_delivery,
    "W6": keys.many_against_one,
    "W7": hooks.with_a_script,
    "W8": limits.buckets,
    "W9": isolation.quiet_beside_noisy,
    "W10": keys.cardinality,
    "W11": backlog.depth_and_restart,
    "W12": backlog.depth_and_restart,
    "W13": idle.empty_broker,
}
