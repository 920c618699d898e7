"""Measures planning: how long 50,000 partitions take, in one process. Aim: under 2 s.

python -m benchmarks.plan [PARTITIONS]
"""

from __future__ import annotations

import sys
import time
from random import Random
from uuid import UUID

from twinlog.model.budget import Budget
from twinlog.model.lanes import lane_of
from twinlog.model.offsets import PartitionPair
from twinlog.model.plan import Partitions, plan
from twinlog.model.positions import Position

LANES, TASKS = 64, 16


def estate(partitions: int) -> Partitions:
    random = Random(3)
    pairs, positions, starts, ends, sizes = [], [], [], [], []
    for number in range(partitions):
        topic = number // 50
        source, target = UUID(int=2 * topic), UUID(int=2 * topic + 1)
        pairs.append(PartitionPair(f"t{topic}", source, f"nyc.t{topic}", target, number % 50))
        start = random.randrange(10**9)
        starts.append(start)
        offset = start + random.randrange(-10, 1000)
        positions.append(Position(offset, source, target, -1, 0, offset))
        ends.append(start + 1000 + int(random.paretovariate(0.7) * 100))
        sizes.append(random.uniform(50, 5000))
    return Partitions(pairs, positions, starts, ends, [0] * partitions, sizes)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    partitions = estate(count)
    print(f"{'budget':<14}{'partitions':>12}{'ranges':>10}{'seconds':>10}{'CPU':>8}{'heaviest task / mean':>24}")
    for name, budget in (("none", Budget()), ("4 GiB", Budget(bytes=4 * 1024**3))):
        began, began_cpu = time.perf_counter(), time.process_time()
        planned = plan(partitions, lambda pair: lane_of(pair.target, LANES), TASKS, budget)
        seconds, cpu = time.perf_counter() - began, time.process_time() - began_cpu
        weights = [task.bytes for task in planned.tasks]
        ranges = sum(len(task.ranges) for task in planned.tasks)
        balance = max(weights) * len(weights) / sum(weights)
        print(f"{name:<14}{count:>12,}{ranges:>10,}{seconds:>10.2f}{cpu:>8.2f}{balance:>24.3f}")


if __name__ == "__main__":
    main()
