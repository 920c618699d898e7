from __future__ import annotations

from pathlib import Path
from random import Random

from support.histories import history, rows, some_id
from twinlog.ledger.chain import Mark
from twinlog.ledger.pairs import recorded_pairs
from twinlog.ledger.store import Ledger
from twinlog.model.offsets import PartitionPair


def test_each_pair_is_found_once_whatever_the_order_of_its_rows(tmp_path: Path) -> None:
    random = Random(5)
    ids = [some_id(random) for _ in range(4)]
    pairs = [
        PartitionPair("t", source, "nyc.t", target, number)
        for source in ids[:2]
        for target in ids[2:]
        for number in (0, 3)
    ]
    entries = [entry for pair in pairs for entry in history(random, pair, 300).entries]
    random.shuffle(entries)
    ledger = Ledger(str(tmp_path), "nyc", "lon")
    assert recorded_pairs(ledger) == ([], 0)
    ledger.append(rows(entries), Mark(), Mark("journal", {0: 1}))

    found, count = recorded_pairs(ledger)

    assert count == len(entries)
    assert len(found) == len(pairs)
    assert set(found) == set(pairs)
