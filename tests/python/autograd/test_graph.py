"""autograd.graph, and what custom functions say when something is missing."""

import pytest

import rushlight
from rushlight.autograd.graph import get_gradient_edge

graph = rushlight.autograd.graph


def _leaf(n=2):
    return rushlight.ones(n, requires_grad=True)


def test_nodes():
    x = _leaf()
    y = (x * 2).sum()
    assert isinstance(y.grad_fn, graph.Node) and not isinstance(x, graph.Node)
    assert y.grad_fn.next_functions[0][0].name() == "MulBackward0"


def test_gradient_edges():
    x = _leaf()
    y = x * 3
    edge = graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn and edge.output_nr == 0
    assert graph.get_gradient_edge(x).node is y.grad_fn.next_functions[0][0]
    with pytest.raises(RuntimeError, match="does not require gradients"):
        graph.get_gradient_edge(rushlight.ones(1))


@pytest.mark.parametrize("mode", ["all", "any"])
def test_multi_grad_hook(mode):
    x, y, unused = _leaf(), _leaf(), _leaf()
    seen = []
    handle = graph.register_multi_grad_hook([x, y, unused], seen.append, mode=mode)
    for _ in range(2):
        (x * 2 + y * 3).sum().backward()
    assert len(seen) == 2
    if mode == "all":
        assert [None if g is None else g.tolist() for g in seen[0]] == [[2.0, 2.0], [3.0, 3.0], None]
    handle.remove()
    (x * y).sum().backward()
    assert len(seen) == 2
    with pytest.raises(ValueError, match="mode to be one of"):
        graph.register_multi_grad_hook([x], seen.append, mode="x")


def test_multi_grad_hook_with_inputs_out_of_reach():
    x, y, unused, seen = _leaf(), _leaf(), _leaf(), []
    handle = graph.register_multi_grad_hook([unused, x, y], lambda g: seen.append([t is not None for t in g]))
    for inputs in ([x, y], [unused], [unused, y]):
        (x * y).sum().backward(inputs=inputs)
    assert seen == [[False, True, True], [False, False, True]]
    handle.remove()


def test_hooks_on_saved_tensors():
    x, packed = _leaf(), []

    def pack(tensor):
        packed.append(tensor)
        return len(packed) - 1

    with graph.saved_tensors_hooks(pack, lambda i: packed[i] * 10):
        y = (x * x).sum()
    y.backward()
    assert len(packed) == 2 and x.grad.tolist() == [20.0, 20.0]
    with graph.save_on_cpu():
        z = (x * x).sum()
    z.backward()
    assert x.grad.tolist() == [22.0, 22.0]


def test_hooks_can_be_forbidden():
    @graph.disable_saved_tensors_hooks("not here")
    def run():
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            pass

    with pytest.raises(RuntimeError, match="not here"):
        run()
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        pass


