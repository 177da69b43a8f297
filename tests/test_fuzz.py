"""Readers and cleaning against damaged dumps, each family for ABSTAG_FUZZ_SECONDS (see `make fuzz`)."""

import os
import time

import pytest
from hypothesis import HealthCheck, given, settings

from tests.fuzzing import FAMILIES, check, damaged, seeds

_SECONDS = float(os.environ.get("ABSTAG_FUZZ_SECONDS", "10"))
_ROUND = 200


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_no_dump_breaks_a_reader(family: str) -> None:
    for seed in seeds(family):
        check(family, seed)
    end, tried, found = time.monotonic() + _SECONDS, 0, list[bytes]()

    @settings(max_examples=_ROUND, suppress_health_check=list(HealthCheck))
    @given(damaged(family))
    def try_some(dump: bytes) -> None:
        nonlocal tried
        if time.monotonic() > end and not found:  # what was found is made smaller, be it late
            return
        found.append(dump)
        check(family, dump)
        found.remove(dump)
        tried += 1

    while time.monotonic() < end:
        try_some()
    assert tried
