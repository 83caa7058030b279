"""What the ranks of test_dtensor.py run."""

import itertools
import random

import rushlight as torch
from rushlight import distributed as dist
from rushlight.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    rand,
    randn,
    zeros,
)
from rushlight.distributed.tensor.debug import CommDebugMode

F = torch.nn.functional


def _join(rank, size, file):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.FileStore(file, size), rank=rank, world_size=size)


def _cases():
    generator = torch.Generator().manual_seed(0)

    def r(*shape):
        return torch.randn(*shape, generator=generator)

    def i(limit, *shape):
        return torch.randint(limit, shape, generator=generator)

    yield "add", lambda a, b: a + b * 2, [r(8, 6), r(6)]
    yield "mul sum", lambda a, b: (a * b).sum(), [r(8, 6), r(8, 1)]
    yield "sum", lambda a: a.sum(0) / 3 + 1, [r(8, 6, 5)]
    yield "mean", lambda a: a.mean(1, keepdim=True) * a, [r(7, 6, 5)]
    yield "matmul", lambda a, b: (a @ b).relu(), [r(4, 8, 6), r(6, 5)]
    yield "linear", lambda a, w, b: F.gelu(F.linear(a, w, b)), [r(4, 8, 6), r(5, 6), r(5)]
    yield "bmm", lambda a, b: torch.bmm(a, b.transpose(1, 2)), [r(4, 8, 6), r(4, 3, 6)]
    yield "addmm", lambda a, b, c: torch.addmm(c, a, b, beta=0.5, alpha=2), [r(8, 6), r(6, 5), r(5)]
    yield "softmax", lambda a: (a.softmax(-1) * a).log_softmax(0), [r(8, 6)]
    yield "layer_norm", lambda a, w, b: F.layer_norm(a, (6,), w, b), [r(4, 5, 6), r(6), r(6)]
    yield "rms_norm", lambda a, w: F.rms_norm(a, (6,), w), [r(4, 5, 6), r(6)]
    yield "embedding", lambda w, at: F.embedding(at, w).square(), [r(10, 6), i(10, 4, 3)]
    yield "cross_entropy", lambda a, t: F.cross_entropy(a, t, ignore_index=1), [r(7, 6), i(6, 7)]
    yield "views", lambda a: a.view(32, 6).reshape(4, 8, 2, 3).transpose(1, 2).flatten(1), [r(4, 8, 6)]
    yield "expand", lambda a: (a[:, None].expand(-1, 3, -1) * 2).sum(1), [r(8, 6)]
    yield "cat", lambda a, b: torch.cat([torch.stack([a, b]).sum(0), a], 1), [r(8, 6), r(8, 6)]
    yield "chunk", lambda a: torch.cat(a.chunk(2, -1)[::-1], -1), [r(8, 6)]
    yield "select", lambda a: a[:, 2] * a[1:3].sum(), [r(8, 6)]
    yield "index", lambda a, at: a[at] * a[:, at].sum(), [r(6, 6), i(6, 5)]
    yield "gather", lambda a, at: a.gather(1, at), [r(8, 6), i(6, 8, 4)]
    yield "attention", lambda q, k: F.scaled_dot_product_attention(q, k, k), [r(4, 4, 5, 6), r(4, 4, 5, 6)]
    yield "var", lambda a: a.var(1) + a.std(1), [r(8, 6)]
    yield "extrema", lambda a: a.max(1)[0] + a.amax(1) + a.min() + a.argmax(1), [r(8, 6)]
    yield "norms", lambda a: torch.linalg.vector_norm(a) * a.norm(dim=0) + a.norm(float("inf")), [r(8, 6)]
    yield "scans", lambda a: a.cumsum(0) * a.sort(1)[0] + a.topk(3, 0)[0].sum(), [r(8, 6)]
    yield "where", lambda a: torch.where(a > 0, a, a * 0.1).clamp(-1, 1).masked_fill(a > 1, 2.0), [r(8, 6)]
    yield "pooling of a volume without a batch", lambda a: F.avg_pool3d(a, 2), [r(4, 4, 6, 4)]
    yield "largest of cells of a volume", lambda a: F.adaptive_max_pool3d(a, 2), [r(4, 3, 4, 6, 4)]
    yield "mirrored borders", lambda a: F.pad(a, (1, 2, 0, 1), mode="reflect"), [r(4, 2, 3, 4)]
    yield "convolution", lambda a, w, b: F.conv2d(a, w, b, padding=1), [r(4, 3, 6, 6), r(5, 3, 3, 3), r(5)]
    yield "no rule", lambda a: torch.linalg.svdvals(a) + F.pad(a, (1, 1)).sum(), [r(8, 6)]
    yield "mse", lambda a, b: F.mse_loss(a, b) + F.smooth_l1_loss(a, b, reduction="sum"), [r(8, 6), r(8, 6)]
    yield "random", _random, [r(7, 6)]


