"""More programs for failing_memory.py and leaks.py: quantised models, generation, checkpoints, layouts.

`PROGRAMS` maps a name to what makes a program, given the library.
"""

import io
import os
import pathlib
import sys
import tempfile

HELPERS = str(pathlib.Path(__file__).resolve().parents[1] / "python" / "helpers")
TOKENIZER = '{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}}'


def dynamically_quantised(rl):
    x = rl.randn(3, 2, 8)

    def run():
        rl.manual_seed(0)
        net = rl.nn.Sequential(rl.nn.Linear(8, 6), rl.nn.ReLU(), rl.nn.LSTM(6, 4))
        quantised = rl.ao.quantization.quantize_dynamic(net, {rl.nn.Linear, rl.nn.LSTM})
        out, (hidden, _) = quantised(x)
        return [out, hidden]

    return run


def statically_quantised(rl):
    """Prepared, calibrated, converted, saved and read again."""
    quantization = rl.ao.quantization
    x = rl.randn(2, 3, 6, 6)

    def run():
        rl.manual_seed(0)
        inner = rl.nn.Sequential(rl.nn.Conv2d(3, 4, 3), rl.nn.BatchNorm2d(4), rl.nn.ReLU())
        net = quantization.QuantWrapper(rl.nn.Sequential(inner, rl.nn.Flatten(), rl.nn.Linear(64, 5))).eval()
        net = quantization.fuse_modules(net, [["module.0.0", "module.0.1", "module.0.2"]])
        net.qconfig = quantization.get_default_qconfig("x86")
        prepared = quantization.prepare(net)
        prepared(x)
        made = quantization.convert(prepared)
        stream = io.BytesIO()
        rl.save(made.state_dict(), stream)
        stream.seek(0)
        made.load_state_dict(rl.load(stream, weights_only=False))
        return [made(x)]

    return run


def quantised_file(rl):
    folder, net = (
        tempfile.mkdtemp(),
        rl.nn.Sequential(rl.nn.Linear(32, 16), rl.nn.ReLU(), rl.nn.Linear(16, 4)),
    )
    x, path = rl.randn(2, 32), os.path.join(folder, "net.rl")
    rl.export.save_file(net.eval(), path, (x,))

    def run():
        smaller = os.path.join(folder, "smaller.rl")
        rl.export.quantize_file(path, smaller, "int8", x)
        return rl.export.load_file(smaller)(x)

    return run


def generation(rl):
    """A small language model: read, and two texts."""
    sys.path.insert(0, HELPERS)
    import small_language_model

    from rushlight.export import load_language_model, save_language_model

    folder = pathlib.Path(tempfile.mkdtemp())
    small_language_model.write(folder / "model", TOKENIZER)
    (folder / "model" / "tokenizer.json").unlink()
    path = folder / "m.rl"
    save_language_model(folder / "model", path, max_length=64)

    def run():
        model = load_language_model(path)
        greedy = model.generate([3, 4, 5], max_tokens=6, temperature=0, ignore_end=True)[0]
        drawn = model.generate([7, 4], max_tokens=6, seed=1, top_k=5, ignore_end=True)[0]
        return [rl.tensor(greedy), rl.tensor(drawn)]

    return run


def sharded_checkpoint(rl):
    """A checkpoint of a model and its optimizer, read by names, and made one file and back."""
    folder = tempfile.mkdtemp()
    x = rl.randn(3, 4)

    def run():
        from rushlight.distributed import checkpoint
        from rushlight.distributed.checkpoint import state_dict

        rl.manual_seed(0)
        net = rl.nn.Linear(4, 2)
        optimizer = rl.optim.Adam(net.parameters())
        net(x).sum().backward()
        optimizer.step()
        held = dict(zip(("model", "optimizer"), state_dict.get_state_dict(net, optimizer)))
        checkpoint.save(held, checkpoint_id=os.path.join(folder, "dcp"), no_dist=True)
        checkpoint.load(held, checkpoint_id=os.path.join(folder, "dcp"), no_dist=True)
        state_dict.set_state_dict(
            net, optimizer, model_state_dict=held["model"], optim_state_dict=held["optimizer"]
        )
        return [p.detach() for p in net.parameters()]

    return run


def scripted(rl):
    x = rl.randn(3, 4)

    def run():
        traced = rl.jit.trace(rl.nn.Sequential(rl.nn.Linear(4, 2, bias=False), rl.nn.Tanh()).eval(), (x,))
        stream = io.BytesIO()
        rl.jit.save(traced, stream)
        stream.seek(0)
        return [rl.equal(rl.jit.load(stream)(x), traced(x)) * rl.ones(1)]

    return run


def other_layouts(rl):
    x = rl.eye(4)

    def run():
        sparse = x.to_sparse()
        product = rl.sparse.mm(sparse, x).relu()
        rows = x.to_sparse_csr() @ x
        nested = rl.nested.nested_tensor([rl.ones(2, 3), rl.ones(4, 3)], layout=rl.jagged)
        return [product, rows, (sparse + sparse).to_dense(), (nested * 2).values()]

    return run


def recomputed(rl):
    x = rl.randn(4, 4, requires_grad=True)

    def run():
        x.grad = None
        with rl.autocast("cpu", rl.bfloat16):
            y = rl.utils.checkpoint.checkpoint(lambda v: (v @ v).sin(), x, use_reentrant=False)
        with rl.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            z = y.float().exp().sum()
        z.backward()
        return [x.grad.clone()]

    return run


def workers_that_stay(rl):
    data = rl.utils.data.TensorDataset(rl.arange(12.0).view(6, 2), rl.arange(6))

    def run():
        loader = rl.utils.data.DataLoader(
            data, batch_size=2, num_workers=2, persistent_workers=True, timeout=20
        )
        return [rl.cat([x.flatten() for _ in range(2) for x, _ in loader])]

    return run


PROGRAMS = {
    "a dynamically quantised model": dynamically_quantised,
    "a quantised model": statically_quantised,
    "a quantised model of one file": quantised_file,
    "a language model": generation,
    "a checkpoint of an optimizer": sharded_checkpoint,
    "a traced model": scripted,
    "sparse and nested tensors": other_layouts,
    "a checkpointed call": recomputed,
    "a data loader with workers that stay": workers_that_stay,
}
