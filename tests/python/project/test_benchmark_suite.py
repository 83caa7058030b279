"""benchmarks/: statistics of the paired runner, records, and a run of every row on small sizes."""

import json
import random
import statistics
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT))

from benchmarks import check, records, report, runner  # noqa: E402
from benchmarks.check import fell  # noqa: E402
from benchmarks.records import Record, Row, Suite  # noqa: E402
from benchmarks.stats import CONFIDENCE, format_value, geometric_mean, interval_rank, paired_ratio  # noqa: E402


def test_ratio_is_the_median_of_the_rounds():
    ratio = paired_ratio([1.0, 2.0, 4.0, 1.0, 1.0], [2.0, 4.0, 8.0, 3.0, 1.0])
    assert (ratio.value, ratio.low, ratio.high) == (2.0, 1.0, 3.0)
    assert ratio.noise == 0.5


def test_a_drift_that_hits_both_leaves_no_noise():
    ours = [1.0, 1.5, 2.0, 7.0, 3.0]
    ratio = paired_ratio(ours, [3 * sample for sample in ours])
    assert ratio.value == pytest.approx(3) and ratio.noise < 1e-12


@pytest.mark.parametrize("samples", [([], []), ([1.0], []), ([1.0], [1.0, 2.0])])
def test_samples_come_in_pairs(samples):
    with pytest.raises(ValueError, match="in pairs"):
        paired_ratio(*samples)


@pytest.mark.parametrize("count", [5, 7, 9, 15, 30])
def test_range_holds_the_median_as_often_as_stated(count):
    generator = random.Random(count)
    rank = interval_rank(count)
    held = 0
    for _ in range(4000):
        samples = sorted(generator.expovariate(1.0) for _ in range(count))
        held += samples[rank] <= 0.6931471805599453 <= samples[-1 - rank]
    assert CONFIDENCE - 0.015 < held / 4000
    if count >= 9:  # else it is all samples, which may be more than asked for
        assert held / 4000 < CONFIDENCE + 0.075


def test_few_samples_leave_out_none():
    assert [interval_rank(count) for count in range(1, 8)] == [0] * 7


def test_geometric_mean():
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4)
    assert geometric_mean(x for x in ()) != geometric_mean([1.0])


def test_values_get_fitting_units():
    shown = [format_value(value, "s") for value in (1.5, 2e-3, 45.6e-6, 7e-9, 1234.0)]
    assert shown == ["1.5 s", "2 ms", "45.6 µs", "7 ns", "1234 s"]
    assert format_value(1234.5, "MB") == "1234 MB"


def record(rows, **suite):
    return Record(1, machine={"cores": 2}, suites={"small": Suite(rows, {"date": "today", **suite})})


def test_a_record_survives_its_file(tmp_path):
    rows = {"add": Row("s", [1e-7, 1.25e-7], [2e-7, 3e-7]), "bad": Row(error="torch: no")}
    records.write(record(rows), tmp_path / "a.json")
    json.loads((tmp_path / "a.json").read_text())
    assert records.read(tmp_path / "a.json") == record(rows)
    assert [found.title for found in records.read_all(tmp_path)] == ["1 thread"]


def test_records_merge_row_by_row(tmp_path):
    old = record({"add": Row("s", [1.0], [1.0]), "mul": Row("s", [1.0], [1.0])})
    old.merge(record({"add": Row("s", [1.0], [2.0])}, clock="wall"))
    rows = old.suites["small"].rows
    assert rows["add"].ratio.value == 2 and rows["mul"].ratio.value == 1
    assert old.suites["small"].about["clock"] == "wall"


def test_a_failed_row_has_no_ratio():
    assert Row("s", [1.0], [1.0], error="no").ratio is None
    assert Row("s", [1.0], []).ratio is None


def test_other_formats_are_refused(tmp_path):
    (tmp_path / "a.json").write_text('{"format": 99}')
    with pytest.raises(ValueError, match="format 99"):
        records.read(tmp_path / "a.json")


@pytest.mark.parametrize(
    "options, text", [(["smal"], "no suite smal"), (["small", "--threads", "0"], "must be positive, got 0")]
)
def test_wrong_options_are_explained(options, text, capsys):
    from benchmarks.__main__ import parse

    with pytest.raises(SystemExit) as exit:
        parse([*options, "--solo"])
    assert exit.value.code == 2 and text in capsys.readouterr().err


