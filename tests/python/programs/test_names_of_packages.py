"""Names that packages ask for, and what they do with them."""

import logging
import subprocess
import sys
from abc import ABC, abstractmethod
from pathlib import Path

import pytest

import rushlight as torch

ROOT = Path(torch.__file__).parents[1]


def test_former_homes_give_the_same_objects():
    from rushlight.ao import quantization
    from rushlight.cuda.amp.autocast_mode import autocast
    from rushlight.cuda.amp.common import amp_definitely_not_available
    from rushlight.cuda.amp.grad_scaler import GradScaler
    from rushlight.hub import urlopen

    assert torch.cuda.amp.GradScaler is GradScaler and torch.cuda.amp.autocast is autocast
    assert amp_definitely_not_available() is not torch.cuda.is_available()
    assert torch.quantization.ObserverBase is quantization.ObserverBase and callable(urlopen)
    assert torch._tensor._rebuild_from_type_v2 is torch._utils._rebuild_from_type_v2
    assert torch.autograd.function._ContextMethodMixin is torch.autograd.function.FunctionCtx
    assert torch.autograd._is_checkpoint_valid() and torch.autograd._profiler_enabled() is False
    with torch.profiler.profile():
        assert torch.autograd._profiler_enabled() is True


def test_distributed_tensors_former_home():
    tensor = pytest.importorskip("rushlight.distributed.tensor", exc_type=ImportError)
    from rushlight.distributed._tensor.api import DTensor
    from rushlight.distributed._tensor.device_mesh import DeviceMesh
    from rushlight.distributed._tensor.experimental import implicit_replication
    from rushlight.distributed._tensor.placement_types import Shard

    assert (DTensor, DeviceMesh, Shard) == (tensor.DTensor, tensor.DeviceMesh, tensor.Shard)
    assert implicit_replication is tensor.experimental.implicit_replication


def test_device_index():
    index = torch._utils._get_device_index
    assert index("cuda:1") == index(torch.device("cuda", 1)) == index(1) == 1
    assert index("cpu", allow_cpu=True) == -1
    with pytest.raises(ValueError, match="non cpu"):
        index("cpu")
    with pytest.raises(ValueError, match="specified index"):
        index(None)
    with pytest.raises(ValueError, match="Expected a torch.device"):
        index(1.5)


def test_rnn_computes_with_the_weights_it_is_given():
    torch.manual_seed(0)
    lstm, other, x = torch.nn.LSTM(3, 4), torch.nn.LSTM(3, 4), torch.rand(5, 2, 3)
    with pytest.raises(ValueError, match="expected 4 weights, got 1"):
        lstm._flat_weights = [torch.rand(3)]
    lstm._flat_weights = [2 * w for w in other._flat_weights]
    doubled = torch.nn.LSTM(3, 4)
    doubled.load_state_dict({name: 2 * w for name, w in other.state_dict().items()})
    torch.testing.assert_close(lstm(x)[0], doubled(x)[0])
    grads = torch.autograd.grad(lstm(x)[0].sum(), list(other.parameters()))
    assert all(grad.abs().sum() > 0 for grad in grads)
    for name, weight in other.named_parameters():  # a weight that is set anew counts again
        setattr(lstm, name, torch.nn.Parameter(weight.detach()))
    torch.testing.assert_close(lstm(x)[0], other(x)[0])


def test_parameters_of_a_class_of_their_own_print_as_such():
    class Point(torch.nn.Parameter):
        def __repr__(self):
            return torch.Tensor.__repr__(self)

    assert repr(Point(torch.tensor([1.0, 2.0]))) == "Parameter(Point([1., 2.], requires_grad=True))"
    assert "Parameter(" not in repr(torch.nn.Parameter(torch.ones(1)))


def test_loss_scaling_functions():
    grads, found = [torch.tensor([2.0, 4.0]), torch.tensor([6.0])], torch.zeros(())
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, torch.tensor(0.5))
    assert [g.tolist() for g in grads] == [[1.0, 2.0], [3.0]] and found == 0
    grads[1].fill_(float("inf"))
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, torch.tensor(0.5))
    assert found == 1
    scale, tracker = torch.tensor(8.0), torch.tensor(1, dtype=torch.int32)
    torch._amp_update_scale_(scale, tracker, torch.zeros(()), 2.0, 0.5, 2)
    assert scale == 16 and tracker == 0
    torch._amp_update_scale_(scale, tracker, torch.ones(()), 2.0, 0.5, 2)
    assert scale == 8 and tracker == 0
    scale.fill_(torch.finfo(torch.float32).max)
    torch._amp_update_scale_(scale, tracker, torch.zeros(()), 2.0, 0.5, 1)
    assert scale.isfinite()


