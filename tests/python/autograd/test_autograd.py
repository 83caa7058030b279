"""Autograd from Python: the graph's face, hooks, custom functions, modes, errors."""

import threading

import pytest

import rushlight as rl

F64 = rl.float64


def leaf(*values):
    return rl.tensor(values, dtype=F64, requires_grad=True)


def close(a, b):
    return a.tolist() == pytest.approx(b, abs=1e-12)


# --- the graph ---


def test_names_and_next_functions():
    x = leaf(1.0, 2.0)
    y = (x * 2 + 1).exp()
    assert y.grad_fn.name() == type(y.grad_fn).__name__ == "ExpBackward0"
    add, index = y.grad_fn.next_functions[0]
    assert (add.name(), index) == ("AddBackward0", 0)
    assert add.next_functions[1] == (None, 0)
    mul = add.next_functions[0][0]
    accumulate = mul.next_functions[0][0]
    assert accumulate.name() == "torch::autograd::AccumulateGrad" and accumulate.variable is x
    assert mul is add.next_functions[0][0] and hash(mul) == hash(add.next_functions[0][0])
    assert repr(mul).startswith("<MulBackward0 object at 0x")
    assert isinstance(mul, rl.autograd.graph.Node)


def test_saved_attributes():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    z = x * y
    assert z.grad_fn._saved_self is x and z.grad_fn._saved_other is y
    e = x.exp()
    assert e.grad_fn._saved_result.tolist() == e.tolist()
    assert e.grad_fn._saved_result.grad_fn is e.grad_fn
    z.sum().backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        _ = z.grad_fn._saved_self


def test_metadata_stays():
    y = leaf(1.0) * 2
    y.grad_fn.metadata["key"] = 3
    assert y.grad_fn.metadata["key"] == 3


def test_leaf_properties():
    x = rl.zeros(2)
    assert x.is_leaf and not x.requires_grad and x.grad_fn is None and x.grad is None
    assert x.requires_grad_() is x and x.requires_grad
    y = x * 2
    assert not y.is_leaf and y.requires_grad and y.output_nr == 0
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        y.requires_grad = False
    with pytest.raises(
        RuntimeError, match="only Tensors of floating point and complex dtype can require gradients"
    ):
        rl.zeros(2, dtype=rl.int64).requires_grad = True


def test_grad_property():
    x = leaf(1.0, 2.0)
    x.grad = rl.ones(2, dtype=F64)
    (x * x).sum().backward()
    assert x.grad.tolist() == [3, 5]
    x.grad = None
    assert x.grad is None
    with pytest.raises(TypeError, match="assigned grad expected to be a Tensor or None"):
        x.grad = 1
    with pytest.raises(RuntimeError, match="attempting to assign a gradient of size"):
        x.grad = rl.ones(3, dtype=F64)
    with pytest.raises(RuntimeError, match="own grad"):
        x.grad = x


def test_data_has_its_own_version():
    x = leaf(1.0, 2.0)
    before = x._version
    x.data.mul_(3)
    assert x.tolist() == [3, 6] and x._version == before
    x.data = rl.tensor([7.0, 8.0], dtype=F64)
    assert x.tolist() == [7, 8] and x.requires_grad


def test_detach():
    x = leaf(1.0)
    y = x * 2
    d = y.detach()
    assert not d.requires_grad and d.data_ptr() == y.data_ptr()
    y.detach_()
    assert y.is_leaf
    base = x * 2
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        base[0].detach_()


# --- backward and grad ---


def test_backward_with_inputs():
    x, y = leaf(1.0), leaf(2.0)
    (x * y).backward(inputs=[x])
    assert x.grad.tolist() == [2] and y.grad is None
    z = x * y
    (z * z).backward(inputs=[z])
    assert z.grad.tolist() == [4] and x.grad.tolist() == [2]


def test_grad_of_unused():
    x, y = leaf(1.0), leaf(2.0)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        rl.autograd.grad(x * 2, y)
    assert rl.autograd.grad(x * 2, (x, y), allow_unused=True)[1] is None
    with pytest.raises(RuntimeError, match="does not require grad"):
        rl.autograd.grad(x * 2, rl.zeros(1))
    with pytest.raises(
        RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"
    ):
        rl.zeros(1).backward()
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (leaf(1.0, 2.0) * 2).backward()