def test_rows_that_fail_do_not_end_the_run(tmp_path, monkeypatch):
    """A worker that dies in the middle of a suite is replaced; its row says what happened."""
    from benchmarks.runner import Plan, Runner

    rows = {}
    plan = Plan(modules=("rushlight",), pairs=1, rounds=1, most_rounds=1, budget=0.0, tiny=True, timeout=60)
    runner = Runner(plan, lambda *row: None)
    with runner.workers("small") as workers:
        cases = [
            {"name": name, "process": "", "peak": False} for name in ("view/t", "view/view", "view/split")
        ]
        ask = workers[0].ask

        def dying(command, *arguments):
            if arguments == ("view/view",):
                workers[0].process.kill()
            return ask(command, *arguments)

        monkeypatch.setattr(workers[0], "ask", dying)
        runner._run_group(workers, "small", cases, lambda suite, name, row: rows.update({name: row}))
    assert "KeyError" in rows["view/t"].error  # there is no such row
    assert "ended with status -9" in rows["view/view"].error
    assert rows["view/split"].ours and not rows["view/split"].error


def test_compiled_programs_against_themselves(tmp_path):
    from benchmarks.__main__ import main

    path = tmp_path / "compiled.json"
    assert not main(["compiled", "--solo", "--tiny", "--filter", "compiled MLP", "--output", str(path)])
    rows = records.read(path).suites["compiled"].rows
    assert not any(row.error for row in rows.values())
    for mode in ("training", "inference"):
        assert rows[f"MLP/{mode}, compiled against as written"].ratio
        assert rows[f"MLP/{mode}, first call"].ours


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory):
    """Every row of every suite on Rushlight alone, with sizes that only show that it runs."""
    from benchmarks.__main__ import main

    path = tmp_path_factory.mktemp("benchmarks") / "tiny.json"
    status = main(["--solo", "--tiny", "--output", str(path)])
    return status, records.read(path)


def test_every_row_runs(tiny_run):
    status, record = tiny_run
    errors = {
        name: row.error for suite in record.suites.values() for name, row in suite.rows.items() if row.error
    }
    assert not errors
    assert status == 0
    for suite in record.suites.values():
        assert suite.rows and all(statistics.median(row.ours) > 0 for row in suite.rows.values())


def test_other_libraries_take_the_rows_that_they_have(tmp_path):
    """NumPy, which has none of the networks, in PyTorch's place; and each of our own rows alone."""
    from benchmarks.__main__ import main

    arguments = ["peers", "--tiny", "--output"]
    assert main([*arguments, str(tmp_path / "alone.json"), "--solo"]) == 0
    alone = records.read(tmp_path / "alone.json").suites["peers"].rows
    assert {"GPT/training", "digits, linear/to 95% held out", "sort/1e3"} <= set(alone)
    assert not any(row.error for row in alone.values())
    pytest.importorskip("torch", reason="the paired runner needs PyTorch")
    assert main([*arguments, str(tmp_path / "numpy.json"), "--filter", "NumPy.*(sort|solve)/1e3"]) == 0
    suite = records.read(tmp_path / "numpy.json").suites["peers"]
    assert set(suite.rows) == {"NumPy: sort/1e3", "NumPy: argsort/1e3", "NumPy: solve/1e3"}
    assert all(row.ratio for row in suite.rows.values()) and "NumPy" in suite.about["versions"]


def test_engines_run_the_files_that_are_exported(tmp_path):
    """Each engine's results are compared with the module's before it is timed."""
    from benchmarks.__main__ import main

    arguments = ["engines", "--tiny", "--filter", "(U-Net|BERT|GNMT)/batch 8", "--output"]
    assert main([*arguments, str(tmp_path / "alone.json"), "--solo"]) == 0
    alone = records.read(tmp_path / "alone.json").suites["engines"].rows
    assert len(alone) == 6 and not any(row.error for row in alone.values())
    pytest.importorskip("torch", reason="the paired runner needs PyTorch")
    pytest.importorskip("onnxruntime", reason="there is no engine to compare with")
    arguments[3] = "(U-Net|MobileNetV2 int8)/batch 8"
    assert main([*arguments, str(tmp_path / "both.json")]) == 0
    suite = records.read(tmp_path / "both.json").suites["engines"]
    assert suite.rows["ONNX Runtime: MobileNetV2 int8/batch 8"].ratio
    row, peak = "ONNX Runtime: U-Net/batch 8", "ONNX Runtime: U-Net/batch 8, peak memory"
    assert (
        suite.rows[row].ratio and suite.rows[peak].unit == "MB" and "ONNX Runtime" in suite.about["versions"]
    )