def test_observers_and_fake_quantisation():
    from rushlight.ao.quantization import FakeQuantizeBase, ObserverBase

    class Watch(ObserverBase):
        def forward(self, x):
            return x

        def calculate_qparams(self):
            return 1.0, 0

    class Round(FakeQuantizeBase):
        def forward(self, x):
            return x.round() if self.fake_quant_enabled[0] == 1 else x

        def calculate_qparams(self):
            return 1.0, 0

    assert Watch.with_args(dtype=torch.qint8)().dtype == torch.qint8
    with pytest.raises(TypeError, match="abstract"):
        ObserverBase(torch.qint8)
    module, x = Round.with_args()(), torch.tensor([0.4, 1.6])
    assert list(module.state_dict()) == ["fake_quant_enabled", "observer_enabled"]
    assert module(x).tolist() == [0.0, 2.0]
    module.disable_fake_quant()
    assert torch.equal(module(x), x)


def test_levels_of_logging():
    torch._logging.set_logs(dynamo=logging.DEBUG, modules={"my.module": logging.ERROR}, recompiles=True)
    assert logging.getLogger("torch._dynamo").level == logging.DEBUG
    assert logging.getLogger("my.module").level == logging.ERROR
    torch._logging.set_logs()
    assert logging.getLogger("torch._dynamo").level == logging.getLogger("my.module").level == logging.NOTSET
    with pytest.raises(ValueError, match="level of dynamo"):
        torch._logging.set_logs(dynamo="loud")
    assert str(torch._logging.LazyString(lambda x: f"<{x}>", 1)) == "<1>"


def test_no_graph_is_captured():
    from rushlight._subclasses.fake_tensor import FakeTensorMode

    assert torch._guards.TracingContext.try_get() is None and torch._guards.active_fake_mode() is None
    mode = FakeTensorMode()
    with mode:
        assert torch._guards.active_fake_mode() is mode
        x = torch.rand(2)
    assert torch._guards.detect_fake_mode([x, 1]) is mode and torch._guards.detect_fake_mode([1]) is None
    assert issubclass(torch._dynamo.exc.Unsupported, RuntimeError)


def test_aten_convolution():
    x, w = torch.rand(1, 2, 5, 5), torch.rand(3, 2, 3, 3)
    got = torch.ops.aten._convolution(
        x, w, None, [2, 2], [1, 1], [1, 1], False, [0, 0], 1, False, False, True, True
    )
    assert torch.equal(got, torch.nn.functional.conv2d(x, w, None, 2, 1))


def test_dispatch_by_a_boolean():
    pool = torch._jit_internal.boolean_dispatch(
        "pair", 1, False, lambda x, pair=False: (x, x), lambda x, pair=False: x, "pools", "pool"
    )
    assert pool(1) == 1 and pool(1, True) == (1, 1) and pool(1, pair=True) == (1, 1)
    assert pool.__name__ == "pool"


def test_shared_memory_is_told():
    x = torch.rand(3)
    assert torch._C._is_alias_of(x, x[1:]) and not torch._C._is_alias_of(x, x.clone())
    seen = []

    def look(a, b):
        seen.append((torch._C._is_alias_of(a, a), torch._C._is_alias_of(a, b), torch._C._is_alias_of(a, x)))
        return a * b

    torch.func.vmap(look)(x, x.clone())
    assert seen == [(True, False, True)]
    assert torch._C._get_default_device() == "cpu"
    assert torch._cast_Long(torch.tensor([1.7])).tolist() == [1]


@pytest.mark.parametrize("own", ["--use-env", None])
def test_launcher_under_its_former_name(tmp_path, own):
    if not torch.distributed.is_available():
        pytest.skip("no process groups in this build")
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys\nopen(__file__ + os.environ['LOCAL_RANK'], 'w').write(repr(sys.argv[1:]))\n"
    )
    command = [sys.executable, "-m", "rushlight.distributed.launch", "--standalone", "--nproc-per-node=2"]
    result = subprocess.run(
        [*command, *([own] if own else []), str(program), "--lr=1"],
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-2000:]
    for rank in "01":
        arguments = ["--lr=1"] if own else [f"--local-rank={rank}", "--lr=1"]
        assert Path(f"{program}{rank}").read_text() == repr(arguments)


def test_modules_with_abstract_methods_are_not_made():
    class Layer(torch.nn.Module, ABC):
        @abstractmethod
        def extra(self): ...

    class Ready(Layer):
        def extra(self):
            return 1

    with pytest.raises(TypeError, match="abstract class Layer .*extra"):
        Layer()
    assert Ready().extra() == 1


