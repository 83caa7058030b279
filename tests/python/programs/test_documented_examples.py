"""What the examples of PyTorch's docstrings do, one subject a test."""

import datetime
import threading
import urllib.error

import pytest

import rushlight as torch


def test_a_hook_after_accumulation_may_return_anything():
    v = torch.tensor([0.0, 0.0, 0.0], requires_grad=True)
    handle = v.register_post_accumulate_grad_hook(lambda p: p.data.add_(p.grad, alpha=-1))
    v.backward(torch.tensor([1.0, 2.0, 3.0]))
    assert v.tolist() == [-1.0, -2.0, -3.0]
    handle.remove()


def test_asarray_without_gradient_leaves_the_graph():
    leaf = torch.ones(3, requires_grad=True)
    result = leaf * 2
    assert torch.asarray(result).grad_fn is result.grad_fn
    constant = torch.asarray(result, requires_grad=False)
    assert not constant.requires_grad and constant.grad_fn is None
    assert constant.data_ptr() == result.data_ptr()
    assert not torch.asarray(leaf, copy=True, requires_grad=False).requires_grad
    assert torch.asarray(leaf, requires_grad=None) is leaf and leaf.requires_grad
    assert torch.asarray(leaf, requires_grad=False) is leaf and not leaf.requires_grad


@pytest.mark.parametrize("driver", ["gelsy", "gelsd", "gelss"])
def test_least_squares_of_one_matrix_has_one_rank(driver):
    a, b = torch.randn(1, 4, 3), torch.randn(2, 4, 5)
    found = torch.linalg.lstsq(a, b, driver=driver)
    assert found.solution.shape == (2, 3, 5) and found.rank.shape == (1,)
    assert found.rank.tolist() == [3]
    if driver != "gelsy":
        torch.testing.assert_close(found.singular_values, torch.linalg.svdvals(a))


def test_flushing_denormal_numbers():
    tiny = torch.tensor([1e-310], dtype=torch.float64)
    try:
        if not torch.set_flush_denormal(True):
            pytest.skip("this processor cannot")
        assert (tiny * 2).item() == 0.0
    finally:
        torch.set_flush_denormal(False)
    assert (tiny * 2).item() == 2e-310
    with pytest.raises(TypeError, match="expects a bool"):
        torch.set_flush_denormal(1)


def test_names_of_reductions_of_sparse_products():
    a, b = torch.eye(3).to_sparse_csr(), torch.randn(3, 2)
    for short, name in (("max", "amax"), ("min", "amin")):
        assert torch.equal(torch.sparse.mm(a, b, short), torch.sparse.mm(a, b, name))


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (torch.linalg.svd, "linalg_svd"),
        (torch.fft.rfft, "fft_rfft"),
        (torch.special.expit, "special_expit"),
        (torch.nn.functional.gelu, "gelu"),
        (torch.exp, "exp"),
    ],
)
def test_errors_name_functions_as_pytorch_does(function, name):
    with pytest.raises(TypeError, match=rf"^{name}\(\) missing 1 required positional arguments"):
        function()
    with pytest.raises(TypeError, match=rf"^{name}\(\): argument .* must be Tensor, not int"):
        function(1)


def test_representations():
    assert "event_flag=1" in repr(torch.Event(enable_timing=True))
    assert "event_flag=0" in repr(torch.Event())
    s = torch.export.Dim("s")
    assert (repr(3 * s + 4), repr(s - 3), repr(2 * s)) == ("3*s + 4", "s - 3", "2*s")
    program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    assert repr(program).startswith("<") and str(program).startswith("ExportedProgram:")


