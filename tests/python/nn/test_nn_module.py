"""Module, containers and hooks against PyTorch's: the same names, messages, printing and order of calls."""

import copy
import gc
import io
import pickle
import warnings
import weakref
from collections import OrderedDict

import pytest

import rushlight
from rushlight import nn

torch = pytest.importorskip("torch")

LIBS = (rushlight, torch)


def both(program):
    """program(lib) of Rushlight and of PyTorch; errors and warnings count as results."""
    results = []
    for lib in LIBS:
        lib.manual_seed(0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = program(lib)
            except Exception as error:
                result = (type(error).__name__, str(error))
        texts = [(w.category.__name__, str(w.message)) for w in caught]
        results.append((result, texts))
    return results


def plain(value):
    """Tensors as lists, so that results of both libraries can be compared."""
    if isinstance(value, LIBS[0].Tensor) or isinstance(value, LIBS[1].Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def same(program):
    (ours, our_warnings), (theirs, their_warnings) = both(program)
    ours, theirs = plain(ours), plain(theirs)
    if isinstance(theirs, str) or (isinstance(theirs, list) and theirs and isinstance(theirs[-1], str)):
        ours = repr(ours).replace("rushlight", "torch")
        theirs = repr(theirs)
    assert ours == theirs
    assert our_warnings == their_warnings


MISUSES = {
    "module arguments": lambda t: t.nn.Module(1),
    "module keywords": lambda t: t.nn.Module(a=1),
    "buffer name type": lambda t: t.nn.Module().register_buffer(3, None),
    "buffer name dot": lambda t: t.nn.Module().register_buffer("a.b", None),
    "buffer name empty": lambda t: t.nn.Module().register_buffer("", None),
    "buffer taken": lambda t: t.nn.Module().register_buffer("training", None),
    "buffer type": lambda t: t.nn.Module().register_buffer("b", 3),
    "parameter name dot": lambda t: t.nn.Module().register_parameter("a.b", None),
    "parameter taken": lambda t: t.nn.Module().register_parameter("train", None),
    "parameter type": lambda t: t.nn.Module().register_parameter("w", 3),
    "child type": lambda t: t.nn.Module().add_module("x", 3),
    "child name type": lambda t: t.nn.Module().add_module(3, None),
    "child name dot": lambda t: t.nn.Module().add_module("a.b", None),
    "child taken": lambda t: t.nn.Module().add_module("train", None),
    "no forward": lambda t: t.nn.Module()(1),
    "no attribute": lambda t: t.nn.Module().foo,
    "get_submodule": lambda t: t.nn.Linear(2, 3).get_submodule("a.b"),
    "get_submodule not a module": lambda t: t.nn.Linear(2, 3).get_submodule("weight"),
    "get_parameter": lambda t: t.nn.Sequential(t.nn.Linear(2, 3)).get_parameter("0.foo"),
    "get_parameter not one": lambda t: t.nn.Linear(2, 3).get_parameter("in_features"),
    "get_buffer": lambda t: t.nn.Linear(2, 3).get_buffer("weight"),
    "set_submodule empty": lambda t: t.nn.Linear(2, 3).set_submodule("", t.nn.ReLU()),
    "set_submodule strict": lambda t: t.nn.Linear(2, 3).set_submodule("a", t.nn.ReLU(), strict=True),
    "set_submodule type": lambda t: t.nn.Linear(2, 3).set_submodule("a", 3),
    "get_extra_state": lambda t: t.nn.Linear(2, 3).get_extra_state(),
    "assign plain to parameter": lambda t: setattr(t.nn.Linear(2, 3), "weight", 3),
    "assign plain to child": lambda t: setattr(t.nn.Sequential(t.nn.ReLU()), "0", 3),
    "assign plain to buffer": lambda t: setattr(t.nn.BatchNorm1d(3), "running_mean", 3),
    "load no dict": lambda t: t.nn.Linear(2, 3).load_state_dict(3),
    "load differences": lambda t: t.nn.Linear(2, 3).load_state_dict({"foo": 1, "weight": t.zeros(5)}),
    "load no tensor": lambda t: t.nn.Linear(2, 3).load_state_dict({"weight": 3, "bias": t.zeros(3)}),
    "train mode": lambda t: t.nn.Linear(2, 3).train("x"),
    "to integer": lambda t: t.nn.Linear(2, 3).to(t.int32),
    "sequential item": lambda t: t.nn.Sequential(3),
    "sequential index": lambda t: t.nn.Sequential(t.nn.ReLU())[3],
    "sequential add": lambda t: t.nn.Sequential(t.nn.ReLU()) + 3,
    "sequential times": lambda t: t.nn.Sequential(t.nn.ReLU()) * 0,
    "sequential insert": lambda t: t.nn.Sequential(t.nn.ReLU()).insert(9, t.nn.ReLU()),
    "list item": lambda t: t.nn.ModuleList([3]),
    "list index": lambda t: t.nn.ModuleList([])[0],
    "list extend": lambda t: t.nn.ModuleList([t.nn.ReLU()]).extend(3),
    "list call": lambda t: t.nn.ModuleList()(3),
    "dict update": lambda t: t.nn.ModuleDict(3),
    "dict update item": lambda t: t.nn.ModuleDict([3]),
    "dict update length": lambda t: t.nn.ModuleDict([(1, 2, 3)]),
    "parameter list index": lambda t: t.nn.ParameterList()[0],
    "parameter list call": lambda t: t.nn.ParameterList()(3),
    "parameter dict key": lambda t: t.nn.ParameterDict({1: 2}),
    "parameter dict missing": lambda t: t.nn.ParameterDict()["a"],
    "lazy shape": lambda t: t.nn.LazyLinear(3).weight.shape,
}


@pytest.mark.parametrize("program", MISUSES.values(), ids=MISUSES)
def test_misuse_is_refused_with_pytorchs_message(program):
    same(program)


@pytest.mark.parametrize("attribute", ["Linear", "Parameter", "Buffer"])
def test_assigning_before_init_is_refused(attribute):
    def program(t):
        value = t.nn.Linear(1, 1) if attribute == "Linear" else getattr(t.nn, attribute)(t.zeros(1))

        class Forgot(t.nn.Module):
            def __init__(self):
                self.x = value

        return Forgot()

    same(program)


def make_net(t):
    class Block(t.nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm = t.nn.LayerNorm(width)
            self.mlp = t.nn.Sequential(
                t.nn.Linear(width, 2 * width), t.nn.GELU(), t.nn.Linear(2 * width, width)
            )
            self.register_buffer("scale", t.ones(1))
            self.register_buffer("scratch", t.zeros(2), persistent=False)

        def forward(self, x):
            return x + self.mlp(self.norm(x)) * self.scale

    class Net(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = t.nn.Embedding(7, 4, padding_idx=0)
            self.layers = t.nn.ModuleList([Block(4) for _ in range(3)])
            self.heads = t.nn.ModuleDict({"a": t.nn.Linear(4, 2), "b": t.nn.Linear(4, 3, bias=False)})
            self.tied = self.heads["a"]
            self.temperature = t.nn.Parameter(t.ones(()))
            self.extra = t.nn.ParameterList([t.nn.Parameter(t.zeros(2)), t.nn.Parameter(t.ones(1, 2))])

        def forward(self, i):
            x = self.embed(i)
            for layer in self.layers:
                x = layer(x)
            return self.heads["a"](x) / self.temperature

    t.manual_seed(3)
    return Net()


def test_printing():
    same(lambda t: repr(make_net(t)))
    same(lambda t: repr(t.nn.Sequential(OrderedDict(first=t.nn.ReLU(True), second=t.nn.Dropout(0.1)))))
    same(lambda t: repr(t.nn.ParameterDict({"a": t.nn.Parameter(t.zeros(2, 3)), "b": 5})))


def test_walks_and_state_dict_have_pytorchs_names_and_order():
    def names(t):
        net = make_net(t)
        walks = [
            [n for n, _ in net.named_modules()],
            [n for n, _ in net.named_modules(remove_duplicate=False)],
            [n for n, _ in net.named_parameters()],
            [n for n, _ in net.named_parameters("p", remove_duplicate=False)],
            [n for n, _ in net.named_buffers()],
            [n for n, _ in net.named_children()],
            [n for n, _ in net.layers[0].named_parameters(recurse=False)],
        ]
        state = net.state_dict()
        return [*walks, list(state), {k: v["version"] for k, v in state._metadata.items()}]

    same(names)


def test_equal_seeds_give_equal_weights_outputs_and_gradients():
    def program(t):
        net = make_net(t)
        net(t.tensor([[1, 2, 0], [3, 6, 5]])).sum().backward()
        return [net.state_dict(), {n: None if p.grad is None else p.grad for n, p in net.named_parameters()}]

    (ours, _), (theirs, _) = both(program)
    for mine, reference in zip(ours, theirs):
        assert list(mine) == list(reference)
        for name, value in reference.items():
            if value is None:
                assert mine[name] is None
            else:
                torch.testing.assert_close(torch.tensor(mine[name].tolist()), value, rtol=1e-5, atol=1e-6)


def test_state_dict_goes_there_and_back():
    net, other = make_net(rushlight), make_net(rushlight)
    with rushlight.no_grad():
        for p in net.parameters():
            p.add_(1)
    assert repr(other.load_state_dict(net.state_dict())) == "<All keys matched successfully>"
    assert plain(other.state_dict()) == plain(net.state_dict())
    kept = other.temperature
    other.load_state_dict({k: v.clone() for k, v in net.state_dict().items()}, assign=True)
    assert other.temperature is not kept and isinstance(other.temperature, nn.Parameter)
    keys = other.load_state_dict({"nope": rushlight.zeros(1)}, strict=False)
    assert keys.unexpected_keys == ["nope"] and "temperature" in keys.missing_keys


def test_state_dict_hooks_run_in_pytorchs_order():
    def program(t):
        log = []
        net = t.nn.Sequential(t.nn.Linear(1, 1), t.nn.ReLU())
        net.register_state_dict_pre_hook(lambda m, prefix, keep: log.append(("pre", prefix, keep)))
        net[0].register_state_dict_post_hook(lambda m, d, prefix, meta: log.append(("post", list(d), prefix)))
        net[0].register_load_state_dict_pre_hook(
            lambda m, d, prefix, *a: log.append(("load", list(d), prefix))
        )
        net.register_load_state_dict_post_hook(
            lambda m, keys: log.append(("loaded", list(keys.missing_keys)))
        )
        net.load_state_dict(net.state_dict())
        return log

    same(program)


def test_extra_state():
    def program(t):
        class Counter(t.nn.Linear):
            def get_extra_state(self):
                return {"n": 5}

            def set_extra_state(self, state):
                self.n = state["n"]

        a, b = Counter(1, 1), t.nn.Sequential(Counter(1, 1))
        b.load_state_dict({f"0.{k}": v for k, v in a.state_dict().items()})
        missing = b.load_state_dict({}, strict=False).missing_keys
        return [list(a.state_dict()), b[0].n, missing]

    same(program)


def test_forward_hooks():
    def program(t):
        log = []

        def pre(m, args):
            log.append("pre")
            return args[0] + 1

        def pre_kwargs(m, args, kwargs):
            log.append(("pre kwargs", sorted(kwargs)))
            return args, {"scale": 3.0}

        class M(t.nn.Module):
            def forward(self, x, scale=1.0):
                return x * scale

        m = M()
        m.register_forward_pre_hook(pre)
        m.register_forward_pre_hook(pre_kwargs, with_kwargs=True, prepend=True)
        handle = m.register_forward_hook(lambda m, args, out: out * 10)
        m.register_forward_hook(
            lambda m, args, kwargs, out: log.append((kwargs, plain(out))), with_kwargs=True
        )
        first = m(t.ones(2), scale=2.0)
        handle.remove()
        with m.register_forward_hook(lambda *a: log.append("within")):
            second = m(t.ones(2))
        return [plain(first), plain(second), plain(m(t.ones(2))), log]

    same(program)


def test_a_single_forward_hook():
    """It is called without a Python frame of the module's own."""

    def program(t):
        log = []

        class M(t.nn.Module):
            def forward(self, x, *, scale=1.0):
                return x * scale

        def failing(m, args, out):
            raise ValueError("from the hook")

        def removes_itself(m, args, out):
            handle.remove()
            return out + 1

        m, x = M(), t.ones(2)
        handle = m.register_forward_hook(lambda m, args, out: log.append((len(args), plain(out))))
        log.append(plain(m(x, scale=3.0)))
        handle.remove()
        handle = m.register_forward_hook(removes_itself)
        log += [plain(m(x)), plain(m(x))]
        with m.register_forward_hook(lambda m, args, kwargs, out: out + kwargs["scale"], with_kwargs=True):
            log.append(plain(m(x, scale=2.0)))
        with m.register_forward_hook(failing), pytest.raises(ValueError, match="from the hook"):
            m(x)
        return [*log, plain(m(x))]

    same(program)


def test_always_called_hook_runs_when_forward_fails():
    def program(t):
        log = []

        class M(t.nn.Module):
            def forward(self, x):
                raise RuntimeError("from forward")

        m = M()
        m.register_forward_hook(lambda m, args, out: log.append("never"))
        m.register_forward_hook(lambda m, args, out: log.append(out), always_call=True)
        try:
            m(1)
        except RuntimeError as error:
            log.append(str(error))
        return [log, "end"]

    same(program)


def test_global_hooks():
    def program(t):
        module = t.nn.modules.module
        log = []
        handles = [
            module.register_module_forward_pre_hook(lambda m, a: log.append(("pre", type(m).__name__))),
            module.register_module_forward_hook(lambda m, a, o: log.append(("post", type(m).__name__))),
            module.register_module_parameter_registration_hook(lambda m, n, p: log.append(("param", n))),
            module.register_module_module_registration_hook(lambda m, n, c: log.append(("child", n))),
            module.register_module_buffer_registration_hook(lambda m, n, b: log.append(("buffer", n))),
        ]
        try:
            t.nn.Sequential(t.nn.Linear(1, 1), t.nn.ReLU())(t.ones(1, 1))
            t.nn.BatchNorm1d(2)
        finally:
            for handle in handles:
                handle.remove()
        t.nn.Sequential(t.nn.Linear(1, 1))(t.ones(1, 1))
        return [log, "end"]

    same(program)


@pytest.mark.parametrize("input_needs_grad", [True, False])
def test_full_backward_hooks(input_needs_grad):
    def program(t):
        log = []
        m = t.nn.Linear(2, 2)
        with t.no_grad():
            m.weight.copy_(t.tensor([[1.0, 2.0], [3.0, 4.0]]))
        m.register_full_backward_pre_hook(lambda m, g: log.append(("pre", plain(g))))
        m.register_full_backward_pre_hook(lambda m, g: (g[0] * 2,))
        m.register_full_backward_hook(lambda m, gi, go: log.append((plain(gi), plain(go))))
        if input_needs_grad:
            m.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10,))
        x = t.ones(1, 2, requires_grad=input_needs_grad)
        m(x).sum().backward()
        return [log, plain(x.grad), plain(m.weight.grad)]

    same(program)


def test_old_backward_hooks():
    def program(t):
        log = []
        m = t.nn.Sigmoid()
        m.register_backward_hook(lambda m, gi, go: log.append((plain(gi), plain(go))))
        x = t.ones(2, requires_grad=True)
        m(x * 1).sum().backward()
        try:
            m.register_full_backward_hook(lambda *a: None)
        except RuntimeError as error:
            log.append(str(error))
        return [len(log), log[-1]]

    same(program)


def test_containers_behave_as_lists_and_dictionaries():
    def program(t):
        def names(seq):
            return [(n, type(m).__name__) for n, m in seq.named_children()]

        relu, tanh, sigmoid, gelu = t.nn.ReLU(), t.nn.Tanh(), t.nn.Sigmoid(), t.nn.GELU()
        seq = t.nn.Sequential(relu, tanh).append(sigmoid).insert(1, gelu)
        out = [
            names(seq),
            names(seq[1:3]),
            names(seq + t.nn.Sequential(gelu)),
            names(t.nn.Sequential(relu) * 3),
        ]
        del seq[0]
        seq[-1] = relu
        out += [names(seq), type(seq.pop(0)).__name__, names(seq), len(seq), names(seq.extend([gelu, gelu]))]
        lst = t.nn.ModuleList([relu, tanh])
        lst.insert(0, gelu)
        lst += [sigmoid]
        del lst[1:3]
        out += [names(lst), names(lst[:1]), names(lst + [relu]), type(lst[-1]).__name__, dir(lst)[:0]]
        dct = t.nn.ModuleDict([("x", relu), ("y", tanh)])
        dct.update({"z": gelu})
        out += [list(dct.keys()), type(dct.pop("x")).__name__, "y" in dct, names(dct)]
        params = t.nn.ParameterDict({"a": t.zeros(1)})
        params |= {"b": t.ones(1)}
        out += [list(params), isinstance(params["a"], t.nn.Parameter), plain(params.setdefault("c", 5))]
        out += [[k for k, _ in (params | {"d": 1}).items()], params.popitem()[0], list(reversed(params))]
        listed = t.nn.ParameterList([t.zeros(1), "text"])
        listed.append(t.ones(2))
        out += [len(listed), [n for n, _ in listed.named_parameters()], listed[1], plain(listed[-1])]
        return out

    same(program)


def test_attributes_move_between_kinds():
    def program(t):
        m = t.nn.Module()
        m.x = t.nn.Parameter(t.ones(1))
        m.x = None
        out = [m.x, dict(m._parameters)]
        m.x = t.nn.Parameter(t.ones(1))
        m.register_buffer("b", t.zeros(1))
        m.b = t.ones(2)
        out += [list(m._buffers), plain(m.b)]
        m.b = t.nn.ReLU()
        out += [list(m._buffers), list(m._modules)]
        m.buf = t.nn.Buffer(t.ones(1), persistent=False)
        out += [
            list(m._buffers),
            list(m.state_dict()),
            isinstance(m.buf, t.nn.Buffer),
            type(m.buf) is t.Tensor,
        ]
        del m.b, m.x
        out += [[n for n in dir(m) if n in ("b", "x", "buf")]]
        m.plain = t.ones(1)
        out += [list(m._buffers), "plain" in m.__dict__]
        return out

    same(program)


def test_conversion_keeps_parameters_and_converts_gradients():
    net = make_net(rushlight)
    net(rushlight.tensor([[1, 2]])).sum().backward()
    before = dict(net.named_parameters())
    assert net.double() is net
    for name, param in net.named_parameters():
        assert param is before[name] and param.dtype == rushlight.float64
        assert param.grad is None or param.grad.dtype == rushlight.float64
    assert net.layers[0].scale.dtype == rushlight.float64
    assert nn.BatchNorm1d(2).to(rushlight.float64).num_batches_tracked.dtype == rushlight.int64
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    assert not any(p.requires_grad for p in net.requires_grad_(False).parameters())


def test_meta_modules_are_filled_by_to_empty():
    meta = nn.Linear(2, 3, device="meta")
    with pytest.raises(NotImplementedError, match="to_empty"):
        meta.to("cpu")
    real = meta.to_empty(device="cpu")
    assert real.weight.device.type == "cpu" and tuple(real.weight.shape) == (3, 2)
    assert tuple(nn.utils.skip_init(nn.Linear, 2, 3).weight.shape) == (3, 2)


def test_copy_and_pickle():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.ReLU())
    x = rushlight.ones(2, 2)
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert plain(twin(x)) == plain(net(x)) or plain(twin.state_dict()) == plain(net.state_dict())
        assert twin[0].weight is not net[0].weight and isinstance(twin[0].weight, nn.Parameter)
    file = io.BytesIO()
    rushlight.save(net.state_dict(), file)
    file.seek(0)
    assert plain(rushlight.load(file)) == plain(net.state_dict())


def test_tied_parameters_stay_tied_in_a_copy():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    twin = copy.deepcopy(net)
    assert twin[0].weight is twin[1].weight and len(list(twin.parameters())) == 3


def test_an_error_tells_the_path_of_its_module():
    net = make_net(rushlight)
    net.layers[1].mlp[2] = nn.Linear(5, 4)
    with pytest.raises(RuntimeError) as caught:
        net(rushlight.tensor([[1]]))
    assert caught.value.__notes__[-1] == "in module layers.1.mlp.2 (Linear)"
    with pytest.raises(RuntimeError) as caught:
        nn.Linear(2, 3)(rushlight.zeros(1, 3))
    assert caught.value.__notes__[-1] == "in module Linear"


def test_lazy_modules_take_their_sizes_from_the_first_input():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    assert net[3].has_uninitialized_params() and "in_features=0" in repr(net)
    net(rushlight.zeros(2, 3, 5, 5))
    assert [type(m) for m in net] == [nn.Conv2d, nn.BatchNorm2d, nn.Flatten, nn.Linear]
    assert tuple(net[0].weight.shape) == (4, 3, 3, 3) and net[3].in_features == 36


def test_a_lazy_layer_with_loaded_weights_knows_its_sizes():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer = nn.LazyLinear(2)
    layer.load_state_dict(nn.Linear(3, 2).state_dict())
    with pytest.raises(AssertionError, match="inferred from input: 4 is not equal to in_features .*: 3"):
        layer(rushlight.zeros(1, 4))
    layer(rushlight.zeros(1, 3))
    assert type(layer) is nn.Linear and layer.in_features == 3


def test_a_module_is_freed_without_the_collector():
    gc.disable()
    try:
        net = nn.Sequential(nn.Linear(1, 1), nn.ReLU())
        alive = weakref.ref(net[0])
        del net
        assert alive() is None
    finally:
        gc.enable()