def test_double_backward():
    x = leaf(2.0, 3.0)
    (first,) = rl.autograd.grad((x**3).sum(), x, create_graph=True)
    assert close(first, [12, 27]) and first.requires_grad
    (second,) = rl.autograd.grad(first.sum(), x)
    assert close(second, [12, 18])


def test_retain_graph():
    x = leaf(2.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [8]
    with pytest.raises(RuntimeError, match="Specify retain_graph=True"):
        y.backward()


def test_gradient_fits_its_input():
    x = rl.ones(3, requires_grad=True)
    (x.double() * rl.ones(2, 3, dtype=F64)).sum().backward()
    assert x.grad.dtype == rl.float32 and x.grad.tolist() == [2, 2, 2]
    scalar = rl.tensor(2.0, requires_grad=True)
    (scalar * rl.ones(4, 5)).sum().backward()
    assert scalar.grad.shape == () and scalar.grad.item() == 20


def test_threads_share_a_graph():
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    threads = [threading.Thread(target=lambda: y.backward(retain_graph=True)) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert x.grad.tolist() == [16, 32]


# --- in-place ---


def test_overwritten_saved_tensor_is_named():
    x = leaf(1.0, 2.0, 3.0)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError) as e:
        y.sum().backward()
    assert "[torch.DoubleTensor [3]], which is output 0 of Exp" in str(e.value)
    assert "last written by add" in str(e.value)


def test_inplace_on_leaves_and_views():
    x = leaf(1.0, 2.0)
    with pytest.raises(
        RuntimeError, match="^a leaf Variable that requires grad is being used in an in-place operation."
    ):
        x.add_(1)
    with pytest.raises(RuntimeError, match="^a view of a leaf Variable"):
        x[0].add_(1)
    y = x * 1
    y[0].mul_(5)
    assert y.grad_fn.name() == "torch::autograd::CopySlices"
    (y * y).sum().backward()
    assert x.grad.tolist() == [50, 4]
    with pytest.raises(RuntimeError, match="Output 0 of Unbind is a view and is being modified inplace"):
        (x * 1).unbind()[0].mul_(2)


def test_assignment_by_index_is_recorded():
    x = leaf(1.0, 2.0)
    buffer = rl.zeros(3, dtype=F64)
    buffer[1:] = x
    buffer[0] = x[1] * 2
    (buffer * buffer).sum().backward()
    assert x.grad.tolist() == [2, 20]


def test_augmented_assignment_by_index():
    x = rl.ones(3, requires_grad=True)
    y = rl.zeros(3)
    y[0:2] += x[0:2]
    y[1:3] += x[1:3]
    (y * y).sum().backward()
    assert x.grad.tolist() == [2.0, 8.0, 2.0]


def test_views_of_one_base_follow_it():
    buffer, w = rl.zeros(2, dtype=F64), leaf(3.0, 4.0)
    view = buffer.view(2, 1)
    assert view._base is buffer and view._is_view()
    buffer.add_(w)
    assert view.requires_grad and view.grad_fn.name() == "AsStridedBackward0"
    (view * view).sum().backward()
    assert w.grad.tolist() == [6, 8]


def test_out_refuses_autograd():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        rl.mul(x, x, out=rl.zeros(1, dtype=F64))


# --- hooks ---


def test_tensor_hooks():
    x = leaf(1.0)
    y = x * 3
    seen = []
    handle = y.register_hook(lambda g: seen.append(g.item()))
    y.register_hook(lambda g: g * 2)
    leaf_handle = x.register_hook(lambda g: g + 1)
    y.backward(retain_graph=True)
    assert seen == [1] and x.grad.tolist() == [7]
    handle.remove()
    leaf_handle.remove()
    y.backward()
    assert seen == [1] and x.grad.tolist() == [13]
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        rl.zeros(1).register_hook(print)
    y = x * 3
    y.register_hook(lambda g: rl.zeros(5, dtype=F64))
    with pytest.raises(RuntimeError, match="has changed the size of value"):
        y.backward()


def test_post_accumulate_hook():
    x = leaf(1.0)
    seen = []
    handle = x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.item()))
    (x * 4).backward()
    assert seen == [4]
    handle.remove()
    (x * 4).backward()
    assert seen == [4]
    with pytest.raises(RuntimeError, match="non-leaf"):
        (x * 1).register_post_accumulate_grad_hook(print)


