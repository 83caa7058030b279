"""Names of PyTorch's extension module that packages ask for and that need no C here; `_C.x` finds them."""

import rushlight

# Files that PyTorch wrote take operators from it: `getattr(_VariableFunctionsClass, "abs")`.
_VariableFunctionsClass = rushlight

# What every build computes, with libraries or without; threads are not OpenMP's.
has_lapack = has_spectral = True
has_openmp = False


def _get_privateuse1_backend_name():
    """The name of the device type that extensions may claim."""
    return "privateuseone"


def _get_accelerator(check=False):
    """The device that computes fastest: the CPU, in builds without another."""
    from rushlight import accelerator, device

    return accelerator.current_accelerator() or device("cpu")


def _log_api_usage_once(event):
    """Nothing is counted."""


def _log_api_usage_metadata(event, metadata):
    """Nothing is counted."""


def _get_tracing_state():
    """The state of the run that `torch.jit.trace` records on this thread, with its scopes, or None."""
    from rushlight.jit._decorations import tracing_state

    return tracing_state()


def _is_tracing():
    """Whether `torch.jit.trace` records what this thread runs."""
    return _get_tracing_state() is not None


def _is_torch_function_mode_enabled():
    """Whether a function mode sees what is called."""
    from rushlight import _C

    return _C._len_torch_function_stack() > 0


def _are_functorch_transforms_active():
    """Whether this runs inside of grad, vmap or another of ``torch.func``'s transforms."""
    from rushlight._C import _functorch

    return _functorch.maybe_current_level() is not None


def _get_default_device():
    """The type of the device on which factories work unless told otherwise."""
    from rushlight import get_default_device

    return get_default_device().type


def _infer_size(a, b):
    """The shape to which two shapes are broadcast."""
    from rushlight import broadcast_shapes

    return broadcast_shapes(a, b)


def _storage_id(tensor):
    """A number that tensors on the same storage have, and no other living one."""
    return tensor.untyped_storage()._cdata


def _is_alias_of(input, other):
    """Whether two tensors share memory, or tensors of a transform what they stand for; of lists, whether any
    two do."""
    return not _storages(input).isdisjoint(_storages(other))


_overlaps = _is_alias_of


def _storages(value):
    """Of a tensor, or the tensors in a list: which storages they stand for."""
    from rushlight import _C

    def innermost(tensor):
        while _C._functorch.is_functorch_wrapped_tensor(tensor):
            tensor = _C._functorch.get_unwrapped(tensor)
        return tensor

    return {_storage_id(innermost(t)) for t in (value if isinstance(value, (list, tuple)) else [value])}


def _set_mkldnn_enabled(enabled):
    from rushlight.backends import mkldnn

    mkldnn.set_flags(bool(enabled))


def _get_mkldnn_enabled():
    from rushlight.backends import mkldnn

    return mkldnn.enabled


def _get_deterministic_fill_uninitialized_memory():
    from rushlight.utils import deterministic

    return deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]


def _set_deterministic_fill_uninitialized_memory(mode):
    from rushlight.utils import deterministic

    deterministic.fill_uninitialized_memory = mode  # type: ignore[attr-defined]


def _freeze_module(cpp_module, preservedAttrs=(), freezeInterfaces=True, preserveParameters=False):  # noqa: N803
    """`torch.jit.freeze` for a script by its handle, `ScriptModule._c`."""
    from rushlight.jit._handle import freeze_handle

    return freeze_handle(cpp_module, preservedAttrs, freezeInterfaces, preserveParameters)


def _dispatch_has_kernel_for_dispatch_key(name, key):
    """Whether an operator has a kernel for a dispatch key."""
    from rushlight._library.utils import has_kernel, lookup_op

    return has_kernel(lookup_op(name), str(getattr(key, "name", key)))


def parse_schema(schema):
    """The parts of a schema given as text."""
    from rushlight._operators.schema import parse_schema

    return parse_schema(schema)


def _jit_get_schemas_for_operator(name):
    """The schemas of all overloads of an operator, ``"ns::name"``."""
    from rushlight import ops

    space, _, plain = name.partition("::")
    packet = getattr(getattr(ops, space), plain)
    return [getattr(packet, overload)._schema for overload in packet.overloads()]


def _jit_get_all_schemas():
    """The schemas of all operators, those of programs included."""
    from rushlight import ops

    packets = (getattr(space, name) for space in map(ops.__getattr__, ops) for name in space)
    kinds = (packet for packet in packets if hasattr(packet, "overloads"))
    return [getattr(packet, overload)._schema for packet in kinds for overload in packet.overloads()]


def _jit_pass_lint(graph):
    """Raise if a graph is not well-formed."""
    graph.lint()


def _jit_assert_is_instance(obj, type):
    """Raise if a value is none of a type of a graph."""
    from rushlight.jit._graph_types import assert_is_instance

    assert_is_instance(obj, type)


# Switches of the TorchScript executor: there is none, so nothing is fused and every setting is off.


def _jit_can_fuse_on_cpu():
    return False


_jit_can_fuse_on_gpu = _jit_texpr_fuser_enabled = _jit_nvfuser_enabled = _jit_can_fuse_on_cpu


