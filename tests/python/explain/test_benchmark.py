"""utils.benchmark, utils.collect_env, __config__."""

import threading

import pytest

import rushlight as torch
from rushlight.utils import collect_env, throughput_benchmark
from rushlight.utils.benchmark import (
    Compare,
    FuzzedParameter,
    FuzzedTensor,
    Fuzzer,
    Measurement,
    ParameterAlias,
    TaskSpec,
    Timer,
    select_unit,
    trim_sigfig,
    unit_to_english,
)


def measurements(lib):
    def make(times, sub_label, description, threads=1):
        spec = lib.TaskSpec(
            "x+y", "", label="add", sub_label=sub_label, description=description, num_threads=threads
        )
        return lib.Measurement(100, times, spec, None)

    return [
        make([0.0012, 0.00121, 0.00119, 0.0015], "small", "new"),
        make([0.0112, 0.01121, 0.01119], "large", "new", 2),
        make([0.0022, 0.00221, 0.00219], "small", "old"),
        make([0.0022, 0.0042, 0.0012, 0.0062], "odd", "old"),
    ]


def test_tables_and_texts_are_pytorchs():
    import rushlight.utils.benchmark as ours

    theirs = pytest.importorskip("torch.utils.benchmark")
    for mine, other in zip(measurements(ours), measurements(theirs)):
        assert repr(mine).split("\n")[1:] == repr(other).rstrip().split("\n")[1:]
        for name in ("median", "mean", "iqr"):
            assert getattr(mine, name) == pytest.approx(getattr(other, name), rel=1e-12), name
        assert mine.significant_figures == other.significant_figures
        assert (mine.has_warnings, mine.title, mine.as_row_name) == (
            other.has_warnings,
            other.title,
            other.as_row_name,
        )
    for change in (lambda c: None, lambda c: c.trim_significant_figures(), lambda c: c.colorize()):
        tables = [lib.Compare(measurements(lib)[:3]) for lib in (ours, theirs)]
        for table in tables:
            change(table)
        assert str(tables[0]) == str(tables[1])


def test_timers_measure():
    seen = []
    timer = Timer(
        "calls.append(torch.get_num_threads())", globals={"calls": seen}, num_threads=1, label="one"
    )
    before = torch.get_num_threads()
    result = timer.timeit(20)
    assert len(seen) == 22 and set(seen) == {1} and torch.get_num_threads() == before
    assert result.number_per_run == 20 and result.median > 0 and result.num_threads == 1
    blocks = []
    ranged = timer.blocked_autorange(callback=lambda number, time: blocks.append(number), min_run_time=0.02)
    assert sum(ranged.raw_times) >= 0.02 and len(ranged.raw_times) == len(blocks)
    adaptive = timer.adaptive_autorange(threshold=0.5, max_run_time=0.1)
    assert adaptive.median > 0
    slow, quick = (
        Timer(f"for _ in range({n}): pass").blocked_autorange(min_run_time=0.02) for n in (20000, 10)
    )
    assert slow.median > 20 * quick.median
    with pytest.raises(ZeroDivisionError):
        Timer("1 / 0").timeit(1)
    with pytest.raises(NotImplementedError, match="cpp_extension"):
        Timer("x", language="c++")
    with pytest.raises(ValueError):
        Compare([1])


def test_merging_and_units():
    first, second = (Measurement(n, [0.1 * n], TaskSpec("x", "")) for n in (1, 10))
    assert Measurement.merge([first, second])[0].times == pytest.approx([0.1, 0.1])
    assert select_unit(2e-5) == ("us", 1e-6) and unit_to_english("ms") == "millisecond"
    assert trim_sigfig(123.456, 2) == 120 and trim_sigfig(0, 2) == 0