def test_node_hooks():
    x = leaf(2.0)
    y = x * 3
    calls = []
    y.grad_fn.register_hook(lambda ins, outs: calls.append((len(ins), outs[0].item())))
    y.grad_fn.register_prehook(lambda outs: (outs[0] * 10,))
    y.backward()
    assert calls == [(2, 10)] and x.grad.tolist() == [30]


def test_retain_grad():
    x = leaf(2.0)
    y = x * x
    y.retain_grad()
    assert y.retains_grad and not x.retains_grad
    (y * 3).backward()
    assert y.grad.tolist() == [3]
    with pytest.raises(RuntimeError, match="can't retain_grad"):
        rl.zeros(1).retain_grad()


def test_errors_of_hooks_pass_through():
    class Mine(Exception):
        pass

    error = Mine("here")

    def hook(grad):
        raise error

    y = leaf(1.0) * 2
    y.register_hook(hook)
    with pytest.raises(Mine) as e:
        y.backward()
    assert e.value is error


def test_saved_tensors_hooks():
    x = leaf(2.0)
    with rl.autograd.graph.saved_tensors_hooks(lambda t: (t * 1).tolist(), lambda v: rl.tensor(v, dtype=F64)):
        y = x * x
    y.backward()
    assert x.grad.tolist() == [4]
    with rl.autograd.graph.disable_saved_tensors_hooks("not now"):
        with pytest.raises(RuntimeError, match="not now"):
            with rl.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                pass


# --- modes ---


def test_grad_modes():
    x = leaf(1.0)
    with rl.no_grad():
        assert not (x * 2).requires_grad
        with rl.enable_grad():
            assert (x * 2).requires_grad
    y = x * 1
    with rl.no_grad():
        view = y[0]
        y.mul_(2)
    assert y.requires_grad
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        view.mul_(2)


def test_inference_mode():
    x = leaf(1.0)
    with rl.inference_mode():
        i = x * 2
        normal_view = x.view(1)
        assert i.is_inference() and not i.requires_grad and not normal_view.is_inference()
        i.add_(1)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        i.add_(1)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        _ = x * i
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        _ = i._version
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor"):
        i.requires_grad_()


def test_anomaly_mode_shows_the_forward_call():
    x = leaf(-1.0)
    with rl.autograd.set_detect_anomaly(True):
        y = (x.sqrt() * 0).sum()
        with pytest.warns(UserWarning, match="Error detected in SqrtBackward0.(.|\n)*test_autograd.py"):
            with pytest.raises(
                RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output."
            ):
                y.backward()


def test_deep_graphs_are_freed():
    x = leaf(1.0)
    y = x
    for _ in range(100_000):
        y = y + 1
    y.backward()
    del y
    assert x.grad.tolist() == [1]


def test_real_views_of_complex_tensors_are_written():
    x = rl.tensor([3.0, 4.0], dtype=F64, requires_grad=True)
    z = rl.complex(x, x * 2)
    rl.view_as_real(z)[:, 0].mul_(5)
    (z.real + z.imag).sum().backward()
    assert x.grad.tolist() == [7, 7]


def test_views_after_an_operator_that_switches_grad_mode_inside():
    a = rl.tensor([3.0, 6.0], requires_grad=True)
    rl._standard_gamma(a)
    doubled = a * 2
    doubled.view(2).clamp_(min=0.1)  # once refused as a view made under no_grad
    doubled.sum().backward()
    assert a.grad.tolist() == [2, 2]


def test_a_batch_of_gradients_of_other_shapes_is_refused():
    x = rl.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="If `is_grads_batched=True`, we interpret the first"):
        rl.autograd.grad(x * 2, x, rl.ones(3), is_grads_batched=True)


def test_nodes_that_are_made_by_hand_are_nodes():
    functions = rl._C._functions
    for kind in (functions.DelayedError, functions.AccumulateGrad, rl.autograd.function.BackwardCFunction):
        assert issubclass(kind, rl.autograd.graph.Node)
    assert not isinstance(None, rl.autograd.graph.Node)