def noisy(generator, truth, count, noise):
    """Samples of a row whose true ratio is `truth`: both modules suffer, and sometimes one alone."""
    row = Row()
    for _ in range(count):
        machine = generator.lognormvariate(0, 3 * noise)
        row.ours.append(machine * generator.lognormvariate(0, noise))
        row.peer.append(machine * truth * generator.lognormvariate(0, noise))
        if generator.random() < 0.05:
            (row.ours if generator.random() < 0.5 else row.peer)[-1] *= 3
    return row


@pytest.mark.parametrize("count", [5, 15])
@pytest.mark.parametrize("noise", [0.01, 0.05, 0.2])
def test_noise_alone_is_no_fall(count, noise):
    generator = random.Random(7)
    rows = [(noisy(generator, 2.0, count, noise), noisy(generator, 2.0, count, noise)) for _ in range(3000)]
    share = sum(fell(recorded, now) for recorded, now in rows) / len(rows)
    assert share < 0.008  # what a second look squares
    if noise == 0.01:
        assert share < 0.001


@pytest.mark.parametrize("count", [5, 15])
def test_a_true_fall_is_found(count):
    generator = random.Random(11)
    rows = [(noisy(generator, 2.0, count, 0.03), noisy(generator, 1.5, count, 0.03)) for _ in range(1000)]
    assert sum(fell(recorded, now) for recorded, now in rows) > 700
    rises = [(now, recorded) for recorded, now in rows]
    assert not any(fell(recorded, now) for recorded, now in rises)


def test_small_falls_are_tolerated():
    quiet = [1.0, 1.001, 0.999, 1.0, 1.002]
    was, now = Row("s", quiet, [2.0] * 5), Row("s", quiet, [1.85] * 5)
    assert not fell(was, now) and fell(was, now, tolerance=0.05)


def test_wide_ranges_are_no_fall():
    assert not fell(
        Row("s", [1.0] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]), Row("s", [1.0] * 5, [0.5, 0.9, 1.0, 1.5, 2.0])
    )


def test_a_row_that_stopped_working_fell():
    works, fails = Row("s", [1.0], [1.0]), Row(error="rushlight: no")
    assert fell(works, fails) and not fell(fails, fails) and not fell(fails, works)


def test_check_names_the_rows_and_exits_with_1(tmp_path, capsys):
    quiet = [1.0] * 5
    was = {"add": Row("s", quiet, [2.0] * 5), "mul": Row("s", quiet, [2.0] * 5)}
    now = {
        "add": Row("s", quiet, [1.0] * 5),
        "mul": Row("s", quiet, [2.1] * 5),
        "new": Row("s", quiet, [0.1] * 5),
    }
    files = [tmp_path / "was.json", tmp_path / "now.json"]
    records.write(record(was), files[0])
    records.write(record(now), files[1])
    assert check.main(["--recorded", str(files[0]), "--new", str(files[1])]) == 1
    text = capsys.readouterr().out
    assert "3 rows compared" in text and "1 fell" in text
    assert "small add: ratio 1.00 (1.00 to 1.00), recorded 2.00" in text
    assert check.main(["--recorded", str(files[0]), "--new", str(files[0])]) == 0
    assert check.main(["--recorded", str(tmp_path / "none.json")]) == 2


