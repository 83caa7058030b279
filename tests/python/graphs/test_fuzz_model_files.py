"""A short run of tests/fuzz/model_files.py: mutated models give results or errors and end no process."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "fuzz"))
import model_files  # noqa: E402


def test_mutated_models_are_refused_or_run():
    counts, dead = model_files.fuzz(cases=600, seed=7)
    assert not dead
    assert sum(counts.values()) == 600
    assert counts["run"] and counts["refused when read"] and counts["refused when run"]
