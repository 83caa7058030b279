"""Eight threads on the same modules, tensors, graphs and loaders. Without a global lock they run at once
(docs/free_threading.md); with one they change places as often as the interpreter allows."""

import gc
import os
import random
import subprocess
import sys
import sysconfig
import textwrap
import threading
import weakref
from collections import Counter

import pytest

import rushlight
from rushlight import nn
from rushlight.nn import functional
from rushlight.utils.data import DataLoader, TensorDataset

THREADS = 8
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
# Enough for the races that were found here to show in nearly every run.
ROUNDS = 300 if FREE_THREADED else 60

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(autouse=True)
def frequent_switches():
    before = sys.getswitchinterval()
    threads = rushlight.get_num_threads()
    sys.setswitchinterval(1e-5)
    rushlight.set_num_threads(1)
    yield
    rushlight.set_num_threads(threads)
    sys.setswitchinterval(before)


def hammer(*jobs, threads=THREADS):
    """The results of job(i), of `jobs` in turn, in threads that start together. The first error is raised."""
    start = threading.Barrier(threads)
    results, errors = [None] * threads, []

    def run(i):
        try:
            start.wait()
            results[i] = jobs[i % len(jobs)](i)
        except BaseException as error:
            errors.append(error)

    crew = [threading.Thread(target=run, args=(i,)) for i in range(threads)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    if errors:
        raise errors[0]
    return results


def whole_numbers(*shape):
    """Sums of them are exact, in any order."""
    return rushlight.randint(-4, 5, shape).double()


def small_network():
    rushlight.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 3))


# --- modules


def test_one_module_computes_the_same_everywhere():
    model, x = small_network(), rushlight.randn(5, 6)
    with rushlight.no_grad():
        expected = model(x)

    def job(_):
        with rushlight.no_grad():
            return all(rushlight.equal(model(x), expected) for _ in range(ROUNDS))

    assert all(hammer(job))


def test_hooks_come_and_go_while_others_call():
    model, x = small_network(), rushlight.randn(2, 6)
    expected = model(x)
    calls = Counter()

    def hook(*_):
        calls["hook"] += 1

    def call(_):
        return all(rushlight.equal(model(x), expected) for _ in range(ROUNDS))

    def change(_):
        for _ in range(ROUNDS):
            handles = [layer.register_forward_hook(hook) for layer in model]
            for handle in handles:
                handle.remove()
        return True

    assert all(hammer(call, change))
    assert all(not layer._forward_hooks for layer in model)


def test_attributes_and_tables_change_while_others_read():
    model = small_network()
    names = [name for name, _ in model.named_parameters()]

    def read(_):
        for _ in range(ROUNDS):
            assert {name for name, _ in model.named_parameters()} == set(names)
            assert set(names) <= set(model.state_dict())
            assert model[0].weight.shape == (16, 6)
            assert sum(1 for _ in model.modules()) == 5

    def write(i):
        for k in range(ROUNDS):
            layer = model[0]
            layer.register_buffer(f"buffer_{i}_{k}", rushlight.zeros(2), persistent=False)
            setattr(layer, f"note_{i}", k)
            delattr(layer, f"buffer_{i}_{k}")
            layer.weight = layer.weight
            model.train(k % 2 == 0)

    hammer(read, write)


# --- autograd


def test_gradients_of_one_leaf_add_up():
    weight = whole_numbers(4, 4).requires_grad_()
    inputs = [whole_numbers(3, 4) for _ in range(THREADS)]

    def job(i):
        for _ in range(ROUNDS):
            (inputs[i] @ weight).sum().backward()

    hammer(job)
    expected = sum(x.sum(0) for x in inputs) * ROUNDS
    assert rushlight.equal(weight.grad, expected.unsqueeze(1).expand(4, 4))