def _jit_set_profiling_executor(enabled):
    """Keep the profiling executor off; returns what it was."""
    return False


_jit_set_profiling_mode = _jit_set_texpr_fuser_enabled = _jit_set_nvfuser_enabled = (
    _jit_set_nvfuser_guard_mode
) = _jit_set_profiling_executor


def _jit_override_can_fuse_on_cpu(enabled):
    """Nothing to switch."""


_jit_override_can_fuse_on_gpu = _jit_override_can_fuse_on_cpu


def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices=False):
    from rushlight.utils import _foreach_utils

    return _foreach_utils._group_tensors_by_device_and_dtype(tensorlistlist, with_indices)


def _debug_only_display_vmap_fallback_warnings(enabled):
    """Warn where vmap runs an operator once for each example, because it has no rule for batches."""
    from rushlight._C import _functorch

    _functorch._set_vmap_fallback_warning_enabled(enabled)


def _debug_only_are_vmap_fallback_warnings_enabled():
    from rushlight._C import _functorch

    return _functorch._is_vmap_fallback_warning_enabled()


_HOMES = {
    "jit._graph_nodes": "Block Graph Node Value",
    "jit._graph_edits": "Use",
    "jit._compilation_unit": "CompilationUnit",
    "jit._graph_types": "ClassType JitType TensorType",
    "jit._graph_properties": (
        "_jit_pass_complete_shape_analysis _jit_pass_erase_shape_information _jit_pass_propagate_device "
        "_jit_pass_propagate_dtype _jit_pass_propagate_shapes_on_graph _propagate_shapes"
    ),
    "jit._graph_passes": (
        "_create_function_from_graph _jit_interpret_graph _jit_pass_canonicalize _jit_pass_dce "
        "_jit_pass_inline"
    ),
    "jit._graph_constants": ("_jit_pass_constant_pooling _jit_pass_constant_propagation _jit_pass_cse"),
    "jit._graph_peephole": "_jit_pass_peephole",
    "jit._passes._remove_mutation": (
        "_jit_pass_functional_to_inplace_activation _jit_pass_inplace_to_functional_activation "
        "_jit_pass_remove_mutation"
    ),
    "jit._passes._loop_unrolling": "_jit_pass_loop_unrolling",
    "jit._passes._rewriting": (
        "_jit_pass_custom_pattern_based_rewrite _jit_pass_custom_pattern_based_rewrite_graph "
        "_jit_pass_fuse_linear"
    ),
    "jit._passes._small_passes": (
        "_jit_pass_decompose_ops _jit_pass_erase_number_types _jit_pass_refine_tuple_types "
        "_jit_pass_remove_dropout"
    ),
    "jit._graph_text": "parse_ir",
    "jit._inferred": "InferredType _jit_try_infer_type",
    "jit._graph_tuples": "_jit_pass_lower_all_tuples _jit_pass_lower_simple_tuples",
    "jit._type_objects": """
        AnyType BoolType ComplexType DeviceObjType DictType FloatType IntType ListType NoneType NumberType
        OptionalType PyObjectType StreamObjType StringType TupleType
    """,
    "jit._containers": "ScriptDict ScriptList",
    "_awaits": "_Await",
    "jit._script": "ScriptFunction ScriptModule",
    "_operators.boxed_calls": "_jit_resolve_packet",
    "_serialization.file_records": "PyTorchFileReader PyTorchFileWriter",
    "_quantized.packed": "ScriptObject",
    "_extension.tags": "Tag",
    "_extension.tensor_refs": (
        "_WeakTensorRef _add_cached_tensor _is_cached_tensor _remove_cached_tensor "
        "_set_cached_tensors_enabled"
    ),
    "_extension.dispatch_keys": (
        "DispatchKey DispatchKeySet ExcludeDispatchKeyGuard _ExcludeDispatchKeyGuard _dispatch_key_name "
        "_dispatch_key_parse _dispatch_key_set _dispatch_keys _dispatch_tls_local_exclude_set"
    ),
}


_MODULES = {
    "_functions": "_extension.functions",
    "_autograd": "_extension.autograd",
    "_cpu": "_extension.cpu_names",
    "_distributed_c10d": "distributed._core_names",
    "_distributed_rpc": "distributed.rpc._core_names",
    "_profiler": "autograd._profiler_enums",
}

# What a build may have, by the backend that tells; None for devices and libraries that no build has.
_BUILT = {
    **{f"has_{backend}": backend for backend in ("cuda", "mps", "mkl", "mkldnn")},
    **dict.fromkeys(("has_cudnn", "has_xpu", "has_magma")),
}


def __getattr__(name):
    if name in _MODULES:
        from importlib import import_module

        return import_module(f"rushlight.{_MODULES[name]}")
    if name.removeprefix("_") in _BUILT:
        from rushlight import backends

        backend = _BUILT[name.removeprefix("_")]
        if backend is None:
            return False
        tells = getattr(backends, backend)
        return tells.is_built() if hasattr(tells, "is_built") else tells.is_available()
    for home, names in _HOMES.items():
        if name in names.split():
            from importlib import import_module

            return getattr(import_module(f"rushlight.{home}"), name)
    raise AttributeError(f"module 'torch._C' has no attribute {name!r}")
