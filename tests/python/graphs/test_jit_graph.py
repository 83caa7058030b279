"""The graph IR: its text, what it refuses, the passes over it, and the executor with its memory plan."""

import os
import subprocess
import sys
import threading

import pytest

import rushlight as torch
from rushlight import _C

HEAD = "rushlight graph 1\n"
MLP = (
    HEAD
    + """symbol N = 4 in [1, 64]
graph(%x: float32[N, 3]) {
  %w: float32[5, 3] = constant("w")
  %b: float32[5] = constant("b")
  %t = t(%w)
  %y = addmm(%b, %x, %t)  # model.py, line 3
  %n: int = sym::size(%y, 0)
  %m: int = sym::mul(%n, 5)
  %z = relu_(%y)
  %v = view(%z, [%m])
  %p = mul.Tensor(%v, 2)
  %q = mul.Tensor(%v, 2)
  %o = add.Tensor(%p, %q, alpha=0.5)
  %unused = exp(%o)
  return (out: %o)
}
"""
)


def constants():
    generator = torch.Generator().manual_seed(0)
    return {"w": torch.randn(5, 3, generator=generator), "b": torch.randn(5, generator=generator)}


def expected(x, c):
    return torch.relu(x @ c["w"].t() + c["b"]).view(-1) * 3


def body(*lines, inputs="%x: float32[2, 3]", result="%y"):
    return (
        HEAD
        + f"graph({inputs}) {{\n"
        + "".join(f"  {line}\n" for line in lines)
        + f"  return ({result})\n}}\n"
    )


def run(text, inputs, constants=None, **options):
    return _C._JitExecutor(text, constants or {}, **options).run(inputs)


# --- text -------------------------------------------------------------------------------------------


def test_text_prints_as_it_was_parsed():
    once = _C._JitGraph(MLP).text()
    assert _C._JitGraph(once).text() == once
    assert "# model.py, line 3" in once and "alpha=0.5" in once


@pytest.mark.parametrize(
    "call",
    [
        "full([2, 3], -inf, dtype=float64)",
        "clone(%x, memory_format=contiguous_format)",
        "sum.dim_IntList(%x, [0, -1], True)",
        'div.Tensor_mode(%x, 3, rounding_mode="floor")',
        "cat([%x, %x], -1)",
        "clamp(%x, -0.5, None)",
        'zeros([2, 3], dtype=float32, layout=strided, device="cpu")',
        "add.Tensor(%x, (1.0-2.5j))",
        "index.Tensor(%x, [None, %i])",
    ],
)
def test_every_kind_of_argument_survives_printing(call):
    text = body(f"%y = {call}", inputs="%x: float32[2, 3], %i: int64[2]")
    printed = _C._JitGraph(text).text()
    assert _C._JitGraph(printed).text() == printed
    x, i = torch.arange(6.0).view(2, 3), torch.tensor([2, 0])
    first, second = run(text, [x, i])[0], run(printed, [x, i])[0]
    assert first.dtype == second.dtype and torch.equal(first, second)


