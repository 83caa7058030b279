"""Functions of the top namespace that are compositions: values, shapes and refusals as PyTorch's."""

import math
import sys
import warnings

import pytest

import rushlight as torch

oracle = pytest.importorskip("torch")


def both(function, *args, **kwargs):
    """Runs `function(lib, ...)` with both libraries on equal tensors, and compares the results."""

    def convert(value, lib):
        if isinstance(value, oracle.Tensor):
            return torch.from_numpy(value.numpy().copy()) if lib is torch else value
        if isinstance(value, (list, tuple)):
            return type(value)(convert(v, lib) for v in value)
        return value

    ours, theirs = (
        function(lib, *convert(args, lib), **{k: convert(v, lib) for k, v in kwargs.items()})
        for lib in (torch, oracle)
    )
    compare(ours, theirs)
    return ours


def compare(ours, theirs):
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            compare(a, b)
        return
    assert str(ours.dtype) == str(theirs.dtype) and tuple(ours.shape) == tuple(theirs.shape)
    want = torch.from_numpy(theirs.detach().numpy().copy())
    assert torch.allclose(ours.detach().double(), want.double(), equal_nan=True), (ours, want)


def sample(*shape, dtype="float32", seed=0):
    g = oracle.Generator().manual_seed(seed)
    return oracle.randn(*shape, generator=g, dtype=oracle.float64).to(getattr(oracle, dtype))


@pytest.mark.parametrize("edge_order", [1, 2])
@pytest.mark.parametrize("spacing", [1, 0.5, "coordinates"])
def test_gradient(edge_order, spacing):
    x = sample(4, 5, 3, dtype="float64")
    if spacing == "coordinates":
        points = (oracle.tensor([0.0, 1.0, 1.5, 4.0]).double(), oracle.tensor([0.0, 1.0, 3.0]).double())
        both(lambda lib, x, p: lib.gradient(x, spacing=p, dim=(0, 2), edge_order=edge_order), x, points)
    else:
        both(lambda lib, x: lib.gradient(x, spacing=spacing, edge_order=edge_order), x)
        both(lambda lib, x: lib.gradient(x, spacing=spacing, dim=-1, edge_order=edge_order), x)


def test_gradient_refuses():
    with pytest.raises(RuntimeError, match="at least edge_order"):
        torch.gradient(torch.ones(1))
    with pytest.raises(RuntimeError, match="only supports edge_order"):
        torch.gradient(torch.ones(4), edge_order=3)
    with pytest.raises(RuntimeError, match="does not support"):
        torch.gradient(torch.ones(4, dtype=torch.uint8))
    with pytest.raises(RuntimeError, match="same length"):
        torch.gradient(torch.ones(4), spacing=[torch.ones(3)])


def test_histogram():
    x = sample(200)
    for density in (False, True):
        both(lambda lib, x, density=density: lib.histogram(x, 7, density=density), x)
        both(
            lambda lib, x, density=density: lib.histogram(
                x, 5, range=(-1.0, 1.0), weight=x * x, density=density
            ),
            x,
        )
        edges = oracle.tensor([-2.0, -0.5, 0.0, 1.0])
        both(lambda lib, x, e, density=density: lib.histogram(x, e, density=density), x, edges)
    both(lambda lib, x: lib.histogram(x, 3), oracle.zeros(4))
    result = torch.histogram(torch.tensor([0.0, 1.0, 1.0]), 2)
    assert result.hist.tolist() == [1.0, 2.0] and result.bin_edges.tolist() == [0.0, 0.5, 1.0]
    with pytest.raises(RuntimeError, match="bins must be > 0"):
        torch.histogram(torch.ones(3), 0)
    with pytest.raises(RuntimeError, match="not finite"):
        torch.histogram(torch.tensor([0.0, math.nan]), 2)
    with pytest.raises(NotImplementedError, match="Long"):
        torch.histogram(torch.arange(3), 2)


def test_histogramdd():
    x = sample(60, 2)
    both(lambda lib, x: lib.histogramdd(x, [3, 4]), x)
    both(lambda lib, x: lib.histogramdd(x, [3, 4], range=[-1.0, 1.0, -2.0, 2.0], density=True), x)
    both(lambda lib, x, w: lib.histogramdd(x, 3, weight=w), x, sample(60).abs())
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        torch.histogramdd(torch.ones(3), 2)
    assert repr(torch.histogramdd(torch.zeros(2, 1), [1])).startswith(
        "torch.return_types.histogramdd(\nhist="
    )


