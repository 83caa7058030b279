"""Models that keep state: several methods in one file, sessions, and what damaged files say."""

import pathlib
import subprocess
import sys
import threading

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.export import Dim, UnsupportedError, load_file, save_file

RUNNER = pathlib.Path(torch.__file__).parent / "bin" / "rushlight-run"
needs_runner = pytest.mark.skipif(not RUNNER.exists(), reason="rushlight-run is not built here")


class Counter(nn.Module):
    """Sums what it was given, in ordinary code."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.arange(4.0))
        self.register_buffer("total", torch.full((4,), 10.0))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def add(self, x):
        self.total += x.sum(0) * self.weight
        self.seen.add_(x.shape[0])
        return self.total, self.seen

    def mean(self):
        return (self.total - 10) / self.seen

    def twice(self, x):
        return x * 2 * self.weight


class Decoder(nn.Module):
    """Attention over a cache that is written in place."""

    def __init__(self, batch=4, length=16, width=8):
        super().__init__()
        self.inner = nn.Linear(width, 2 * width)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(batch, 2, length, width // 2), persistent=False)

    def forward(self, x, positions, reach):
        n, length, width = x.shape
        k, v = self.inner(x).view(n, length, 4, width // 2).transpose(1, 2).chunk(2, 1)
        self.keys[:n].index_copy_(2, positions, k)
        self.values[:n].index_copy_(2, positions, v)
        q = x.view(n, length, 2, width // 2).transpose(1, 2)
        mask = reach[None] <= positions[:, None]
        total = reach.shape[0]
        keys, values = self.keys[:n, :, :total], self.values[:n, :, :total]
        return nn.functional.scaled_dot_product_attention(q, keys, values, attn_mask=mask)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def save_counter(path):
    module = Counter()
    program = {"add": module.add, "mean": module.mean, "twice": module.twice}
    x = torch.ones(3, 4)
    shapes = {"add": ({0: Dim("N", max=100)},)}
    save_file(program, path, {"add": (x,), "mean": (), "twice": (x,)}, dynamic_shapes=shapes)
    assert module.seen == 0 and module.total[0] == 10  # export computes nothing
    return module


def test_methods_share_state_and_weights(tmp_path):
    module = save_counter(tmp_path / "m.rl")
    model = load_file(tmp_path / "m.rl")
    assert model.methods == ["add", "mean", "twice"]
    assert model.state == {"total": "float32[4]", "seen": "int64[]"}
    assert model.signature("add")[0] == {"x": "float32[N, 4]"}
    assert str(model).count('constant("weight")') == 2
    session = model.session()
    assert session.nbytes == 24
    for n in (3, 1, 7):
        x = torch.randn(n, 4)
        for found, expected in zip(session.add(x), module.add(x)):
            torch.testing.assert_close(found, expected.detach())
    torch.testing.assert_close(session.mean(), module.mean().detach())
    assert torch.equal(session.twice(x[:3].expand(3, 4)), module.twice(x[:3]).detach())
    assert torch.equal(model.twice(torch.ones(3, 4)), module.twice(torch.ones(3, 4)).detach())
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        session.other()


def test_sessions_are_apart_and_begin_again(tmp_path):
    save_counter(tmp_path / "m.rl")
    model = load_file(tmp_path / "m.rl")
    a, b = model.session(), model.session()
    total, seen = a.add(torch.ones(2, 4))
    c = a.clone()
    a.add(torch.ones(5, 4))
    assert total.tolist() == [10, 12, 14, 16] and seen == 2  # results are no views of the state
    assert a.state["seen"] == 7 and b.state["seen"] == 0 and c.state["seen"] == 2
    assert c.call("add", x=torch.ones(1, 4))["output_1"] == 3
    a.reset()
    assert a.state["seen"] == 0 and a.state["total"].tolist() == [10] * 4
    a.state["seen"].fill_(40)
    assert a.add(torch.ones(2, 4))[1] == 42
    with pytest.raises(ValueError, match=r"'add' writes to the state 'total': call it in a session"):
        model.add(torch.ones(1, 4))


def test_a_cache_is_written_where_it_lies(tmp_path):
    module, path = Decoder().eval(), tmp_path / "d.rl"
    x, positions, reach = torch.randn(2, 3, 8), torch.arange(3), torch.arange(8)
    shapes = ({0: Dim("B", max=4), 1: Dim("N", max=16)}, {0: Dim("N", max=16)}, {0: Dim("T", max=16)})
    save_file({"decode": module}, path, {"decode": (x, positions, reach)}, dynamic_shapes={"decode": shapes})
    model = load_file(path)
    assert path.stat().st_size < 6000  # zeros of the state take no room
    text = str(model)
    assert "index_copy_(" in text and "clone" not in text
    session = model.session()
    where = {name: t.data_ptr() for name, t in session.state.items()}
    at = 0
    for n in (3, 1, 1, 5):
        x = torch.randn(2, n, 8)
        positions, reach = torch.arange(at, at + n), torch.arange((at + n + 3) // 4 * 4)
        with torch.no_grad():
            torch.testing.assert_close(session(x, positions, reach), module(x, positions, reach))
        at += n
    assert where == {name: t.data_ptr() for name, t in session.state.items()}
    assert torch.equal(session.state["keys"], module.keys)
    lone = model.session()
    assert lone(x[:1], positions - at + n, reach).shape == (1, 2, 5, 4)
    assert lone.state["keys"][1].count_nonzero() == 0


def test_threads_have_sessions_of_their_own(tmp_path):
    save_counter(tmp_path / "m.rl")
    model, found = load_file(tmp_path / "m.rl"), {}

    def work(i):
        session = model.session()
        for _ in range(50):
            found[i] = session.add(torch.full((2, 4), float(i)))

    shared = model.session()
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    threads += [
        threading.Thread(target=lambda: [shared.add(torch.ones(1, 4)) for _ in range(50)]) for _ in range(2)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [found[i][0].tolist() for i in range(4)] == [
        [10 + 100 * i * k for k in range(4)] for i in range(4)
    ]
    assert shared.state["seen"] == 100


def test_modules_that_share_tensors_share_state(tmp_path):
    class Writer(nn.Module):
        def __init__(self, cache, weight):
            super().__init__()
            self.register_buffer("mine", cache)
            self.weight = weight

        def forward(self, x):
            self.mine.copy_(x @ self.weight)
            return x.sum()

    class Reader(nn.Module):
        def __init__(self, cache, weight):
            super().__init__()
            self.register_buffer("theirs", cache)
            self.other = weight

        def forward(self, x):
            return self.theirs + x @ self.other

    cache, weight = torch.zeros(4, 4), nn.Parameter(torch.randn(4, 4))
    x = torch.randn(4, 4)
    program = {"write": Writer(cache, weight), "read": Reader(cache, weight)}
    save_file(program, tmp_path / "m.rl", {"write": (x,), "read": (x,)})
    model = load_file(tmp_path / "m.rl")
    assert list(model.state) == ["mine"] and str(model).count('constant("weight")') == 2
    session = model.session()
    session.write(x)
    torch.testing.assert_close(session.read(x), (2 * x @ weight).detach())


STATIC_CACHE = r"""
import sys
import torch
from rushlight.export import Dim, load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

