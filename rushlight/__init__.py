"""Rushlight: tensors, automatic differentiation and neural networks, with PyTorch's public API.

Importing loads the extension and little else: submodules and everything written in Python load on first use.
"""

import builtins as _builtins
from math import e, inf, nan, pi

from rushlight import _C
from rushlight._C import *
from rushlight._tensor import Tensor
from rushlight.version import __version__

__capture__ = "through"  # Note [Capture marks]


def _c_name(name):
    """What `_C` does not hold itself: names of PyTorch's extension that are plain Python here."""
    from rushlight._extension import names

    return getattr(names, name)


def _functorch_name(name):
    """The same for `_C._functorch`."""
    from rushlight._extension import functorch_names

    return getattr(functorch_names, name)


def _name_in(space):
    """The same for the operators of a part of `_C`."""

    def find(name):
        from rushlight._extension.operator_names import function_of

        return function_of(space, name)

    return find


_C.__getattr__ = _c_name
_C._functorch.__getattr__ = _functorch_name
_C._nn.__getattr__, _C._linalg.__getattr__ = _name_in("nn"), _name_in("linalg")
_C._fft.__getattr__, _C._special.__getattr__ = _name_in("fft"), _name_in("special")
_C.__path__ = [f"{__path__[0]}/_C"]  # whose parts programs import, too

globals().update({name: f for name, f in vars(_C._VariableFunctions).items() if not name.startswith("__")})
del globals()["unique_dim"]  # as in PyTorch, whose public form is `unique`

newaxis = None
legacy_contiguous_format = _C.contiguous_format

_SUBMODULES = frozenset(
    """
        __config__ accelerator amp ao array_api autograd backends compiler cpu cuda debug distributed
        distributions export fft func functional futures fx hub interpolate jit library linalg masked monitor
        mps mtia multiprocessing nested nn onnx optim overrides package profiler quantization quasirandom
        random return_types serialization serve safetensors signal sparse special storage testing
        torch_version types utils version viz xpu _tensor_str _utils _jit_internal _dynamo _inductor
        _subclasses _custom_op _custom_ops _ops _library __future__ _higher_order_ops _logging _guards ops
        classes
        _awaits _decomp _export _prims _prims_common
        _functorch _lobpcg _lowrank _weights_only_unpickler _linalg_utils _vmap_internals _VF
    """.split()
)