def test_histogram_leaves_out_what_no_bin_takes():
    x = oracle.tensor([math.nan, 0.0, 0.25, 1.0, 1.5, math.inf, -0.1])
    both(lambda lib, x: lib.histogram(x, 4, range=(0.0, 1.0)), x)
    both(lambda lib, x: lib.histogram(x, lib.tensor([0.0, 0.25, 0.25, 1.0])), x)
    falling = torch.histogram(torch.tensor([0.5, 1.5]), torch.tensor([2.0, 1.0, 0.0]))
    assert falling.hist.tolist() == [0.0, 0.0]
    assert torch.histogram(torch.tensor([1.0, 2.0]), torch.tensor([1.0])).hist.shape == (0,)


def test_histogram_does_not_depend_on_threads():
    x, w = torch.randn(300_000), torch.rand(300_000)
    before = torch.get_num_threads()
    found = []
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            found.append(torch.histogram(x, 50, weight=w).hist)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*found)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bool"])
def test_hash_tensor(dtype):
    x = oracle.arange(-6, 6).to(getattr(oracle, dtype)).reshape(3, 4)
    for kwargs in ({}, {"dim": 1}, {"dim": (0, 1)}, {"dim": 0, "keepdim": True}):
        ours = torch.hash_tensor(torch.from_numpy(x.numpy()), **kwargs)
        theirs = oracle.hash_tensor(x, **kwargs)
        assert ours.dtype == torch.uint64 and ours.numpy().tolist() == theirs.numpy().tolist()


def test_native_forms():
    a, b = sample(4, 6), sample(4, 6, seed=1)
    y = oracle.tensor([1, -1, 1, -1])
    for reduction in (0, 1, 2):
        both(
            lambda lib, a, b, y, reduction=reduction: lib.cosine_embedding_loss(a, b, y, 0.1, reduction),
            a,
            b,
            y,
        )
        both(lambda lib, a, b, reduction=reduction: lib.kl_div(a, b.abs(), reduction), a, b)
        both(
            lambda lib, a, b, reduction=reduction: lib.triplet_margin_loss(a, b, a * 2, reduction=reduction),
            a,
            b,
        )
        both(
            lambda lib, a, b, reduction=reduction: lib.binary_cross_entropy_with_logits(
                a, b.sigmoid(), None, None, reduction
            ),
            a,
            b,
        )
    both(lambda lib, a, b: lib.cosine_similarity(a, b), a, b)
    both(lambda lib, a, b: lib.pairwise_distance(a, b), a, b)
    both(lambda lib, a: lib.pdist(a), a)
    image = sample(2, 4, 6, 6)
    both(lambda lib, x: lib.pixel_unshuffle(lib.pixel_shuffle(x, 2), 2), image)
    both(lambda lib, x: lib.channel_shuffle(x, 2), image)
    both(lambda lib, x, g: lib.grid_sampler(x, g, 0, 1, False), image, sample(2, 3, 3, 2).tanh())
    both(lambda lib, x, w, b: lib.conv_tbc(x, w, b, 1), sample(5, 2, 3), sample(3, 3, 4), sample(4))
    for dim in (0, 1, -1):
        both(lambda lib, v, dim=dim: lib.norm_except_dim(v, 2, dim), a)
    both(lambda lib, a, b: lib.margin_ranking_loss(a, b, a, 0.0, 3), a, b)  # as if it said 0


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_embedding_bag(mode):
    weight, index = sample(5, 3), oracle.tensor([0, 1, 4, 2, 2])
    offsets = oracle.tensor([0, 2, 3])
    ours = torch.embedding_bag(*(torch.from_numpy(t.numpy()) for t in (weight, index, offsets)), mode=mode)
    theirs = oracle.embedding_bag(weight, index, offsets, mode=mode)
    compare(ours[0], theirs[0])