def _random(a):
    torch.manual_seed(3)
    return F.dropout(a, 0.5) * torch.rand_like(a) + torch.bernoulli(a.sigmoid())


def _layouts(tensor, dims):
    each = [Replicate(), *[Shard(d) for d in range(tensor.dim())]]
    if tensor.is_floating_point():
        each.append(Partial())
    return list(itertools.product(each, repeat=dims))


def _spread(tensor, mesh, placements):
    """A DTensor with these placements; terms of sums differ from rank to rank."""
    whole = [Replicate() if p.is_partial() else p for p in placements]
    spread = distribute_tensor(tensor.clone(), mesh, whole)
    local = spread.to_local()
    for i, p in enumerate(placements):
        if p.is_partial():
            local = local * ([0.25, 0.75] + [0.0] * mesh.size(i))[mesh.get_local_rank(i)]
    return DTensor.from_local(local, mesh, placements, shape=tensor.shape, stride=tensor.stride())


def _check(name, function, inputs, mesh, layouts):
    plain = [t.clone().requires_grad_(t.is_floating_point()) for t in inputs]
    spread = [_spread(t, mesh, p).detach() for t, p in zip(inputs, layouts)]
    for t in spread:
        t.requires_grad_(t.is_floating_point())
    expected, found = function(*plain), function(*spread)
    assert expected.shape == found.shape and expected.dtype == found.dtype
    where = f"{name} of {layouts}: "
    torch.testing.assert_close(
        found.full_tensor().detach(), expected.detach(), rtol=1e-4, atol=1e-5, msg=lambda m: where + m
    )
    seed = torch.linspace(-1, 1, expected.numel()).view(expected.shape)
    expected.backward(seed)
    found.backward(distribute_tensor(seed, mesh, [Replicate()] * mesh.ndim))
    for a, b in zip(plain, spread):
        if a.grad is not None:
            torch.testing.assert_close(
                b.grad.full_tensor(), a.grad, rtol=1e-4, atol=1e-5, msg=lambda m: where + "gradient, " + m
            )


def operators(rank, size, file, shape):
    _join(rank, size, file)
    mesh = dist.init_device_mesh("cpu", shape)
    choose = random.Random(1)
    for name, function, inputs in _cases():
        combinations = list(itertools.product(*[_layouts(t, len(shape)) for t in inputs]))
        for layouts in choose.sample(combinations, min(3, len(combinations))):
            _check(name, function, inputs, mesh, layouts)
    dist.destroy_process_group()


def redistribution(rank, size, file):
    """Every way from one layout to another, on parts of uneven sizes."""
    _join(rank, size, file)
    mesh = dist.init_device_mesh("cpu", (2, 2))
    tensor = torch.arange(35.0).view(5, 7)
    layouts = list(itertools.product([Replicate(), Shard(0), Shard(1), Partial()], repeat=2))
    for source in layouts:
        spread = _spread(tensor, mesh, source)
        for target in layouts:
            if any(b.is_partial() and a != b for a, b in zip(source, target)):
                continue
            moved = spread.redistribute(placements=target)
            assert moved.placements == target
            assert torch.equal(moved.full_tensor(), tensor), (source, target)
    whole = distribute_tensor(tensor, mesh, [Replicate(), Replicate()])
    with CommDebugMode() as free:
        whole.redistribute(placements=[Shard(0), Shard(1)])
    assert free.get_total_counts() == 0
    with CommDebugMode() as one:
        distribute_tensor(tensor, mesh, [Shard(0), Replicate()]).redistribute(
            placements=[Shard(1), Replicate()]
        )
    assert one.get_comm_counts()[torch.ops.c10d_functional.all_to_all_single] == 1, one.get_comm_counts()
    dist.destroy_process_group()