@pytest.mark.parametrize(
    "lines, message",
    [
        (["%y = nosuch(%x)"], "line 3: there is no operator 'nosuch'"),
        (["%y = relu(%z)"], "%z is not defined before"),
        (["%y = relu(%x)", "%y = relu(%x)"], "line 4: %y is defined twice"),
        (["%y = relu()"], "missing argument 'self'"),
        (["%y = relu(%x, %x)"], "too many positional arguments"),
        (["%y = relu(%x, self=%x)"], "is given twice"),
        (["%y = add.Tensor(%x, %x, beta=1)"], "no parameter is named 'beta'"),
        (['%y = relu("text")'], "'self' does not fit"),
        (["%y = sum.dim_IntList(%x, [0.5])"], "'dim' does not fit"),
        (["%y = view(%x, [%x])"], "'size' does not fit"),
        (["%y = clone(%x, memory_format=float32)"], "does not fit"),
        (["%y, %z = relu(%x)"], "fewer than 2 results"),
        (["%y: int = relu(%x)"], "another type"),
        (["%n: int = sym::pow(2, 3)", "%y = relu(%x)"], "no operator 'sym::pow'"),
        (["%n: int = sym::add(%x, 3)", "%y = relu(%x)"], "takes integers"),
        (["%y = add.Tensor(%x, 99999999999999999999)"], "out of range"),
        (['%y = constant("w)'], "a string without end"),
        (["%y = cat([[%x]])"], "numbers and values only"),
        (["%y = relu(%x) relu"], "expected the end of the line"),
        (["%y = @"], "no meaning"),
        (["%n: int = sym::size(%x, 0)", "%y = relu_(2)"], "must be a tensor"),
    ],
)
def test_bad_text_is_one_error_that_names_the_line(lines, message):
    with pytest.raises(ValueError, match="graph text, line") as caught:
        _C._JitGraph(body(*lines))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "rushlight graph 2\n",
        HEAD,
        HEAD + "graph(",
        HEAD + "graph(%x) {\n",
        HEAD + "graph(%x: float33) {\n return (%x)\n}",
        HEAD + "graph(%x: float32[M]) {\n return (%x)\n}",
        HEAD + "symbol N = 1 in [0, inf]\nsymbol N = 1 in [0, inf]\n",
        HEAD + "graph(%x: float32[0*N]) {\n return (%x)\n}",
        HEAD + f"graph(%x: float32[{', '.join(['1'] * 65)}]) {{\n return (%x)\n}}",
        MLP + "more",
    ],
)
def test_text_that_is_no_graph(text):
    with pytest.raises(ValueError, match="graph text, line"):
        _C._JitGraph(text)


def test_every_truncation_and_many_alterations_are_refused_or_parsed():
    text = MLP.encode()
    refused = 0
    for n in range(len(text)):
        altered = bytearray(text)
        altered[n] = 0x21 + (altered[n] * 7 + n) % 90
        for candidate in (text[:n], bytes(altered)):
            try:
                _C._JitGraph(candidate.decode())
            except ValueError as error:
                assert "graph text, line" in str(error)
                refused += 1
    assert refused > len(text)


# --- runs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plan_memory", [False, True])
def test_runs_repeat_and_sizes_may_change(plan_memory):
    c = constants()
    executor = _C._JitExecutor(MLP, c, plan_memory=plan_memory)
    for n in (4, 4, 1, 64, 4):
        x = torch.randn(n, 3)
        assert torch.equal(executor.run([x])[0], expected(x, c))
    assert executor.statistics()["planned_runs"] == (2 if plan_memory else 0)


def test_inputs_that_do_not_fit_say_what_the_graph_expects():
    executor = _C._JitExecutor(MLP, constants())
    for inputs, message in [
        ([], "expected 1 inputs, but got 0"),
        ([torch.randn(4, 3).double()], "its dtype must be float32"),
        ([torch.randn(4, 4)], "its size 1 must be 3"),
        ([torch.randn(3)], "it must have 2 dimensions"),
        ([torch.randn(65, 3)], "its size 0 must be N"),
    ]:
        with pytest.raises(ValueError, match="The model expects") as caught:
            executor.run(inputs)
        assert message in str(caught.value) and "x: float32[N, 3]" in str(caught.value)


def test_one_symbol_is_one_number():
    text = (
        HEAD
        + "symbol N = 2 in [1, inf]\n"
        + body("%y = add.Tensor(%x, 1)", inputs="%x: float32[2*N+1], %z: float32[N]").removeprefix(HEAD)
    )
    executor = _C._JitExecutor(text, {})
    assert executor.run([torch.zeros(5), torch.zeros(2)])[0].shape == (5,)
    with pytest.raises(ValueError, match="where N is 2 elsewhere"):
        executor.run([torch.zeros(5), torch.zeros(3)])
    with pytest.raises(ValueError, match=r"must be 2\*N\+1"):
        executor.run([torch.zeros(4), torch.zeros(2)])


