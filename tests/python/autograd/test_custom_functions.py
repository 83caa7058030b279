"""Custom functions: what they save and mark, errors in their backward passes, cycles they may be in."""

import gc
import weakref

import pytest

import rushlight as rl

F64 = rl.float64


def leaf(*values):
    return rl.tensor(values, dtype=F64, requires_grad=True)


class Cube(rl.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * x * x * scale

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        assert ctx.needs_input_grad == (True, False)
        return 3 * x * x * grad * ctx.scale, None


def test_custom_function():
    x = leaf(2.0)
    y = Cube.apply(x, 2)
    assert y.grad_fn.name() == "CubeBackward" and type(y.grad_fn).__name__ == "CubeBackward"
    (g,) = rl.autograd.grad(y, x, create_graph=True)
    assert g.tolist() == [24]
    (gg,) = rl.autograd.grad(g, x)
    assert gg.tolist() == [24]
    with pytest.raises(RuntimeError, match="second time"):
        rl.autograd.grad(g, x)


def test_setup_context_and_flags():
    class Split(rl.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2, (x > 0).to(F64), "text"

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_non_differentiable(output[1])
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx, g, mask_grad, text_grad):
            assert mask_grad is None and text_grad is None
            return g * 2

    x = leaf(1.0)
    y, mask, text = Split.apply(x)
    assert text == "text" and not mask.requires_grad
    y.backward()
    assert x.grad.tolist() == [2]


def test_mark_dirty():
    class Double(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(1.0)
    y = x * 1
    z = Double.apply(y)
    assert z is y and y.grad_fn.name() == "DoubleBackward"
    z.backward()
    assert x.grad.tolist() == [2]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        Double.apply(leaf(1.0))


def test_custom_function_returns_input():
    class Same(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 5

    x = leaf(1.0)
    y = Same.apply(x)
    assert y is not x and x.is_leaf
    y.backward()
    assert x.grad.tolist() == [5]
    with rl.no_grad():
        assert not Same.apply(rl.zeros(1)).requires_grad


def test_wrong_number_of_gradients():
    class Bad(rl.autograd.Function):
        result = (None,)

        @staticmethod
        def forward(ctx, x, k):
            return x * k

        @staticmethod
        def backward(ctx, g):
            return Bad.result

    y = Bad.apply(leaf(1.0), 2)
    with pytest.raises(
        RuntimeError,
        match=r"function BadBackward returned an incorrect number of gradients \(expected 2, got 1\)",
    ):
        y.backward(retain_graph=True)
    Bad.result = (None, rl.zeros(1))
    with pytest.raises(RuntimeError, match="returned a gradient different than None at position 2"):
        y.backward()


def test_errors_in_backward_are_the_same_object():
    class Raises(rl.autograd.Function):
        error = KeyError("mine")

        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise Raises.error

    with pytest.raises(KeyError) as e:
        Raises.apply(leaf(1.0)).backward()
    assert e.value is Raises.error


def test_backward_inside_backward():
    class Checkpoint(rl.autograd.Function):
        @staticmethod
        def forward(ctx, depth, x):
            ctx.depth = depth
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with rl.enable_grad():
                x = x.detach().requires_grad_()
                y = x * 2 if ctx.depth == 0 else Checkpoint.apply(ctx.depth - 1, x)
            y.backward(g)
            return None, x.grad

    x = leaf(1.0)
    Checkpoint.apply(100, x).backward()
    assert x.grad.tolist() == [2]


def test_saved_output_makes_no_cycle():
    class Keep(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    gc.collect()
    gc.disable()
    try:
        y = Keep.apply(leaf(1.0))
        alive = weakref.ref(y.grad_fn)
        del y
        assert alive() is None
    finally:
        gc.enable()


def test_cycles_through_ctx_are_collected():
    class Cycle(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.me = ctx
            ctx.out = x * 2
            return ctx.out

        @staticmethod
        def backward(ctx, g):
            return g * 2

    y = Cycle.apply(leaf(1.0))
    alive = weakref.ref(y.grad_fn)
    del y
    gc.collect()
    assert alive() is None


def test_cycles_through_hooks_are_collected():
    class Marker:
        pass

    x = leaf(1.0)
    y = x * 2
    marker = Marker()
    y.register_hook(lambda g, y=y, marker=marker: None)
    alive = weakref.ref(marker)
    del y, marker
    gc.collect()
    assert alive() is None


def test_boxed_gradients():
    class Boxed(rl.autograd.Function):
        boxed_grads_call = True

        @staticmethod
        def forward(ctx, a, b):
            return a * 2, b * 3

        @staticmethod
        def backward(ctx, grads):
            assert isinstance(grads, list)
            second, first = grads.pop(), grads.pop()
            return first * 2, second * 3

    a, b = rl.ones(2, requires_grad=True), rl.ones(2, requires_grad=True)
    sum(out.sum() for out in Boxed.apply(a, b)).backward()
    assert a.grad.tolist() == [2, 2] and b.grad.tolist() == [3, 3]


def test_gradients_of_outputs_that_have_none_may_stay_none():
    class Two(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            constant = x.clone()
            ctx.mark_non_differentiable(constant)
            ctx._materialize_non_diff_grads = False
            return x.clone(), constant

        @staticmethod
        def backward(ctx, grad, of_constant):
            assert of_constant is None
            return grad * 3

    x = rl.ones(2, requires_grad=True)
    Two.apply(x)[0].sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_inputs_returned_as_they_are_stay_of_their_class():
    class Logged(rl.Tensor):
        pass

    class Same(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            with pytest.warns(DeprecationWarning, match="'saved_variables' is deprecated"):
                assert len(ctx.saved_variables) == 1
            return grad * 3

    x = rl.ones(2).as_subclass(Logged).requires_grad_()
    y = Same.apply(x)
    assert type(y) is Logged and y is not x and y.grad_fn is not None
    y.sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_accumulated_gradients_with_a_graph_are_copies():
    x = rl.ones(2, requires_grad=True)
    (x * x).sum().backward(create_graph=True)
    node = x.grad.grad_fn
    assert type(node).__name__ == "CopyBackwards" and node.next_functions[0] == (None, 0)
    (second,) = rl.autograd.grad(x.grad.sum(), x)
    assert second.tolist() == [2, 2]
    x.grad = None


def test_inputs_without_gradients_that_are_returned_stay_of_their_class():
    class Wrapped(rl.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            out = super().__torch_function__(func, types, args, kwargs)
            return out.as_subclass(cls) if isinstance(out, rl.Tensor) else out

    class Same(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad

    x = rl.ones(2).as_subclass(Wrapped)
    y = Same.apply(x)
    assert type(y) is Wrapped and y is not x and y.data_ptr() == x.data_ptr()


def test_nodes_of_functions_belong_to_the_library():
    class Own(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    node = Own.apply(rl.ones(1, requires_grad=True)).grad_fn
    assert repr(node).startswith(f"<{rl.autograd.function.__name__}.OwnBackward object at 0x")


class Doubled(rl.autograd.Function):
    @staticmethod
    def forward(ctx, x, held):
        ctx.held = held
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None


def test_the_node_lives_as_long_as_python_holds_it():
    x = leaf(3.0)
    node = Doubled.apply(x, None).grad_fn  # the tensor is gone
    gc.collect()
    assert node.name() == "DoubledBackward" and node.saved_tensors[0] is x
    assert node.next_functions[0][0].variable is x and node.metadata == {}
    edge = rl.autograd.graph.GradientEdge(node, 0)
    assert rl.autograd.grad([edge], [x], [rl.ones(1, dtype=F64)])[0].tolist() == [2]

    names = []  # the walk of programs that draw graphs
    fn = (Doubled.apply(Doubled.apply(x, None), None) * 2).sum().grad_fn
    while fn is not None:
        names.append(fn.name())
        fn = fn.next_functions[0][0] if fn.next_functions else None
    assert names[1:-1] == ["MulBackward0", "DoubledBackward", "DoubledBackward"]


def test_a_node_that_python_held_is_freed_at_once():
    class Held:
        pass

    def is_freed(program):
        held = Held()
        watch = weakref.ref(held)
        gc.disable()
        try:
            program(leaf(1.0), held)
            del held
            return watch() is None
        finally:
            gc.enable()

    def tensor_last(x, held):
        y = Doubled.apply(x, held)
        assert y.grad_fn.name() and repr(y)

    def node_last(x, held):
        y = Doubled.apply(x, held)
        node = y.grad_fn
        del y
        assert node.name() and node.held is held and node.next_functions

    def node_of_node(x, held):
        node = (Doubled.apply(x, held) * 3).grad_fn.next_functions[0][0]
        assert node.held is held and node.name()

    assert is_freed(tensor_last) and is_freed(node_last) and is_freed(node_of_node)


def test_cycles_through_a_held_node_are_collected():
    class Held:
        pass

    held = Held()
    watch = weakref.ref(held)
    node = Doubled.apply(leaf(1.0), held).grad_fn
    node.myself = node
    held.node = node
    del node, held
    gc.collect()
    assert watch() is None