def test_one_graph_is_walked_by_all():
    x = whole_numbers(5).requires_grad_()
    y = ((x * x).cumsum(0) * x).sum()
    (expected,) = rushlight.autograd.grad(y, x, retain_graph=True)

    def job(_):
        for _ in range(ROUNDS // 3):
            (found,) = rushlight.autograd.grad(y, x, retain_graph=True)
            assert rushlight.equal(found, expected)

    hammer(job)


def test_one_graph_is_freed_once():
    """One of the passes may use what the graph saved; the others are refused, or were quick enough."""

    def job(y, failures):
        def run(_):
            try:
                y.backward()
            except RuntimeError as error:
                assert "second time" in str(error)
                failures.append(error)

        return run

    for _ in range(ROUNDS // 6):
        x = rushlight.ones(3, requires_grad=True)
        y, failures = (x.exp() * x.sin()).sum(), []
        hammer(job(y, failures), threads=4)
        assert len(failures) < 4


def test_gradients_are_dropped_and_read_meanwhile():
    weight = rushlight.ones(8, requires_grad=True)

    def train(_):
        for _ in range(ROUNDS):
            (weight * 2).sum().backward()

    def drop(_):
        for _ in range(ROUNDS):
            weight.grad = None

    def read(_):
        for _ in range(ROUNDS):
            grad = weight.grad
            assert grad is None or grad.shape == (8,)
            if grad is not None:
                grad.mark = "seen"

    hammer(train, drop, read, train)


def test_hooks_on_tensors_and_nodes():
    x = rushlight.ones(4, requires_grad=True)
    y = (x * 3).exp()
    node = y.grad_fn
    loss = y.sum()
    (expected,) = rushlight.autograd.grad(loss, x, retain_graph=True)

    def change(_):
        for _ in range(ROUNDS // 2):
            handles = [x.register_hook(lambda g: g), y.register_hook(lambda g: g)]
            handles.append(node.register_hook(lambda inputs, outputs: None))
            handles.append(node.register_prehook(lambda outputs: None))
            node.metadata["note"] = 1
            for handle in handles:
                handle.remove()

    def walk(_):
        for _ in range(ROUNDS // 2):
            (found,) = rushlight.autograd.grad(loss, x, retain_graph=True)
            assert rushlight.equal(found, expected)

    hammer(change, walk)


def test_custom_functions():
    class Square(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * grad * x

    x = whole_numbers(3).requires_grad_()

    def job(_):
        for _ in range(ROUNDS // 2):
            Square.apply(x).sum().backward()

    hammer(job)
    assert rushlight.equal(x.grad, 2 * x.detach() * THREADS * (ROUNDS // 2))


def test_a_renewed_view_shows_one_node():
    for _ in range(ROUNDS // 6):
        base = rushlight.ones(4, requires_grad=True).clone()
        view = base[1:]
        base.mul_(2)
        nodes = hammer(lambda _, view=view: view.grad_fn, threads=4)
        assert all(node is nodes[0] for node in nodes)


def test_backward_in_the_threads_of_their_own():
    """Modes are a thread's; parameters are everybody's."""
    model = small_network().double()
    x = whole_numbers(4, 6)

    def train(_):
        for _ in range(ROUNDS // 3):
            functional.mse_loss(model(x), rushlight.zeros(4, 3).double()).backward()
            assert rushlight.is_grad_enabled()

    def infer(_):
        for _ in range(ROUNDS // 3):
            with rushlight.inference_mode():
                assert not model(x).requires_grad
            with rushlight.autocast("cpu", dtype=rushlight.bfloat16):
                assert model(x.float()).dtype in (rushlight.bfloat16, rushlight.float32)

    with pytest.raises(RuntimeError):
        hammer(lambda _: model(x.float()), threads=2)
    model_single = small_network()
    x_single = x.float()

    def autocast(_):
        with rushlight.no_grad(), rushlight.autocast("cpu", dtype=rushlight.bfloat16):
            for _ in range(ROUNDS // 3):
                assert model_single[0](x_single).dtype == rushlight.bfloat16

    def plain(_):
        with rushlight.inference_mode():
            for _ in range(ROUNDS // 3):
                assert model_single[0](x_single).dtype == rushlight.float32

    hammer(train, autocast, plain)


# --- identity: one tensor, one Python object


def test_wrappers_with_state_are_the_same_object():
    """The gradient's only owner is C++ whenever no thread holds its wrapper."""
    leaf = rushlight.ones(3, requires_grad=True)
    leaf.grad = rushlight.ones(3)
    leaf.grad.mark = mark = object()

    def job(_):
        for _ in range(ROUNDS * 3):
            assert leaf.grad.mark is mark
            first, second = leaf.grad, leaf.grad
            assert first is second

    hammer(job)
    assert leaf.grad.mark is mark


def test_subclasses_keep_their_class_and_slots():
    class Marked(rushlight.Tensor):
        __slots__ = ("place",)

    leaf = rushlight.ones(3, requires_grad=True)
    grad = rushlight.ones(3).as_subclass(Marked)
    grad.place = "here"
    leaf.grad = grad
    del grad

    def job(_):
        for _ in range(ROUNDS * 3):
            found = leaf.grad
            assert type(found) is Marked
            assert found.place == "here"
            del found

    hammer(job)


def test_weak_references_to_what_only_the_core_holds():
    for _ in range(ROUNDS // 6):
        leaf = rushlight.ones(3, requires_grad=True)
        leaf.grad = rushlight.full((3,), 7.0)
        reference = weakref.ref(leaf.grad)

        def read(_, reference=reference):
            for _ in range(30):
                found = reference()
                if found is None:
                    return
                # Its memory is there, or it was given up for nothing: never another tensor's.
                assert found.numel() == 0 or (found + 0).tolist() == [7.0] * 3

        def drop(_, leaf=leaf):
            _ = leaf.grad.shape
            leaf.grad = None

        hammer(read, read, read, drop, threads=4)
        gc.collect()
        assert reference() is None


def test_nodes_and_storages_are_the_same_objects():
    x = rushlight.ones(4, requires_grad=True)
    y = (x * 2).exp()

    def job(_):
        for _ in range(ROUNDS * 2):
            assert y.grad_fn is y.grad_fn
            assert y.grad_fn.next_functions[0][0] is y.grad_fn.next_functions[0][0]
            first, second = y.untyped_storage(), y.untyped_storage()
            assert first is second
            assert type(y.grad_fn).__name__ == "ExpBackward0"

    hammer(job)


def test_the_collector_runs_meanwhile():
    made = []

    def job(i):
        for k in range(ROUNDS // 3):
            x = rushlight.ones(3, requires_grad=True)
            y = x * 2
            y.cycle = [y, x]
            y.register_hook(lambda g, y=y: g)
            y.sum().backward()
            made.append(weakref.ref(y))
            assert x.grad.tolist() == [2, 2, 2]
            if k % 20 == i:
                gc.collect()

    hammer(job)
    gc.collect()
    assert not any(reference() is not None for reference in made)


# --- tensors and arguments


def test_lists_change_while_operators_read_them():
    tensors = [rushlight.full((2,), float(i)) for i in range(6)]
    sizes = [2, 3]

    def read(_):
        for _ in range(ROUNDS):
            joined = rushlight.cat(tensors)
            assert joined.numel() % 2 == 0
            assert rushlight.zeros(sizes).shape[0] in (2, 5)
            rushlight._foreach_add(tensors, 1.0)

    def write(i):
        generator = random.Random(i)
        for _ in range(ROUNDS):
            tensors[generator.randrange(3)] = rushlight.full((2,), 1.0)
            tensors.append(rushlight.ones(2))
            tensors.pop()
            sizes[0] = 5
            sizes[0] = 2

    hammer(read, write)


def test_writing_to_one_tensor_is_a_race_of_values_alone():
    x = rushlight.zeros(1000)
    views = [x[i : i + 500] for i in range(THREADS)]

    def job(i):
        for _ in range(ROUNDS):
            views[i].add_(1.0)
            x.mul_(1.0)
            x[i] = 3.0
        return x.sum().isfinite().item()

    assert all(hammer(job))
    assert x._version > 0


def test_recording_in_place_on_one_tensor():
    """What is recorded last wins; whatever happens, the graph can be walked or refuses."""
    for _ in range(ROUNDS // 30):
        leaf = rushlight.ones(8, requires_grad=True)
        x = leaf.clone()

        def job(_, x=x):
            for _ in range(20):
                x.add_(1.0)
                _ = x.grad_fn.name(), x.requires_grad, x.is_leaf

        hammer(job)
        x.sum().backward()
        assert leaf.grad.tolist() == [1.0] * 8


def test_generators_hand_out_each_number_once():
    rushlight.manual_seed(3)
    expected = Counter(rushlight.rand(1).item() for _ in range(THREADS * ROUNDS))
    rushlight.manual_seed(3)
    drawn = hammer(lambda _: [rushlight.rand(1).item() for _ in range(ROUNDS)])
    assert Counter(number for part in drawn for number in part) == expected


def test_images_in_deferred_layout_are_put_in_order_once():
    rushlight.manual_seed(0)
    conv = nn.Conv2d(3, 8, 3)
    with rushlight.no_grad():
        for _ in range(ROUNDS // 6):
            image = rushlight.randn(1, 3, 8, 8)
            expected = conv(image).clone().sum()
            deferred = conv(image)
            found = hammer(lambda _, deferred=deferred: deferred.clone().sum(), threads=4)
            assert all(rushlight.equal(value, expected) for value in found)


def test_numpy_arrays_on_shared_memory():
    numpy = pytest.importorskip("numpy")
    x = rushlight.arange(100.0)

    def job(_):
        for _ in range(ROUNDS):
            assert x.numpy()[7] == 7
            assert rushlight.from_numpy(numpy.asarray(x))[3].item() == 3
            assert memoryview(x.untyped_storage()).nbytes == 400

    hammer(job)


# --- data


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("workers", [0, 2])
def test_loaders_in_many_threads(workers):
    data = TensorDataset(rushlight.arange(64), rushlight.arange(64.0))
    context = {"worker_method": "thread"} if workers else {}
    loader = DataLoader(data, batch_size=8, shuffle=True, num_workers=workers, **context)

    def job(_):
        for _ in range(3):
            rows = [row for batch, _ in loader for row in batch.tolist()]
            assert sorted(rows) == list(range(64))

    hammer(job, threads=4 if workers else THREADS)


# --- the first use, in an interpreter of its own

FIRST_USE = """
    import threading
    import rushlight

    start = threading.Barrier(8)
    errors = []

    def job(i):
        try:
            start.wait()
            x = rushlight.ones(2, 3, requires_grad=True)
            y = (x.exp() + x.sin() * 2).reshape(3, 2).softmax(0)
            names = [y.grad_fn.name(), type(y.grad_fn).__name__, repr(y.grad_fn._input_metadata)]
            assert names[:2] == ["SoftmaxBackward0"] * 2, names
            x.register_hook(lambda g: g)
            y.sum().backward()
            assert x.grad.untyped_storage().nbytes() == 24
            for shown in ("device(type='cpu')", "torch.float32"):
                assert shown in repr(x.device) or shown in repr(x.dtype)
            try:
                rushlight.ones(2) @ rushlight.ones(3)
            except RuntimeError:
                pass
            else:
                raise AssertionError("no error")
            model = rushlight.nn.Sequential(rushlight.nn.Linear(3, 4), rushlight.nn.ReLU())
            assert model(x.detach()).shape == (2, 4)
            assert isinstance(model[0].weight, rushlight.nn.Parameter)
            assert rushlight.ops.aten.add.Tensor(x.detach(), 1).shape == (2, 3)
        except BaseException as error:
            errors.append(error)
            raise

    crew = [threading.Thread(target=job, args=(i,)) for i in range(8)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    assert not errors
    print("done")
"""


def run_program(text):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHON_GIL": ""}
    environment.pop("PYTHON_GIL")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_everything_is_made_once_on_first_use():
    for _ in range(3):
        assert run_program(FIRST_USE) == ["done"]


@pytest.mark.skipif(not FREE_THREADED, reason="this interpreter has its lock always")
def test_the_extension_leaves_the_lock_off():
    program = """
        import sys
        import rushlight.distributed
        import rushlight
        print(sys._is_gil_enabled())
    """
    assert run_program(program) == ["False"]