def test_a_device_reaches_only_what_takes_one():
    mean, std = torch.zeros(3), torch.ones(3)
    with torch.device("meta"):
        assert torch.fft.fftfreq(4).is_meta and torch.fft.rfftfreq(4).is_meta
        assert torch.normal(0.0, 1.0, (3,)).is_meta is False
        made = [torch.complex(mean, std), torch.polar(std, mean), torch.normal(mean, std)]
    assert not any(tensor.is_meta for tensor in made)


def test_tensors_of_any_dtype_make_tensors():
    class Marked(torch.Tensor):
        def __new__(cls, data):
            return super().__new__(cls, data)

    x = torch.arange(3)
    assert torch.equal(torch.Tensor(x), x) and torch.Tensor(x).data_ptr() == x.data_ptr()
    assert type(Marked(x)) is Marked and Marked(x).dtype == torch.int64
    with pytest.raises(TypeError, match="expected Float"):
        torch.FloatTensor(x)
    with pytest.raises(TypeError, match="expected Float"):
        torch.ones(2).new(x)


def test_remote_calls_in_the_core():
    if not torch.distributed.is_available():
        pytest.skip("no process groups in this build")
    assert torch._C._distributed_rpc.PyRRef is torch.distributed.rpc.RRef
    assert torch._C._distributed_rpc._is_current_rpc_agent_set() is False
    with pytest.raises(RuntimeError, match="RPC has not been initialized"):
        torch._C._distributed_rpc._get_current_rpc_agent()


def test_printing_of_packages():
    printing = torch._tensor_str
    formatter = printing._Formatter(torch.tensor([1.5, 22.25]))
    assert formatter.format(1.5) == " 1.5000" and formatter.width() == 7
    assert printing._Formatter(torch.tensor([100])).format(7) == "  7"
    assert printing._Formatter(torch.tensor([3.0])).format(3.0) == "3."
    text = printing._tensor_str(torch.tensor([1, 2]), 6)
    assert printing._add_suffixes("Index(" + text, ["sorted=True"], 6, force_newline=False) == (
        "Index([1, 2], sorted=True)"
    )
    assert printing._add_suffixes("Index(" + text, ["a", "b"], 6, force_newline=True) == (
        "Index([1, 2],\n      a, b)"
    )
    assert printing._str_intern(torch.ones(2), tensor_contents="[...]") == "tensor([...])"


def test_calls_that_wait_for_a_device():
    called = []
    torch.cuda._lazy_call(lambda: called.append(1))
    assert called == [1] * torch.cuda.is_available()
    if torch.distributed.is_available():
        from rushlight.distributed import distributed_c10d

        assert distributed_c10d._get_global_rank is torch.distributed.get_global_rank


def test_limits_of_powers_of_two():
    facts = torch.finfo(torch.float8_e8m0fnu)  # has no sign
    assert facts.min == facts.tiny == 2.0**-127 and "min=5.87747e-39" in repr(facts)
    assert torch.finfo(torch.float8_e5m2).min == -57344.0


def test_annotations_and_arguments_that_compilers_ask_for():
    internal = torch._jit_internal
    assert internal.is_optional(int | None) and not internal.is_optional(int | str)
    assert internal.get_callable_argument_names(lambda a, /, b, *c, d=1, **e: 0) == ["b"]
    assert internal.get_callable_argument_names(type) == []
    with pytest.raises(AttributeError, match="Invalid attribute '__origin__' for '_OpNamespace' 'aten'"):
        _ = torch.ops.aten.__origin__


def _jacobians_by_parts(t):
    helpers = t.autograd.functional
    x = t.tensor([1.0, 2.0], requires_grad=True)
    single, many = helpers._as_tuple(x, "inputs", "f"), helpers._as_tuple((x, x), "inputs", "f")
    rows = (((x * 2), (x * 3)), ((x * 4), (x * 5)))
    plain = helpers._grad_postprocess(rows, create_graph=False)
    kept = helpers._grad_postprocess(rows[0], create_graph=True)
    parts = [
        helpers._tuple_postprocess(plain, both) for both in ((True, True), (False, True), (False, False))
    ]
    parts += [helpers._tuple_postprocess(plain[0], flag) for flag in (True, False)]
    try:
        helpers._as_tuple(3, "inputs", "jacobian")
    except TypeError as problem:
        parts.append(str(problem))
    facts = [single[0], len(single[1]), many[0], len(many[1]), len(helpers._as_tuple([x, x]))]
    facts += [plain[1][1].requires_grad, kept[1].requires_grad]
    return facts, t.utils._pytree.tree_map_only(t.Tensor, t.Tensor.tolist, parts)


def test_parts_of_jacobians_that_packages_put_together():
    oracle = pytest.importorskip("torch")
    assert _jacobians_by_parts(torch) == _jacobians_by_parts(oracle)