def test_a_second_look_acquits(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    quiet = [1.0] * 5
    records.write(record({"add": Row("s", quiet, [2.0] * 5)}), tmp_path / "was.json")
    ratios, asked = [1.0, 2.0], []

    def measure(plan, suites, found, path, pattern, resume=False):
        asked.append((plan.rounds, suites, pattern.pattern))
        found.suites["small"] = Suite({"add": Row("s", quiet, [ratios[len(asked) - 1]] * 5)})

    monkeypatch.setattr(check, "measure", measure)
    assert check.main(["small", "--quick", "--recorded", str(tmp_path / "was.json")]) == 0
    assert asked[0][:2] == (5, ["small"]) and asked[1] == (10, ["small"], r"^small\ add$")
    asked.clear()
    ratios[1] = 1.0
    assert check.main(["small", "--quick", "--recorded", str(tmp_path / "was.json")]) == 1


@pytest.fixture
def two_records():
    quiet = [1.0] * 5
    rows = {
        "pointwise/add": Row("s", [1e-6] * 5, [2e-6] * 5),
        "pointwise/pow": Row("s", [2e-6] * 5, [1e-6, 1.1e-6, 1.2e-6, 0.9e-6, 1e-6]),
        "view/bad": Row(error="torch: a|b"),
    }
    models = {
        f"MLP/{kind}": Row("s", quiet, [1.5] * 5) for kind in ("training float32", "inference bfloat16")
    }
    suites = {
        "small": Suite(rows, {"date": "2030-01-02 03:04 UTC", "versions": {"torch": "9.9"}}),
        "models": Suite(models),
        "memory": Suite({"MLP/training float32": Row("MB", [100.0], [250.0])}),
        "cpp": Suite({"gate/view": Row("s", [5e-9])}),
    }
    machine = {"cores": 2, "processor": "an abacus", "memory_gb": 3, "python": "3.99"}
    return [Record(1, machine=machine, suites=suites), Record(2, busy=True, machine=machine, suites=suites)]


def test_page_shows_every_row_and_the_losses(two_records):
    text = report.page(two_records, [("", "plots/summary.svg")])
    assert (
        "**2 threads, busy cores**: 2 cores of an abacus; 3 GB; Python 3.99; torch 9.9; 2030-01-02." in text
    )
    summary = text.partition("## Summary\n")[2].partition("\n## ")[0]
    assert summary.count("| Small operations | 2 | 1.00 | 0.50 | 1 |") == 2  # one for each record
    assert "\n### 1 thread\n" in summary and "\n### 2 threads, busy cores\n" in summary
    assert "![Ratios of all rows by suite](plots/summary.svg)" in text
    losses = text.partition("## Where PyTorch is ahead")[2].partition("##")[0]
    assert "pointwise/pow | 1 thread | **0.50** (0.45 to 0.60) |" in losses and "torch: a\\|b" in losses
    assert "pointwise/add" not in losses
    assert "| pointwise/add | 1 µs | 2 µs | 2.00 (2.00 to 2.00) |" in text
    assert "| MLP/training float32 | 100 MB | 250 MB | 2.50" in text
    assert text.count("| row | Rushlight |\n") == 2  # no peer, no columns for it
    assert "| gate/view | 5 ns |" in text


def test_report_writes_the_page_and_its_plots(two_records, tmp_path):
    pytest.importorskip("matplotlib")
    for each in two_records:
        records.write(
            each, records.default_path(tmp_path / "recorded", each.threads, each.busy, each.capability)
        )
    command = ["--records", str(tmp_path / "recorded"), "--output", str(tmp_path / "page.md")]
    assert report.main(command) == 0
    drawn = sorted(path.name for path in (tmp_path / "page").iterdir())
    assert drawn == ["memory.svg", "models.svg", "small.svg", "summary.svg"]
    first = [(tmp_path / "page" / name).read_bytes() for name in drawn]
    assert report.main(command) == 0
    assert first == [(tmp_path / "page" / name).read_bytes() for name in drawn]  # no dates, no random names
    text = (tmp_path / "page.md").read_text()
    assert all(f"(page/{name})" in text for name in drawn)


def test_a_limit_reaches_both_modules_and_the_page(tmp_path):
    for limit, variables in runner.LIMITS.items():
        found = runner.environment(1, limit)
        assert found["RUSHLIGHT_CPU_CAPABILITY"] == limit and variables.items() <= found.items()
    assert "ATEN_CPU_CAPABILITY" not in runner.environment(1)
    row = Row("s", [1.0] * 5, [2.0] * 5)
    limited = Record(1, capability="avx2", machine={}, suites={"small": Suite({"add": row})})
    path = records.default_path(tmp_path, 1, False, "avx2")
    records.write(limited, path)
    assert path.name == "threads-1-avx2.json" and records.read(path) == limited
    records.write(Record(1, machine={}), records.default_path(tmp_path, 1, False))
    assert [record.title for record in records.read_all(tmp_path)] == ["1 thread", "1 thread, AVX2"]


def test_report_without_records(tmp_path, capsys):
    assert report.main(["--records", str(tmp_path)]) == 2
    assert "no records" in capsys.readouterr().err