def test_errors_name_the_node_and_its_source():
    text = body("%t = t(%x)", "%y = mm(%x, %x)  # model.py, line 7")
    with pytest.raises(RuntimeError, match=r"in the graph's mm, model.py, line 7"):
        run(text, [torch.randn(2, 3)])
    executor = _C._JitExecutor(MLP, constants())
    with pytest.raises(ValueError):
        executor.run([])
    assert executor.run([torch.ones(4, 3)])[0].shape == (20,)  # and goes on after errors


def test_constants_must_be_there_and_fit():
    with pytest.raises(ValueError, match="there is no constant 'w'"):
        _C._JitExecutor(MLP, {})
    with pytest.raises(ValueError, match=r"must be float32\[5, 3\]"):
        _C._JitExecutor(MLP, {**constants(), "w": torch.randn(3, 5)})


def test_writes_happen_in_order():
    text = body(
        "%c = clone(%x)",
        "%row = select.int(%c, 0, 0)",
        "%before = clone(%row)",
        "%w = fill_.Tensor(%row, 7)",
        "%s = add.Tensor(%c, %c)",
        result="%s, %before",
    )
    x = torch.randn(2, 3)
    for graph in (_C._JitGraph(text), _C._JitGraph(text).optimize({})[0]):
        total, before = run(graph, [x])
        assert torch.equal(total[0], torch.full((3,), 14.0)) and torch.equal(total[1], 2 * x[1])
        assert torch.equal(before, x[0])


def test_results_keep_no_gradients_and_inputs_stay():
    x = torch.randn(4, 3, requires_grad=True)
    kept = x.detach().clone()
    assert not _C._JitExecutor(MLP, constants()).run([x])[0].requires_grad
    assert torch.equal(x.detach(), kept)


# --- memory -----------------------------------------------------------------------------------------


def chain(length):
    lines = ["%v0 = add.Tensor(%x, 1)"]
    lines += [f"%v{i}: float32[64, 1024] = sin(%v{i - 1})" for i in range(1, length)]
    return body(*lines, inputs="%x: float32[64, 1024]", result=f"%v{length - 1}")


def test_a_chain_is_computed_in_place():
    executor = _C._JitExecutor(chain(6), {})
    x = torch.randn(64, 1024)
    expected = x + 1
    for _ in range(5):
        expected = torch.sin(expected)
    for _ in range(3):
        assert torch.equal(executor.run([x])[0], expected)
    statistics = executor.statistics()
    assert statistics["reused_operands"] == 15 and statistics["arena_bytes"] == 0


def test_the_arena_is_as_large_as_what_lives_together():
    lines = ["%a0 = matmul(%x, %x)"] + [f"%a{i} = matmul(%a{i - 1}, %x)" for i in range(1, 8)]
    executor = _C._JitExecutor(body(*lines, inputs="%x: float32[64, 64]", result="%a7"), {})
    x = torch.randn(64, 64) / 8
    first = executor.run([x])[0]
    assert executor.statistics()["arena_bytes"] == 2 * 64 * 64 * 4
    assert torch.equal(executor.run([x])[0], first)


def test_results_outlive_the_arena():
    executor = _C._JitExecutor(body("%a = matmul(%x, %x)", "%y = t(%a)", inputs="%x: float32[64, 64]"), {})
    x = torch.eye(64)
    kept = [executor.run([x * i])[0] for i in range(4)]
    del executor
    assert [float(k[3, 3]) for k in kept] == [0, 1, 4, 9]


COUNT_BLOCKS = """
import rushlight as torch
lines = ["%a0 = matmul(%x, %x)"] + [f"%a{i} = matmul(%a{i - 1}, %a{i - 1})" for i in range(1, 8)]
body = "".join(f"  {line}\\n" for line in lines)
text = "rushlight graph 1\\ngraph(%x: float32[1024, 1024]) {\\n" + body + "  return (%a7)\\n}\\n"
executor, x = torch._C._JitExecutor(text), torch.ones(1024, 1024)
for _ in range(4):
    executor.run([x])
print(torch.cpu.memory_stats()["allocated_bytes.peak"] // x.nbytes)
"""