def test_increment_version():
    x = _leaf()
    y = x * 2
    z = (y * y).sum()
    before = y._version
    graph.increment_version(y)
    assert y._version == before + 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def _functions(lib):
    class Nothing(lib.autograd.Function):
        pass

    class NoBackward(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 1

    class SavesNumber(NoBackward):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(3)
            return a * 1

    class TooMany(lib.autograd.Function):
        @staticmethod
        def forward(a):
            return a * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.count = len(inputs)

        @staticmethod
        def backward(ctx, grad):
            return grad, grad, grad

    class WrongShape(NoBackward):
        @staticmethod
        def backward(ctx, grad):
            return grad.new_ones(5)

    class Both(NoBackward):
        @staticmethod
        def backward(ctx, grad):
            return grad

        @staticmethod
        def vjp(ctx, grad):
            return grad

    return locals()


@pytest.mark.parametrize("name", ["Nothing", "NoBackward", "SavesNumber", "TooMany", "WrongShape", "Both"])
def test_messages_of_functions(name):
    torch = pytest.importorskip("torch")
    texts = []
    for lib in (rushlight, torch):
        with pytest.raises((RuntimeError, TypeError, NotImplementedError)) as info:
            _functions(lib)[name].apply(lib.ones(2, requires_grad=True)).sum().backward()
        texts.append((info.type, str(info.value)))
    assert texts[0] == texts[1]


def test_static_methods_refuse_clearly():
    function = rushlight.autograd.Function
    for method, args in (
        (function.vmap, (None, 1)),
        (function.jvp, (None, 1)),
        (function.setup_context, (None, 1, 2)),
    ):
        with pytest.raises(NotImplementedError):
            method(*args)


def test_vjp_serves_as_backward():
    class Double(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, a, factor=2):
            ctx.factor = factor
            return a * factor

        @staticmethod
        def vjp(ctx, grad):
            return grad * ctx.factor, None

    x = _leaf()
    Double.apply(x, 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    y = _leaf()
    Double.apply(a=y, factor=5).sum().backward()
    assert y.grad.tolist() == [5.0, 5.0]


def test_hooks_of_outputs_without_gradient_see_none():
    seen = []
    x = rushlight.ones(2, requires_grad=True)
    first, second = x.unbind()
    first.register_hook(seen.append)
    second.backward()
    assert seen == [None] and x.grad.tolist() == [0, 1]


def test_inputs_that_are_no_leaves_run_their_nodes_hooks():
    log = []
    a = rushlight.tensor(1.0, requires_grad=True)
    b = a.clone()
    b.grad_fn.register_prehook(lambda grads: log.append("node"))
    b.register_hook(lambda g: log.append("tensor"))
    b.sum().backward(inputs=(b,))
    assert log == ["tensor", "node"] and b.grad.item() == 1 and a.grad is None


def test_gradient_edges_as_outputs():
    x = rushlight.tensor([1.0, 2.0], requires_grad=True)
    scalar, vector = get_gradient_edge((x * x).sum()), get_gradient_edge(x * 3)
    assert rushlight.autograd.grad(scalar, x)[0].tolist() == [2, 4]
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        rushlight.autograd.grad(vector, x)
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        rushlight.autograd.grad(vector, x, grad_outputs=rushlight.ones(4))
    other = get_gradient_edge(rushlight.ones(1, requires_grad=True) * 1)
    with pytest.raises(RuntimeError, match="GradientEdge"):
        rushlight.autograd.grad((x * 3).sum(), (x, other), allow_unused=True, materialize_grads=True)


def test_hooks_of_a_leaf_run_in_order():
    x = rushlight.zeros(1, requires_grad=True)
    node = x.view_as(x).grad_fn.next_functions[0][0]
    x.register_hook(lambda grad: grad - 2)
    node.register_prehook(lambda grads: (grads[0] / 5,))
    x.register_post_accumulate_grad_hook(lambda leaf: leaf.grad.add_(0.5) and None)

    def last(grad_inputs, grad_outputs):  # the gradient that was accumulated, as hooks have changed it
        x.grad = grad_outputs[0] * 10

    node.register_hook(last)
    x.sum().backward()
    assert x.grad.item() == pytest.approx(((1 - 2) / 5 + 0.5) * 10)


def test_hooks_on_accumulated_gradients_return_nothing():
    x = rushlight.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda leaf: leaf.grad)
    with pytest.raises(RuntimeError, match="should return None"):
        x.sum().backward()


def test_a_hook_registered_while_the_node_runs():
    seen = []

    def unpack(tensor):
        def halve(grad_inputs, grad_outputs):
            seen.append(grad_outputs)
            return tuple(None if g is None else g / 2 for g in grad_inputs)

        rushlight._C._current_autograd_node().register_hook(halve)
        return tensor

    x = rushlight.ones(2, requires_grad=True)
    with rushlight.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        x.exp().sum().backward()
    rushlight.testing.assert_close(x.grad, x.detach().exp() / 2)
    assert seen == [(None,)]


def test_nodes_are_called_with_as_many_gradients_as_they_have_outputs():
    x = rushlight.ones(1, requires_grad=True)
    node = (x * 2).grad_fn
    for grads in ((), (x, x)):
        with pytest.raises(TypeError, match=f"expected 1 arguments, got {len(grads)} instead"):
            node(*grads)
    assert node(x.detach())[0].item() == 2


def test_questions_about_the_pass_that_runs():
    x = rushlight.ones(1, requires_grad=True)
    y = x.clone()
    leaf = y.grad_fn.next_functions[0][0]
    with pytest.raises(RuntimeError, match="expects an grad_fn"):
        rushlight._C._will_engine_execute_node(y)
    keeps = []
    handle = y.register_hook(
        lambda grad: keeps.append(rushlight._C._autograd._get_current_graph_task_keep_graph())
    )
    y.backward(retain_graph=True)
    y.backward()
    assert keeps == [True, False]
    handle.remove()
    z = x.clone()
    z.register_hook(lambda grad: rushlight._C._will_engine_execute_node(leaf) and None)
    with pytest.raises(RuntimeError, match="currently running autograd.grad"):
        rushlight.autograd.grad(z, x)


def test_any_hooks_count_passes_of_several_threads():
    import threading

    a, b = rushlight.rand(2, requires_grad=True), rushlight.rand(2, requires_grad=True)
    calls, lock = [], threading.Lock()
    start, between = threading.Barrier(4), threading.Barrier(4)

    def any_hook(grad):
        with lock:
            calls.append(rushlight._C._current_graph_task_id())

    a.register_hook(lambda grad: None if between.wait() is not None else grad)
    rushlight.autograd.graph.register_multi_grad_hook((a, b), any_hook, mode="any")
    out = (a * b).sum()

    def run():
        start.wait()
        rushlight.autograd.grad(out, (a, b), retain_graph=True)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == len(set(calls)) == 4


def test_backward_with_a_graph_warns_of_the_cycle():
    rushlight.set_warn_always(True)
    try:
        x = rushlight.ones(1, requires_grad=True)
        with pytest.warns(UserWarning, match="create_graph=True will create a reference cycle"):
            (x * x).backward(create_graph=True)
    finally:
        rushlight.set_warn_always(False)
        x.grad = None


def test_history_is_not_deleted():
    x = rushlight.ones(1, requires_grad=True).clone()
    for name in ("_grad_fn", "_backward_hooks"):
        with pytest.raises(RuntimeError, match="not allowed"):
            delattr(x, name)
    x._grad_fn = None
    assert x.is_leaf


def test_weak_references_and_cached_tensors():
    x = rushlight.ones(1)
    ref = rushlight._C._WeakTensorRef(x)
    rushlight._C._add_cached_tensor(x)
    assert not rushlight._C._is_cached_tensor(x)  # switched off
    rushlight._C._set_cached_tensors_enabled(True)
    rushlight._C._add_cached_tensor(x)
    assert rushlight._C._is_cached_tensor(x)
    rushlight._C._set_cached_tensors_enabled(False)
    assert not rushlight._C._is_cached_tensor(x) and not ref.expired()
    del x
    assert ref.expired()


@pytest.mark.parametrize("name", ["add", "mul", "div", "pow", "maximum", "atan2"])
def test_hooks_of_nodes_see_gradients_of_the_inputs_shapes(name):
    few, many = (rushlight.ones(sizes, requires_grad=True) for sizes in ((1,), (3, 2)))
    seen = []
    result = getattr(rushlight, name)(few, many)
    result.grad_fn.register_hook(lambda inputs, outputs: seen.extend(tuple(g.shape) for g in inputs))
    result.sum().backward()
    assert seen == [(1,), (3, 2)]


def test_a_hook_of_a_node_may_not_return_another_shape():
    few = rushlight.ones(1, requires_grad=True)
    result = few * rushlight.ones(3)
    result.grad_fn.register_hook(lambda inputs, outputs: (rushlight.ones(2), None))
    with pytest.raises(RuntimeError, match="invalid gradient|changed the size"):
        result.sum().backward()
