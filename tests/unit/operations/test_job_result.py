from __future__ import annotations

from pathlib import Path

import pytest

from twinlog.errors import ClusterUnreachableError
from twinlog.model.findings import Finding, FindingKind
from twinlog.model.offsets import TopicPartition
from twinlog.operations.job_result import read_result, write_result
from twinlog.operations.mirror_result import CopyResult

WELL = CopyResult("nyc->lon", "r", partitions=2, topics={"orders": "nyc.orders"}, as_of_ms=5)
ILL = CopyResult("nyc->lon", "r", findings=(Finding(FindingKind.TRUNCATED, TopicPartition("orders", 0), 7, "cut"),))


def test_a_result_comes_back_as_it_was(tmp_path: Path) -> None:
    for number, (result, well) in enumerate(((WELL, True), (ILL, False))):
        file = tmp_path / str(number)
        assert write_result(file, lambda result=result: result) is well
        assert read_result(file) == result


def test_an_error_comes_back_as_an_error_of_its_kind(tmp_path: Path) -> None:
    def copy() -> CopyResult:
        raise ClusterUnreachableError("lon is away")

    assert write_result(tmp_path / "result", copy) is False
    with pytest.raises(ClusterUnreachableError, match=r"^lon is away$"):
        read_result(tmp_path / "result")


def test_a_process_that_ended_before_it_could_say_anything_has_no_result(tmp_path: Path) -> None:
    assert read_result(tmp_path / "result") is None
