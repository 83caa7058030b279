"""Over every operator row: what an operator writes to is marked, in its schema or on its record. Passes that
drop, merge or move calls rely on it."""

import engine
import pytest
from loader import each, main_dtype, samples

import rushlight as rl
from rushlight.export import UnsupportedError, load_file, save_file
from rushlight.utils._python_dispatch import TorchDispatchMode


class Watch(TorchDispatchMode):
    """Keeps what calls have written to without a mark."""

    def __init__(self):
        super().__init__()
        self.calls, self.found = 0, []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        parameters = function._schema.arguments
        named = dict(zip((p.name for p in parameters), args)) | (kwargs or {})
        unmarked = function.traits.writes_unmarked
        watched = []
        for i, p in enumerate(parameters):
            if (p.alias_info is None or not p.alias_info.is_write) and not unmarked >> i & 1:
                watched += [(p.name, t, held(t)) for t in engine.flatten([named.get(p.name)]) if dense(t)]
        result = function(*args, **(kwargs or {}))
        self.calls += 1
        self.found += [f"{function} writes to {name}" for name, t, before in watched if held(t) != before]
        return result


def dense(value):
    return isinstance(value, rl.Tensor) and value.layout == rl.strided and not value.is_quantized


def held(tensor):
    values = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return tensor._version, values.flatten().view(rl.uint8).tolist()


@each("meta")
def test_what_is_written_is_marked(row):
    function = engine.resolve(rl, row.name)
    for sample in samples(row):
        args, kwargs = engine.arguments(rl, sample, main_dtype(row))
        with Watch() as watch, rl.no_grad():
            function(*args, **kwargs)
        assert not watch.found


class Watched(rl.nn.Module):
    """Reads a statistic that a call with an unused result has moved."""

    def __init__(self, call):
        super().__init__()
        self.call = call
        self.register_buffer("mean", rl.zeros(3))
        self.register_buffer("var", rl.ones(3))

    def forward(self, x):
        self.call(x, self.mean, self.var)
        return x + self.mean[:, None, None]


FORMS = {
    "batch_norm": lambda x, m, v: rl.nn.functional.batch_norm(x, m, v, training=True),
    "instance_norm": lambda x, m, v: rl.nn.functional.instance_norm(x, m, v, use_input_stats=True),
    "native": lambda x, m, v: rl.native_batch_norm(x, None, None, m, v, True, 0.1, 1e-5),
    "update": lambda x, m, v: rl.batch_norm_update_stats(x, m, v, 0.1),
}


@pytest.mark.parametrize("form", FORMS)
def test_files_keep_statistics_that_move(form, tmp_path):
    x = rl.randn(2, 3, 4, 4)
    with pytest.raises(UnsupportedError, match=r"writes to its own tensor 'mean'.*call eval\(\)"):
        save_file(Watched(FORMS[form]), tmp_path / "model.rl", (x,))
    save_file(Watched(FORMS[form]), tmp_path / "model.rl", (x,), state=True)
    session, eager = load_file(tmp_path / "model.rl").session(), Watched(FORMS[form])
    for _ in range(3):
        assert rl.allclose(session(x), eager(x), atol=1e-6)