# Where the names live that are written in Python.
_HOMES = {
    "autograd.grad_mode": "enable_grad inference_mode no_grad set_grad_enabled",
    "_C": "is_grad_enabled is_inference_mode_enabled is_anomaly_enabled",
    "_tensor_str": "get_printoptions set_printoptions printoptions",
    "serialization": "load save",
    "random": "fork_rng get_rng_state initial_seed manual_seed seed set_rng_state thread_safe_generator",
    "storage": "TypedStorage UntypedStorage",
    "futures": "Future",
    "_quantized.packed": "ScriptObject",
    "_quantized.operators": "quantized_gru quantized_lstm",
    "_extension.tags": "Tag",
    "_extension.names": "has_cuda has_lapack has_openmp has_spectral",
    "_dynamo": "_disable_dynamo",
    "functional": """
        atleast_1d atleast_2d atleast_3d broadcast_shapes broadcast_tensors cdist chain_matmul einsum lu
        meshgrid nonzero norm split tensordot unique unique_consecutive unravel_index _unique
    """,
    "nested._internal.from_mask": """
        _nested_from_padded _nested_from_padded_and_nested_example _nested_tensor_from_mask
        _nested_tensor_from_mask_left_aligned
    """,
    "nn.functional": "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d",
    "_functions.settings": """
        are_deterministic_algorithms_enabled get_default_device get_deterministic_debug_mode
        get_float32_matmul_precision is_deterministic_algorithms_warn_only_enabled
        is_warn_always_enabled set_default_device set_default_tensor_type
        set_deterministic_debug_mode set_float32_matmul_precision set_warn_always
        use_deterministic_algorithms get_num_interop_threads set_num_interop_threads
        set_flush_denormal set_vital is_batch_invariant_enabled use_batch_invariant
    """,
    "_functions.helpers": """
        _debug_has_internal_overlap _nnpack_available
        _assert _assert_tensor_metadata _check _check_index _check_is_size _check_not_implemented
        _check_tensor_all _check_type _check_value _check_with _is_all_true compile is_floating_point
        is_complex is_nonzero is_signed is_storage is_conj is_neg is_inference is_same_size numel typename
        can_cast result_type sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt SymBool
        _sym_acos _sym_asin _sym_atan _sym_cos _sym_cosh _sym_sin _sym_sinh _sym_sqrt _sym_tan _sym_tanh
        SymFloat SymInt get_device_module is_distributed resolve_conj resolve_neg get_device
        compiled_with_cxx11_abi _grouped_mm _has_compatible_shallow_copy_type
    """,
    "amp": "autocast GradScaler is_autocast_available",
    "amp.autocast_mode": """
        is_autocast_enabled set_autocast_enabled get_autocast_dtype set_autocast_dtype
        is_autocast_cpu_enabled set_autocast_cpu_enabled get_autocast_cpu_dtype
        set_autocast_cpu_dtype get_autocast_gpu_dtype set_autocast_gpu_dtype
        is_autocast_cache_enabled set_autocast_cache_enabled clear_autocast_cache
        autocast_increment_nesting autocast_decrement_nesting
    """,
    "_functions.legacy_types": """
        BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor
        IntTensor LongTensor ShortTensor BFloat16Storage BoolStorage ByteStorage CharStorage
        DoubleStorage FloatStorage HalfStorage IntStorage LongStorage ShortStorage
        ComplexDoubleStorage ComplexFloatStorage QInt32Storage QInt8Storage QUInt2x4Storage QUInt4x2Storage
        QUInt8Storage Storage _storage_classes _tensor_classes
    """,
    "_serialization.file_records": "PyTorchFileReader PyTorchFileWriter",
    "_lobpcg": "lobpcg",
    "_linalg_utils": "eig lstsq matrix_rank solve symeig",
    "_functorch.apis": "vmap",
    "_functions.segment": "segment_reduce _segment_reduce",
    "_lowrank": "pca_lowrank svd_lowrank",
    "sparse": """
        dsmm hsmm hspmm smm saddmm sspaddmm sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor
        sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor spmm _validate_sparse_coo_tensor_args
        _validate_sparse_compressed_tensor_args _validate_sparse_csr_tensor_args
        _validate_sparse_csc_tensor_args _validate_sparse_bsr_tensor_args _validate_sparse_bsc_tensor_args
    """,
    "_functorch.functional_tensors": """
        _disable_functionalization _enable_functionalization _from_functional_tensor _is_functional_tensor
        _mirror_autograd_meta_to _sync _to_functional_tensor
    """,
    "_functions.composites": """
        detach_ histogramdd from_file _check_tensor_all_with set_anomaly_enabled sym_sum sym_constrain_range
        sym_constrain_range_for_size _choose_qparams_per_tensor native_channel_shuffle native_norm
        quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d _functional_assert_async
    """,
    "utils.dlpack": "to_dlpack",
    "jit": "ScriptFunction ScriptModule",
    "jit._graph_nodes": "Block Graph Node Value",
    "jit._graph_types": "JitType TensorType",
    "jit._type_objects": """
        AnyType BoolType ComplexType DeviceObjType DictType FloatType IntType ListType NoneType NumberType
        OptionalType PyObjectType StreamObjType StringType TupleType
    """,
    "torch_version": "TorchVersion",
    "_extension.streams": "AcceleratorError Event Stream",
    "_extension.dispatch_keys": "DispatchKey DispatchKeySet",
    "_higher_order_ops": "while_loop cond",
    "utils.summary": "summary",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


# Where Python's form of an operator differs from the core's, Python's is public.
for _name in _HOME_OF:
    globals().pop(_name, None)


def __getattr__(name):
    from importlib import import_module

    if name == "torch":  # programs say torch.torch, which PyTorch has by the way its modules import it
        return import_module("rushlight")
    home = _HOME_OF.get(name)
    if home is None and name not in _SUBMODULES:
        package = import_module(__name__)  # of whose names Python makes `Did you mean: ...?`
        raise AttributeError(f"module 'torch' has no attribute {name!r}", name=name, obj=package)
    value = import_module(f"rushlight.{home or name}")
    if home is not None:
        value = getattr(value, f"_{name}" if name == "symeig" else name)
    if name != "Storage":  # which follows the default type
        globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_HOME_OF, *_SUBMODULES})