def test_later_runs_allocate_nothing_but_their_results():
    alone = {**os.environ, "RUSHLIGHT_PREPARED_WEIGHTS": "0"}  # what kernels keep of a matrix is not counted
    program = [sys.executable, "-c", COUNT_BLOCKS]
    blocks = subprocess.run(program, capture_output=True, text=True, check=True, env=alone)
    assert int(blocks.stdout) == 4  # the input, two in the arena, the result


def test_threads_share_an_executor():
    c = constants()
    executor = _C._JitExecutor(MLP, c)
    failures = []

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        for n in (64, 32, 64, 64):
            x = torch.randn(n, 3, generator=generator)
            for _ in range(8):
                if not torch.equal(executor.run([x])[0], expected(x, c)):
                    failures.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures and executor.statistics()["runs"] == 4 * 4 * 8


# --- passes -----------------------------------------------------------------------------------------


def names(graph):
    return [
        line.split(" = ")[1].split("(")[0]
        for line in graph.text().splitlines()
        if " = " in line and "(" in line
    ]


def test_optimizing_merges_drops_and_frees_of_writes():
    c = constants()
    graph, kept = _C._JitGraph(MLP).propagate_shapes(c).optimize(c)
    assert names(graph) == ["constant", "constant", "t", "addmm", "sym::size", "sym::mul", "relu", "view",
                            "mul.Tensor", "add.Tensor"]  # fmt: skip
    x = torch.randn(7, 3)
    assert torch.equal(run(graph, [x], kept)[0], expected(x, c))


def test_shapes_are_found_for_all_sizes():
    text = _C._JitGraph(MLP).propagate_shapes(constants()).text()
    assert "%y: float32[N, 5]" in text and "%v: float32[5*N]" in text


def test_constants_are_folded():
    text = body('%w = constant("w")', "%s = sum.dim_IntList(%w, [0])", "%y = add.Tensor(%x, %s)")
    c = {"w": torch.randn(5, 3)}
    graph, kept = _C._JitGraph(text).optimize(c)
    assert names(graph) == ["constant", "add.Tensor"] and list(kept) == ["folded.s"]
    x = torch.randn(2, 3)
    assert torch.equal(run(graph, [x], kept)[0], x + c["w"].sum(0))


def test_writes_to_inputs_and_random_draws_stay():
    text = body(
        "%a = add_.Tensor(%x, 1)", "%r = rand_like(%x)", "%q = rand_like(%x)", "%y = sub.Tensor(%r, %q)"
    )
    graph, _ = _C._JitGraph(text).optimize({})
    x = torch.zeros(2, 3)
    assert run(graph, [x])[0].abs().max() > 0
    assert torch.equal(x, torch.ones(2, 3))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
def test_batch_norm_folds_into_the_convolution(bias, groups):
    torch.manual_seed(0)
    c = {
        "w": torch.randn(6, 4 // groups, 3, 3),
        "b": torch.randn(6),
        "gamma": torch.randn(6),
        "beta": torch.randn(6),
        "mean": torch.randn(6),
        "var": torch.rand(6) + 0.1,
    }
    offset = "%b" if bias else "None"
    reads = [f'%{name} = constant("{name}")' for name in c]
    text = body(
        *reads,
        f"%c = convolution(%x, %w, {offset}, [1, 1], [1, 1], [1, 1], False, [0, 0], {groups})",
        "%y, %m, %s = native_batch_norm(%c, %gamma, %beta, %mean, %var, False, 0.1, 1e-05)",
        inputs="%x: float32[2, 4, 8, 8]",
    )
    graph, kept = _C._JitGraph(text).optimize(c)
    assert names(graph) == ["constant", "constant", "convolution"] and len(kept) == 2
    x = torch.randn(2, 4, 8, 8)
    torch.testing.assert_close(run(graph, [x], kept)[0], run(text, [x], c)[0], rtol=1e-4, atol=1e-4)
