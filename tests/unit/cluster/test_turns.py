from __future__ import annotations

from collections.abc import Iterator

import pytest
from kafka.net.selector import NetworkSelector

from twinlog.cluster.connections import event_loop
from twinlog.cluster.turns import Turns


@pytest.fixture
def loop() -> Iterator[NetworkSelector]:
    found = event_loop()
    yield found
    found.close()


@pytest.mark.parametrize("waits", [[0.03, 0.0, 0.02, 0.0, 0.01], [0.0] * 5, [0.01] * 5])
def test_nobody_is_overtaken_however_long_each_waits(loop: NetworkSelector, waits: list[float]) -> None:
    turns, sent = Turns(), list[int]()

    async def send(number: int) -> None:
        await turns.take()
        await loop.sleep(waits[number])
        turns.give()
        # Right behind it, as a request is: nothing is waited for in between.
        sent.append(number)

    async def everybody() -> None:
        for number in range(len(waits)):
            loop.call_soon(send(number))
        while len(sent) < len(waits):
            await loop.sleep(0.001)

    loop.run(everybody())

    assert sent == list(range(len(waits)))
    assert not turns.taken


def test_whoever_comes_while_the_next_is_let_in_waits_behind_it(loop: NetworkSelector) -> None:
    turns, order = Turns(), list[str]()

    async def go(name: str) -> None:
        if turns.taken:
            await turns.take()
            turns.give()
        order.append(name)

    async def everybody() -> None:
        await turns.take()
        loop.call_soon(go("second"))
        await loop.sleep(0.01)
        turns.give()
        assert turns.taken
        loop.call_soon(go("third"))
        while len(order) < 2:
            await loop.sleep(0.001)

    loop.run(everybody())

    assert order == ["second", "third"]