def test_from_file(tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(torch.arange(4, dtype=torch.int32).numpy().tobytes())
    assert torch.from_file(str(path), size=4, dtype=torch.int32).tolist() == [0, 1, 2, 3]
    mapped = torch.from_file(str(path), shared=True, size=6, dtype=torch.int32)
    mapped[5] = 7
    del mapped
    assert torch.from_file(str(path), size=6, dtype=torch.int32).tolist() == [0, 1, 2, 3, 0, 7]
    with pytest.raises(RuntimeError, match="smaller"):
        torch.from_file(str(path), size=100, dtype=torch.int32)


def test_storages_from_files(tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(bytes(range(8)))
    private = torch.UntypedStorage.from_file(str(path), False, 8)
    private[0] = 9
    assert (
        private.tolist()[:3] == [9, 1, 2]
        and path.read_bytes() == bytes(range(8))
        and private.filename is None
    )
    shared = torch.UntypedStorage.from_file(str(path), shared=True, nbytes=12)
    torch.empty(0, dtype=torch.uint8).set_(shared)[8:] = 7
    assert path.read_bytes() == bytes(range(8)) + b"\7\7\7\7" and shared.filename == str(path)
    assert torch.IntStorage.from_file(str(path), False, 2)[1] == int.from_bytes(
        bytes([4, 5, 6, 7]), sys.byteorder
    )
    assert len(torch.UntypedStorage.from_file(str(path))) == 0
    for arguments, text in (
        ((tmp_path / "none", False, 1), "unable to open file"),
        ((path, False, 13), "smaller"),
    ):
        with pytest.raises(RuntimeError, match=text):
            torch.UntypedStorage.from_file(*arguments)
    with pytest.raises(RuntimeError, match="negative"):
        torch.UntypedStorage.from_file(path, False, -1)


def test_sparse_index_conversions():
    rows = oracle.tensor([0, 0, 2, 3])
    starts = both(lambda lib, r: lib._convert_indices_from_coo_to_csr(r, 4), rows)
    assert starts.tolist() == [0, 2, 2, 3, 4]
    columns = oracle.tensor([1, 2, 0, 3])
    both(
        lambda lib, s, c: lib._convert_indices_from_csr_to_coo(s, c), oracle.tensor([0, 2, 2, 3, 4]), columns
    )


def test_samples_move_with_their_parameters():
    alpha = torch.tensor([0.3, 1.0, 4.0, 40.0, 3000.0], dtype=torch.float64, requires_grad=True)
    torch.manual_seed(3)
    x = torch._standard_gamma(alpha)
    (slope,) = torch.autograd.grad(x.sum(), alpha)
    want = oracle._standard_gamma_grad(
        oracle.tensor(alpha.tolist()).double(), oracle.tensor(x.tolist()).double()
    )
    assert slope.tolist() == pytest.approx(want.tolist(), rel=1e-3)
    torch.manual_seed(3), oracle.manual_seed(3)
    a = [[0.5, 2.0, 7.0], [60.0, 70.0, 0.1]]
    ours = torch.tensor(a, requires_grad=True)
    p, q = torch._sample_dirichlet(ours), oracle._sample_dirichlet(oracle.tensor(a))
    compare(p, q)
    weights = oracle.tensor([[1.0, -2.0, 3.0], [0.5, 1.0, 1.5]])
    (p * torch.from_numpy(weights.numpy())).sum().backward()
    total = oracle.tensor(a).sum(-1, True).expand(2, 3)
    want = oracle._dirichlet_grad(q, oracle.tensor(a), total) * (weights - (weights * q).sum(-1, True))
    assert torch.allclose(ours.grad, torch.from_numpy(want.numpy()), rtol=5e-3, atol=1e-5)


def test_hash_of_a_number():
    for module in (torch, oracle):
        hashed = module.hash_tensor(module.tensor(3.0), dim=0, keepdim=True)
        assert hashed.shape == () and hashed.item() == 4613937818241073152


def test_hashes_of_nothing():
    assert torch.hash_tensor(torch.zeros(0, 3), dim=1).shape == (0,)
    assert torch.hash_tensor(torch.zeros(2, 0), dim=1).tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="Expected reduction dim"):
        torch.hash_tensor(torch.zeros(0))


def test_logcumsumexp_of_complex_numbers():
    values = [1 + 2j, 0.5 - 1j, 0.5 + 3j, -2 + 0.25j, 3 - 3j]

    def program(m):
        x = m.tensor(values, dtype=m.complex128, requires_grad=True)
        y = m.logcumsumexp(x, 0)
        (grad,) = m.autograd.grad(y, [x], m.tensor(values[::-1], dtype=m.complex128))
        return y.detach(), grad

    for mine, other in zip(program(torch), program(oracle), strict=True):
        assert oracle.allclose(oracle.tensor(mine.tolist()), oracle.tensor(other.tolist()))
    special = [complex(-float("inf"), 1), 0.5 - 1j, complex(float("nan"), 0), 1j]
    assert str(torch.logcumsumexp(torch.tensor(special), 0)[0].item()) == "(-inf+0j)"
    assert torch.logcumsumexp(torch.tensor(special), 0)[2:].isnan().all()


@pytest.mark.parametrize("function", [lambda x: torch.cdist(x, x), torch.pdist, lambda x: torch.histc(x, 3)])
def test_what_does_not_compute_in_eight_bits_says_so(function):
    with pytest.raises(NotImplementedError, match="not implemented for 'Float8_e4m3fn'"):
        function(torch.ones(3, 3).to(torch.float8_e4m3fn))


def test_lost_imaginary_parts_are_told_of():
    number = torch.tensor([1 + 2j])
    torch.set_warn_always(True)
    try:
        for cast in (number.float, lambda: number.to(torch.int32), lambda: torch.zeros(1).copy_(number)):
            with pytest.warns(UserWarning, match="discards the imaginary part"):
                assert cast().item() == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert number.bool().item() and number.real.item() == 1
            number.to(torch.complex128)
    finally:
        torch.set_warn_always(False)