@pytest.fixture
def numpy_sin():
    @torch.library.custom_op("documented::sin", mutates_args=())
    def sin(x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    return sin


def test_a_node_of_a_custom_operator_is_named_after_it(numpy_sin):
    numpy_sin.register_autograd(
        lambda ctx, grad: grad * ctx.saved_tensors[0].cos(),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    x = torch.randn(3, requires_grad=True)
    y = numpy_sin(x)
    assert y.grad_fn.name() == "GeneratedBackwardFor_documented_sin_defaultBackward"
    y.sum().backward()
    torch.testing.assert_close(x.grad, x.detach().cos())


def test_a_kernel_of_a_custom_operator_can_be_switched_off(numpy_sin, caplog):
    @numpy_sin.register_kernel("cpu")
    def _(x):
        return torch.full_like(x, 7.0)

    x = torch.zeros(1)
    assert numpy_sin(x).item() == 7.0
    with numpy_sin.set_kernel_enabled("cpu", enabled=False):
        assert numpy_sin(x).item() == 0.0
        with numpy_sin.set_kernel_enabled("cpu"):
            assert numpy_sin(x).item() == 7.0
        assert numpy_sin(x).item() == 0.0
    assert numpy_sin(x).item() == 7.0
    with numpy_sin.set_kernel_enabled("cuda"):
        assert "no kernel was registered for this device type" in caplog.text


def test_tags_of_custom_operators(numpy_sin):
    assert numpy_sin._opoverload.tags == [torch.Tag.pt2_compliant_tag]

    @torch.library.custom_op("documented::tagged", mutates_args=(), tags=torch.Tag.flexible_layout)
    def tagged(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    assert tagged._opoverload.tags == [torch.Tag.pt2_compliant_tag, torch.Tag.flexible_layout]
    assert repr(torch.Tag.core) == "<Tag.core: 0>" and str(torch.Tag.core) == "Tag.core"


def test_shapes_by_tensor():
    class Sum(torch.nn.Module):
        def forward(self, x, others):
            return x.sum() + others["a"][0].sum()

    x, y = torch.randn(4, 8), torch.randn(5, 2)
    batch = torch.export.Dim("batch", max=64)
    shapes = torch.export.ShapesCollection()
    shapes[x] = {0: batch}
    args = (x, {"a": [y]})
    assert len(shapes) == 1 and shapes[x] == {0: batch}
    assert shapes.dynamic_shapes(Sum(), args) == {"x": {0: batch}, "others": {"a": [None]}}
    program = torch.export.export(Sum(), args, dynamic_shapes=shapes)
    longer = torch.randn(7, 8)
    torch.testing.assert_close(program.module()(longer, {"a": [y]}), longer.sum() + y.sum())
    with pytest.raises(AssertionError, match="do not match"):
        shapes[x] = {1: batch}
    with pytest.raises(AssertionError, match="non-tensor"):
        shapes[3] = {0: batch}
    shapes[torch.randn(2)] = {0: batch}
    with pytest.raises(ValueError, match="were not found in args"):
        shapes.dynamic_shapes(Sum(), args)


def test_registering_a_batching_rule_returns_nothing(numpy_sin):
    assert numpy_sin.register_vmap(lambda info, in_dims, x: (x.sin(), in_dims[0])) is None
    x = torch.randn(2, 3)
    torch.testing.assert_close(torch.vmap(numpy_sin)(x), x.sin())


def test_masked_functions_have_their_module():
    mask = torch.tensor([[True, False, True], [False, False, False]])
    given = torch.tensor([[-3, -2, -1], [0, 1, 2]])
    assert torch.masked._ops.sum is torch.masked.sum
    assert torch.masked._ops.sum(given, 1, mask=mask).tolist() == [-4, 0]


def test_default_backend_of_the_compiler():
    used = []

    def backend(module, example_inputs):
        used.append(module)
        return module.forward

    assert torch.compiler.get_default_backend() == "inductor"
    torch.compiler.set_default_backend(backend)
    try:
        assert torch.compiler.get_default_backend() is backend
        compiled = torch.compile(lambda x: x.sin() + 1, name="f", recompile_limit=3)
        torch.testing.assert_close(compiled(torch.zeros(2)), torch.ones(2))
        assert used
        with pytest.raises(RuntimeError, match="Invalid backend"):
            torch.compiler.set_default_backend("unheard of")
    finally:
        torch.compiler.set_default_backend(None)
    assert torch.compiler.get_default_backend() == "inductor"


def test_a_barrier_of_a_store():
    store = torch.distributed.HashStore()
    store.barrier("alone", 1)
    passed = []
    other = threading.Thread(target=lambda: (store.barrier("both", 2), passed.append(1)))
    other.start()
    assert not passed
    store.barrier("both", 2)
    other.join(10)
    assert passed
    with pytest.raises(torch.distributed.DistStoreError):
        store.barrier("missing", 2, datetime.timedelta(milliseconds=20))


def test_a_repository_without_a_connection(monkeypatch, tmp_path):
    def refuse(*args, **kwargs):
        raise urllib.error.URLError("no network")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    monkeypatch.setattr(torch.hub, "_hub_dir", str(tmp_path))
    with pytest.raises(RuntimeError, match="no internet connection"):
        torch.hub.list("owner/name", trust_repo=True)
    (tmp_path / "owner_name_master").mkdir()
    (tmp_path / "owner_name_master" / "hubconf.py").write_text("def entry():\n    return 1\n")
    assert "entry" in torch.hub.list("owner/name", trust_repo=True)


def test_events_and_statistics():
    from rushlight import monitor

    seen = []
    handle = monitor.register_event_handler(seen.append)
    try:
        every = (monitor.MEAN, monitor.COUNT, monitor.SUM, monitor.MAX, monitor.MIN)
        stat = monitor.Stat("loss", every, datetime.timedelta(seconds=100), 3)
        for value in (1, 5):
            stat.add(value)
        assert stat.count == 2 and stat.get()[monitor.SUM] == 0.0 and not seen
        stat.add(3)
        stat.add(100)  # the window is full
        assert stat.count == 0 and stat.get()[monitor.MEAN] == 3.0
        assert [e.name for e in seen] == [monitor.STAT_EVENT]
        assert seen[0].data == {
            "loss.mean": 3.0,
            "loss.count": 3.0,
            "loss.sum": 9.0,
            "loss.max": 5.0,
            "loss.min": 1.0,
        }
        short = monitor.Stat("short", [monitor.SUM], datetime.timedelta(0))
        short.add(1)
        short.add(2)
        assert seen[-1].data == {"short.sum": 1.0}
        del short
        assert seen[-1].data == {"short.sum": 2.0}
        written = []

        class Writer:
            def add_scalar(self, name, value, walltime):
                written.append((name, value))

        monitor.TensorboardEventHandler(Writer())(seen[-1])
        assert written == [("short.sum", 2.0)]
        with pytest.raises(TypeError, match="data holds strings and numbers"):
            monitor.Event("x", datetime.datetime.now(), {"a": [1]})
    finally:
        monitor.unregister_event_handler(handle)
    count = len(seen)
    monitor.log_event(monitor.Event("x", datetime.datetime.now(), {"a": 1}))
    assert len(seen) == count


def test_sizes_that_differ_between_examples_are_dynamic():
    class Scales(torch.nn.Module):
        def forward(self, x, y, n=2):
            return (x["a"] * n).sum(0) + y

    given = {"a": torch.ones(4, 3)}, torch.ones(3)
    more = torch.export.AdditionalInputs()
    more.add(({"a": torch.ones(5, 3)}, torch.ones(3)))
    more.add(({"a": torch.ones(9, 3)}, torch.ones(3)))
    dynamic = torch.export.Dim.DYNAMIC
    assert more.dynamic_shapes(Scales(), given) == {"x": {"a": (dynamic, None)}, "y": (None,)}
    program = torch.export.export(Scales(), given, dynamic_shapes=more)
    assert program.module()({"a": torch.ones(7, 3)}, torch.ones(3)).tolist() == [15, 15, 15]
    more.verify(program)
    more.add(({"a": torch.ones(5, 4)}, torch.ones(4)))
    with pytest.raises(AssertionError):
        more.verify(program)
    other = torch.export.AdditionalInputs()
    other.add((*given, 3))
    with pytest.raises(ValueError, match="differing values"):
        other.dynamic_shapes(Scales(), (*given, 2))
    with pytest.raises(AssertionError, match="must be a tuple"):
        other.add([torch.ones(1)])