class Decoder(torch.nn.Module):
    def __init__(self, model, length):
        super().__init__()
        self.model, config = model, model.config
        self.cache = StaticCache(config, max_cache_len=length)
        self.cache.early_initialization(1, 2, 8, torch.float32, torch.device("cpu"))

    def forward(self, tokens):
        return self.model(tokens, past_key_values=self.cache, use_cache=True).logits[:, -1]

torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=64,
)
model = LlamaForCausalLM(config).eval()
decoder = Decoder(model, 32)
prompt = torch.randint(0, 97, (1, 5))
path = sys.argv[1]
save_file({"prefill": decoder, "decode": decoder}, path, {"prefill": (prompt,), "decode": (prompt[:, :1],)})
file = load_file(path)
print(sorted(file.state))
session = file.session()
tokens = [session.prefill(prompt).argmax(-1).item()]
for _ in range(11):
    tokens.append(session.decode(torch.tensor([[tokens[-1]]])).argmax(-1).item())
expected = model.generate(prompt, max_new_tokens=12, do_sample=False, eos_token_id=None, pad_token_id=0)
print(tokens == expected[0, 5:].tolist())
"""


def test_a_static_cache_of_transformers(tmp_path):
    pytest.importorskip("transformers")
    command = [sys.executable, "-m", "rushlight", "-c", STATIC_CACHE, str(tmp_path / "lm.rl")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    state, same = done.stdout.splitlines()
    layers = [f"cache.layers.{i}.{what}" for i in (0, 1) for what in ("cumulative_length", "keys", "values")]
    assert state == str(layers) and same == "True"


def test_what_cannot_be_state_says_so(tmp_path):
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            whole = torch.zeros(8)
            self.register_buffer("first", whole[:6])
            self.register_buffer("last", whole[2:])

        def forward(self, x):
            self.first.add_(x)
            return self.last + x

    with pytest.raises(UnsupportedError, match=r"line \d+: .*'first', which shares memory with 'last'"):
        save_file({"run": Shared()}, tmp_path / "m.rl", {"run": (torch.ones(6),)})
    with pytest.raises(ValueError, match="args has 'go', but there is no such method"):
        save_file({"run": Shared()}, tmp_path / "m.rl", {"go": (torch.ones(6),)})
    with pytest.raises(TypeError, match="args of several methods must be a dict"):
        save_file({"run": Shared()}, tmp_path / "m.rl", (torch.ones(6),))
    assert not list(tmp_path.iterdir())


def test_one_module_may_have_state_too(tmp_path):
    class Average(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("average", torch.zeros(3))

        def forward(self, x):
            return x - self.average.lerp_(x.mean(0), 0.5)

    module = Average()
    save_file(module, tmp_path / "m.rl", (torch.randn(5, 3),), state=True)
    session = load_file(tmp_path / "m.rl").session()
    for _ in range(3):
        x = torch.randn(5, 3)
        torch.testing.assert_close(session(x), module(x))
    torch.testing.assert_close(session.state["average"], module.average)


def test_texts_go_with_a_model(tmp_path):
    save_file(nn.Linear(2, 2), tmp_path / "m.rl", (torch.ones(1, 2),), texts={"a.json": "{}", "b": b"\0\xff"})
    assert load_file(tmp_path / "m.rl").texts == {"a.json": b"{}", "b": b"\0\xff"}
    with pytest.raises(ValueError, match="needs a name of 1 to 14 letters"):
        save_file(nn.Linear(2, 2), tmp_path / "n.rl", (torch.ones(1, 2),), texts={"a" * 15: ""})


@needs_runner
def test_the_runner_calls_methods_in_one_session(tmp_path):
    numpy = pytest.importorskip("numpy")
    save_counter(tmp_path / "m.rl")
    numpy.save(tmp_path / "x.npy", numpy.ones((3, 4), "float32"))
    x, y = tmp_path / "x.npy", tmp_path / "y.npy"
    shown = subprocess.run([RUNNER, tmp_path / "m.rl"], capture_output=True, text=True, timeout=60).stdout
    assert "method mean\n" in shown and "state\n  total: float32[4]\n  seen: int64[]\n" in shown
    add = ["--method", "add", "--input", x]
    command = [RUNNER, tmp_path / "m.rl", *add, *add, "--method=mean", "--output", y, "--repeat", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "median of 3 runs" in done.stdout, done.stderr
    assert numpy.load(y).tolist() == [0, 1, 2, 3]
    command = [RUNNER, tmp_path / "m.rl", "--method", "gone"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "no method 'gone'; the model has add, mean, twice" in done.stderr


# --- damage -----------------------------------------------------------------------------------------


def test_a_damaged_state_is_one_error(tmp_path):
    path, bad = tmp_path / "m.rl", tmp_path / "bad.rl"
    save_counter(path)
    good = path.read_bytes()
    where = good.index(b'"total" float32 [4]')

    def refused(change, message, mend=True):
        content = bytearray(good)
        change(content)
        bad.write_bytes(_with_checksums(bytes(content)) if mend else bytes(content))
        with pytest.raises(RuntimeError, match=message):
            load_file(bad)

    def put(old, new):
        assert len(old) == len(new) and good.count(old) == 1
        return lambda content: content.__setitem__(slice(good.index(old), good.index(old) + len(old)), new)

    refused(lambda c: c.__setitem__(where, 0), "section 'state' is damaged: the checksum differs", mend=False)
    refused(put(b'"total" float32 [4]', b'"total" float32 [5]'), "takes the state 'total' for float32\\[4\\]")
    refused(put(b'"total" float32 [4]', b'"totel" float32 [4]'), "uses the state 'total', which is not in")
    refused(put(b'"seen" int64 [] zeros', b'"seen" int64 [] zebra'), "section 'state': .*damaged")
    refused(put(b'"seen" int64 [] zeros', b'"seen" int64 [] -1000'), "section 'state': .*damaged")
    refused(put(b'"add"\n"mean"\n', b'"add"\n"add"\n\n'), "list of the methods is damaged")


def _with_checksums(content):
    import struct

    content, checksum = bytearray(content), torch._C._model_checksum
    count = struct.unpack_from("<I", content, 12)[0]
    for i in range(count):
        offset, size = struct.unpack_from("<QQ", content, 32 + 40 * i + 16)
        struct.pack_into("<Q", content, 32 + 40 * i + 32, checksum(bytes(content[offset : offset + size])))
    struct.pack_into("<Q", content, 24, 0)
    struct.pack_into("<Q", content, 24, checksum(bytes(content[: 32 + 40 * count])))
    return bytes(content)
