"""Keywords of public functions that are not operators: PyTorch's names."""

import importlib

import pytest

CALLS = {
    "sym_max": lambda p: [p.sym_max(a=2, b=1.0), p.sym_max(a=2, b=3), p.sym_max(True, 0)],
    "sym_min": lambda p: [p.sym_min(a=2, b=3.0), p.sym_min(1, 2)],
    "_check_tensor_all_with": lambda p: p._check_tensor_all_with(ValueError, cond=p.ones(2).bool()),
    "is_tensor_like": lambda p: [p.overrides.is_tensor_like(inp=o) for o in (p.ones(1), 3)],
    "load endianness": lambda p: [(e.name, e.value) for e in p.serialization.LoadEndianness],
    "_StridedShard": lambda p: [
        repr(shard)
        for shard in (
            submodule(p, "distributed.tensor.placement_types")._StridedShard(0, sf=2),
            submodule(p, "distributed.tensor.placement_types")._StridedShard(0, split_factor=3),
        )
    ],
    "symbolic contexts": lambda p: (
        submodule(p, "fx.experimental.symbolic_shapes")
        .StatelessSymbolicContext([], shape_ids={0: "a"}, unbacked_bounds={})
        .shape_ids
    ),
    "unserializable_hook": lambda p: (
        submodule(p, "utils.hooks").unserializable_hook(f=lambda grad: None).__torch_unserializable__
    ),
    "graph nodes": lambda p: [
        str(node.args)
        for graph in [p.fx.Graph()]
        for x in [graph.placeholder("x")]
        for node in (
            graph.create_size_node(tensor_node=x, dim=0),
            graph.create_stride_node(tensor_node=x, dim=1),
            graph.create_storage_offset_node(tensor_node=x),
        )
    ],
    "hspmm": lambda p: stored(p, p.hspmm, p.eye(2).to_sparse(), p.ones(2, 3), shape=(4, 3)),
    "sspaddmm": lambda p: stored(
        p, p.sspaddmm, p.eye(2).to_sparse(), p.eye(2).to_sparse(), p.ones(2, 2), shape=(3, 2)
    ),
    "saddmm": lambda p: stored(
        p, p.saddmm, p.eye(2).to_sparse(), p.eye(2).to_sparse(), p.ones(2, 2), shape=(2, 2)
    ),
}
REFUSED = {
    "sym_max": lambda p: p.sym_max(1, 2, 3),
    "_StridedShard": lambda p: submodule(p, "distributed.tensor.placement_types")._StridedShard(
        0, split_factor=2, sf=3
    ),
    "endianness": lambda p: p.serialization.set_default_load_endianness(3),
    "hspmm": lambda p: p.hspmm(p.eye(2).to_sparse(), p.eye(2), out=p.zeros(2, 2)),
}


def submodule(package, name):
    return importlib.import_module(f"{package.__name__}.{name}")


def stored(package, function, *args, shape):
    out = package.zeros(shape).to_sparse()
    result = function(*args, out=out)
    assert result is out
    return [tuple(out.shape), out.sparse_dim(), out.to_dense().tolist()]


@pytest.mark.parametrize("name", CALLS)
def test_names(name):
    rushlight, torch = importlib.import_module("rushlight"), pytest.importorskip("torch")
    ours, theirs = CALLS[name](rushlight), CALLS[name](torch)
    assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    rushlight, torch = importlib.import_module("rushlight"), pytest.importorskip("torch")
    errors = []
    for package in (torch, rushlight):
        with pytest.raises((TypeError, RuntimeError)) as caught:
            REFUSED[name](package)
        errors.append(caught.type)
    assert errors[0] is errors[1]


@pytest.mark.parametrize("kind", ["flash", "math", "mem_efficient", "cudnn"])
def test_switches_of_attention(kind):
    import rushlight.backends.cuda as cuda

    enable, enabled = getattr(cuda, f"enable_{kind}_sdp"), getattr(cuda, f"{kind}_sdp_enabled")
    before = enabled()
    try:
        for value in (False, True):
            enable(enabled=value)
            assert enabled() is value
    finally:
        enable(before)


def test_places_of_libraries():
    from rushlight.utils import cpp_extension

    assert cpp_extension.library_paths(device_type="cpu", torch_include_dirs=False) == []
    assert len(cpp_extension.library_paths("cpu", torch_include_dirs=True, cross_target_platform=None)) == 1