def test_fuzzers():
    fuzzer = Fuzzer(
        parameters=[
            FuzzedParameter("n", 4, 64, distribution="loguniform"),
            FuzzedParameter("m", distribution={ParameterAlias("n"): 0.5, 8: 0.5}),
            FuzzedParameter("step", distribution={1: 0.5, 3: 0.5}),
            FuzzedParameter("dim", 1, 2, distribution="uniform"),
        ],
        tensors=[
            FuzzedTensor("x", size=("n", "m"), steps=("step",), min_elements=32, probability_contiguous=0.3),
            FuzzedTensor("y", size=("n", 5), dim_parameter="dim", dtype=torch.int64),
        ],
        constraints=[lambda n, **rest: n != 16],
        seed=0,
    )
    drawn = list(fuzzer.take(40))
    for tensors, facts, params in drawn:
        assert tensors["x"].shape == (params["n"], params["m"]) and tensors["x"].numel() >= 32
        assert tensors["y"].shape == (params["n"], 5)[: params["dim"]] and tensors["y"].dtype == torch.int64
        assert params["n"] != 16 and facts["x"]["is_contiguous"] == tensors["x"].is_contiguous()
    assert {facts["x"]["is_contiguous"] for _, facts, _ in drawn} == {True, False}
    assert 0 < fuzzer.rejection_rate < 1
    assert [p for _, _, p in fuzzer.take(3)] == [p for _, _, p in drawn[:3]]
    with pytest.raises(ValueError, match="Duplicate"):
        Fuzzer([FuzzedParameter("x", 1, 2, "uniform")], [FuzzedTensor("x", (1,))])
    with pytest.raises(AssertionError, match="normalized"):
        FuzzedParameter("x", distribution={1: 0.5})


def test_facts_of_the_build_and_the_machine(capsys):
    collect_env.main()
    text = capsys.readouterr().out
    for fact in (
        "PyTorch version: " + torch.__version__,
        "OS: ",
        "Python version: ",
        "CPU: ",
        "CUDA available: False",
    ):
        assert fact in text
    assert "CPU capability usage" in torch.__config__.show()
    assert str(torch.get_num_threads()) in torch.__config__.parallel_info()


def test_throughput_of_threads(tmp_path):
    calls = []

    class Counted(torch.nn.Module):
        def forward(self, x, scale=1.0):
            calls.append((threading.get_ident(), torch.is_grad_enabled()))
            return x * scale

    bench = torch.utils.ThroughputBenchmark(Counted())
    with pytest.raises(RuntimeError, match="Please provide benchmark inputs"):
        bench.benchmark()
    bench.add_input(torch.ones(2))
    bench.add_input(torch.ones(3), scale=2.0)
    assert bench.run_once(torch.ones(1), scale=3.0).tolist() == [3.0]
    calls.clear()
    trace = tmp_path / "trace.json"
    stats = bench.benchmark(2, num_warmup_iters=3, num_iters=20, profiler_output_path=str(trace))
    assert stats.num_iters == 20 and len(calls) == 26 and len({thread for thread, _ in calls}) == 2
    assert not any(grad for _, grad in calls) and "aten::mul" in trace.read_text()
    assert stats.total_time_seconds * stats.iters_per_second == pytest.approx(20)
    assert str(stats).splitlines()[1] == "Total number of iterations: 20"


def test_throughput_of_what_fails():
    bench = torch.utils.ThroughputBenchmark(torch.nn.Linear(2, 1))
    bench.add_input(torch.ones(1, 3))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        bench.benchmark(num_calling_threads=3)


def test_times_have_the_unit_that_fits():
    theirs = pytest.importorskip("torch.utils.throughput_benchmark").format_time
    for given in ({"time_us": 1.5}, {"time_ms": 1.5}, {"time_s": 2.0}, {"time_ms": 2500.0}, {"time_s": 1e-6}):
        assert throughput_benchmark.format_time(**given) == theirs(**given)
    with pytest.raises(AssertionError):
        throughput_benchmark.format_time(time_us=1.0, time_s=1.0)