def behaviour(rank, size, file):
    _join(rank, size, file)
    mesh = dist.init_device_mesh("cpu", (size,))
    volumes = distribute_tensor(torch.rand(4, 3, 4, 4, 4), mesh, [Shard(0)])
    assert F.adaptive_max_pool3d(volumes, 2).placements == (Shard(0),)
    d = distribute_tensor(torch.arange(10.0).view(5, 2) + rank, mesh, [Shard(0)])  # rank 0's values count
    assert d.shape == (5, 2) and d.full_tensor().tolist() == torch.arange(10.0).view(5, 2).tolist()
    assert [t.shape[0] for t in _gathered(d.to_local())] == [3, 2]
    assert repr(d.placements) == "(Shard(dim=0),)" and "placements=(Shard(dim=0),)" in repr(d)
    x = torch.ones(2, 3, requires_grad=True)
    (DTensor.from_local(x, mesh, [Shard(0)]) * 3).sum().full_tensor().backward()
    assert x.grad.tolist() == [[3.0] * 3] * 2
    for refused, match in [
        (lambda: d + torch.ones(5, 2), "mixed torch.Tensor and DTensor"),
        (lambda: d.redistribute(placements=[Partial()]), "Can not redistribute from S(0) to P(sum)"),
        (lambda: distribute_tensor(torch.ones(2), mesh, [Shard(0), Shard(0)]), "same length as"),
        (lambda: DTensor.from_local(torch.ones(2), mesh, [Partial()]).add_(1), "in-place operations"),
        (lambda: d.as_strided((2,), (1,)), "other strides"),
        (lambda: d.detach().t().reshape(-1).zero_(), "shares no memory"),
    ]:
        try:
            refused()
        except Exception as error:
            assert match in str(error), (match, error)
        else:
            raise AssertionError(match)
    torch.manual_seed(7)
    expected = torch.rand(5, 3), torch.randn(6)
    torch.manual_seed(7)
    drawn = rand(5, 3, device_mesh=mesh, placements=[Shard(0)]), randn(6, device_mesh=mesh)
    assert all(torch.equal(a, b.full_tensor()) for a, b in zip(expected, drawn))
    norm = torch.linalg.vector_norm(d)  # each rank has that of its part: nothing is gathered
    assert norm.placements[0].is_partial() and abs(norm.full_tensor().item() - 285**0.5) < 1e-5
    means = torch.arange(6.0)
    for draw in (lambda t: torch.normal(t, 0.1), torch.poisson, lambda t: torch.multinomial(t, 4)):
        torch.manual_seed(8)
        expected = draw(means)
        torch.manual_seed(8)
        assert torch.equal(draw(distribute_tensor(means, mesh, [Shard(0)])).full_tensor(), expected)
    assert zeros(5, 3, device_mesh=mesh, placements=[Shard(1)]).to_local().shape == (5, 2 - rank)
    written = zeros(5, 3, device_mesh=mesh, placements=[Shard(0)])
    with torch.no_grad():
        written[:, 1].fill_(2)
        written.index_put_((torch.tensor(0),), torch.tensor(5.0))
    assert written.full_tensor().tolist() == [[5.0] * 3] + [[0, 2.0, 0]] * 4
    assert torch.equal(written, written.clone()) and written.sum().item() == 23
    halves = DTensor.from_local(torch.tensor([0.5, 1.5]), mesh, [Partial()])  # each rank has half of the sum
    for additive in (torch.neg, torch.clone, torch.positive, torch.zero_, lambda x: x + halves):
        assert additive(halves.clone()).placements == (Partial(),)
    assert halves.to(torch.int64).full_tensor().tolist() == [1, 3]
    chosen = DTensor.from_local(torch.tensor([True, False]), mesh, [Replicate()])
    assert torch.where(chosen, halves, -halves).full_tensor().tolist() == [1, -3]
    _module(mesh)
    _saved(d, file, rank)
    dist.destroy_process_group()


def found(rank, size, file):
    """What random programs found."""
    import pytest

    from rushlight.distributed.tensor.experimental import implicit_replication

    _join(rank, size, file)
    mesh = dist.init_device_mesh("cpu", (size,))
    x = torch.arange(8.0).view(2, 4, 1)
    for dim in (0, 1):  # each part has one element along the first
        part = distribute_tensor(x, mesh, [Shard(dim)]).squeeze()
        assert torch.equal(part.full_tensor(), x.squeeze())
    spread = distribute_tensor(x, mesh, [Shard(1)])
    for write in (lambda t: t.squeeze_(), lambda t: t.transpose_(0, 1), lambda t: t[0].t_()):
        with pytest.raises(RuntimeError, match="a DTensor keeps its shape"):
            write(spread)
    point = distribute_tensor(torch.tensor(2.0), mesh, [Replicate()])
    assert point.unfold(0, 1, 1).full_tensor().tolist() == [2]
    padded = F.pad(spread.transpose(1, 2), (1, 1), mode="circular")
    assert torch.equal(padded.full_tensor(), F.pad(x.transpose(1, 2), (1, 1), mode="circular"))
    with implicit_replication(), pytest.raises(RuntimeError, match="mixed torch.Tensor and DTensor"):
        torch.div(spread, 2, out=torch.empty(2, 4, 1))
    # A view that is made whole shares no memory with a base that is spread, and has no gradient for another.
    square = distribute_tensor(torch.zeros(4, 4), mesh, [Shard(0)])
    with pytest.raises(RuntimeError, match="needed communication"):
        square.diagonal().fill_(1)
    whole = distribute_tensor(torch.zeros(4, 4), mesh, [Replicate()])
    whole.diagonal().fill_(1)
    assert whole.full_tensor().sum() == 4
    with pytest.raises(RuntimeError, match="records no gradients for its base"):
        whole.requires_grad_().clone().diagonal().fill_(1)
    # Handlers leave no trace on views made later.
    assert (spread > 0).any().full_tensor()
    leaf = torch.ones(3, requires_grad=True)
    leaf.clone()[1:].mul_(2).sum().backward()
    assert leaf.grad.tolist() == [0, 2, 2]
    dist.destroy_process_group()


def _gathered(tensor):
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, tensor)
    return everyone


def _module(mesh):
    def cut(name, module, mesh):
        for name, p in module.named_parameters(recurse=False):
            module.register_parameter(name, torch.nn.Parameter(distribute_tensor(p, mesh, [Shard(0)])))

    torch.manual_seed(0)
    plain = torch.nn.Linear(4, 5)
    torch.manual_seed(0)
    net = distribute_module(
        torch.nn.Linear(4, 5),
        mesh,
        cut,
        lambda module, inputs, mesh: DTensor.from_local(inputs[0], mesh, [Replicate()]),
        lambda module, outputs, mesh: outputs.full_tensor(),
    )
    x = torch.ones(2, 4)
    optimizers = [torch.optim.AdamW(m.parameters(), lr=0.1) for m in (plain, net)]
    for _ in range(3):
        for m, optimizer in zip((plain, net), optimizers):
            optimizer.zero_grad()
            m(x).square().sum().backward()
            norm = torch.nn.utils.clip_grad_norm_(m.parameters(), 0.5)
            optimizer.step()
    assert isinstance(net.weight, torch.nn.Parameter) and isinstance(norm, DTensor)
    torch.testing.assert_close(net.weight.full_tensor(), plain.weight)
    assert optimizers[1].state[net.weight]["exp_avg"].placements == (Shard(0),)


def _saved(spread, file, rank):
    import copy

    again = copy.deepcopy(torch.nn.Parameter(spread))
    assert isinstance(again, torch.nn.Parameter) and again.placements == spread.placements
    assert torch.equal(again.detach(), spread)
    assert again.to_local().data_ptr() != spread.to_local().data_ptr()
    torch.save(spread, f"{file}.{rank}")
    read = torch.load(f"{file}.{rank}", weights_only=False)
    assert read.placements == spread.placements and torch.equal(read, spread)
