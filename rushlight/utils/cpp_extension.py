"""Operators of one's own in C++: compiled against this package's headers, loaded, shown in `torch.ops`."""

import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
from types import ModuleType

from rushlight import _ops

__all__ = [
    "BuildExtension",  # noqa: F822
    "CUDAExtension",
    "CUDA_HOME",
    "CppExtension",
    "get_default_build_root",
    "include_paths",
    "is_ninja_available",
    "library_paths",
    "load",
    "load_inline",
]

CUDA_HOME = ROCM_HOME = HIP_HOME = CUDNN_HOME = None
IS_WINDOWS, IS_MACOS = sys.platform == "win32", sys.platform == "darwin"
IS_LINUX = sys.platform.startswith("linux")
IS_HIP_EXTENSION = False
# What setup.py files add to the options of nvcc.
COMMON_NVCC_FLAGS = [
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
    "--expt-relaxed-constexpr",
]
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_NO_CUDA = "cpp_extension: this build has no CUDA; give C++ sources only"


def include_paths(device_type="cpu", torch_include_dirs=True):
    """Where the headers are: in the package, or in the source tree that it was built in and, as far as the
    build wrote them, in the package."""
    if device_type == "cuda":
        raise RuntimeError(_NO_CUDA)
    packaged = os.path.join(_PACKAGE, "include")
    if os.path.isdir(os.path.join(packaged, "rushlight")):
        return [packaged]
    tree = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    return [os.path.join(tree, "include"), os.path.join(tree, "src"), packaged]


def library_paths(device_type="cpu", torch_include_dirs=True, cross_target_platform=None):
    """Where the library is that extensions link with; nowhere without `torch_include_dirs`."""
    return [os.path.join(_PACKAGE, "lib")] if torch_include_dirs else []


def is_ninja_available():
    """Ninja is not used: an extension is compiled with one call of the compiler for each source."""
    return False


def verify_ninja_availability():
    """Raises RuntimeError: see `is_ninja_available`."""
    raise RuntimeError("Ninja is not used: extensions are built by the compiler alone; leave use_ninja out")


def get_cxx_compiler():
    """The command that compiles extensions: CXX, or c++."""
    return _compiler()


def get_default_build_root():
    """The folder below which extensions are built: ``TORCH_EXTENSIONS_DIR``, or one of the user's."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.environ.get("TORCH_EXTENSIONS_DIR") or os.path.join(cache, "rushlight_extensions")


def _compiler():
    return os.environ.get("CXX", "c++")


def _compile_flags():
    return ["-std=c++20", "-O2", "-fPIC", "-Wno-init-list-lifetime"]


def _check_sources(sources):
    sources = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    if any(os.fspath(source).endswith((".cu", ".cuh")) for source in sources):
        raise RuntimeError(_NO_CUDA)
    if not sources:
        raise ValueError("cpp_extension: no sources")
    return [os.path.abspath(source) for source in sources]


def _run(command, verbose):
    if verbose:
        print(" ".join(command), file=sys.stderr)
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except FileNotFoundError as error:
        raise RuntimeError(
            f"Error building extension: there is no compiler {command[0]!r}; install g++ 12 or newer, or "
            "set CXX"
        ) from error
    if verbose and done.stdout:
        print(done.stdout, file=sys.stderr)
    if done.returncode != 0:
        raise RuntimeError(f"Error building extension: {' '.join(command)}\n{done.stdout}")


def _stamp(command, sources):
    """What a library was made from; it is made again when this changes."""
    digest = hashlib.sha256("\0".join(command).encode())
    core = os.path.join(library_paths()[0], "librushlight.so")
    digest.update(str(os.stat(core).st_mtime_ns if os.path.exists(core) else 0).encode())
    for source in sources:
        with open(source, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def _pybind11_paths(sources):
    """Where pybind11's headers are, if a source makes a module with them."""
    for source in sources:
        with open(source, "rb") as file:
            if b"PYBIND11_MODULE" in file.read():
                try:
                    import pybind11
                except ImportError:
                    raise RuntimeError(
                        f"cpp_extension: {source} uses PYBIND11_MODULE, which needs pybind11: install it "
                        "(pip install pybind11)"
                    ) from None
                return [pybind11.get_include()]
    return []


def _build(name, sources, cflags, ldflags, includes, folder, verbose):
    """Compile and link into the folder, unless that is done already; returns the library's path."""
    os.makedirs(folder, exist_ok=True)
    dirs = [*includes, *include_paths(), sysconfig.get_path("include"), *_pybind11_paths(sources)]
    base = [_compiler(), *_compile_flags(), *(f"-I{path}" for path in dirs), *cflags]
    lib = library_paths()[0]
    link = ["-shared", f"-L{lib}", f"-Wl,-rpath,{lib}", "-lrushlight", *ldflags]
    stamp = _stamp([*base, *link], sources)
    made = _versions.setdefault(os.path.join(folder, name), [])
    if stamp not in made:  # a process cannot load other contents from a path again
        made.append(stamp)
    version = made.index(stamp)
    name = f"{name}_v{version}" if version else name
    base.insert(-len(cflags) or len(base), f"-DTORCH_EXTENSION_NAME={name}")
    path, mark = os.path.join(folder, f"{name}.so"), os.path.join(folder, f"{name}.stamp")
    if os.path.exists(path) and os.path.exists(mark):
        with open(mark, encoding="utf-8") as file:
            if file.read() == stamp:
                return path
    objects = []
    for i, source in enumerate(sources):
        objects.append(os.path.join(folder, f"{name}.{i}.{os.getpid()}.o"))
        _run([*base, "-c", source, "-o", objects[-1]], verbose)
    fresh = f"{path}.{os.getpid()}"
    _run([_compiler(), *objects, *link, "-o", fresh], verbose)
    for part in objects:
        os.unlink(part)
    os.replace(fresh, path)  # at once: another process may be loading it
    with open(mark, "w", encoding="utf-8") as file:
        file.write(stamp)
    return path


def _defines_module(path, name):
    with open(path, "rb") as file:
        return f"PyInit_{name}\0".encode() in file.read()


_loaded: dict = {}
_versions: dict = {}  # folder and name of an extension -> stamps of what this process built there


def load(
    name,
    sources,
    extra_cflags=None,
    extra_cuda_cflags=None,
    extra_sycl_cflags=None,
    extra_ldflags=None,
    extra_include_paths=None,
    build_directory=None,
    verbose=False,
    with_cuda=None,
    with_sycl=None,
    is_python_module=True,
    is_standalone=False,
    keep_intermediates=True,
):
    """Compile C++ sources and load them.

    The sources register operators with ``RUSHLIGHT_LIBRARY(space, m)`` of ``<rushlight/extension.h>``, or
    define a Python module called `name`. They are compiled again only if they, the flags or this package
    changed.

    Returns:
        The Python module, if the sources define one; else one made of the operators. With
        ``is_python_module=False`` nothing: the operators are in `torch.ops`.
    """
    if with_cuda or extra_cuda_cflags:
        raise RuntimeError(_NO_CUDA)
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise ValueError(f"cpp_extension: the name of an extension is an identifier, but got {name!r}")
    if is_standalone:
        raise NotImplementedError("cpp_extension: stand-alone executables are not built here")
    sources = _check_sources(sources)
    folder = build_directory or os.path.join(get_default_build_root(), sys.implementation.cache_tag, name)
    path = _build(
        name,
        sources,
        extra_cflags or [],
        extra_ldflags or [],
        [os.fspath(path) for path in extra_include_paths or []],
        folder,
        verbose,
    )
    return _import_library(name, path, is_python_module)


def _import_library(name, path, is_python_module):
    if path in _loaded:
        return _loaded[path]
    version = os.path.basename(path).removesuffix(".so")
    module = next((n for n in (version, name) if _defines_module(path, n)), None)
    if is_python_module and module:
        spec = importlib.util.spec_from_file_location(module, path)
        result = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(result)
        _ops.show_extension_operators()
    else:
        added = _ops.ops.load_library(path)
        result = ModuleType(name) if is_python_module else None
        if result:
            vars(result).update({op._opname: op for op in added})
    _loaded[path] = result
    return result


def load_inline(
    name,
    cpp_sources,
    cuda_sources=None,
    sycl_sources=None,
    functions=None,
    extra_cflags=None,
    extra_cuda_cflags=None,
    extra_sycl_cflags=None,
    extra_ldflags=None,
    extra_include_paths=None,
    build_directory=None,
    verbose=False,
    with_cuda=None,
    with_sycl=None,
    is_python_module=True,
    with_pytorch_error_handling=True,
    keep_intermediates=True,
    use_pch=False,
    no_implicit_headers=False,
):
    """Compile C++ given as strings and load it.

    Args:
        functions: which functions to show, by name; a dict maps names to descriptions. Their schemas follow
            from their types.
    """
    if cuda_sources or sycl_sources:
        raise RuntimeError(_NO_CUDA)
    parts = [cpp_sources] if isinstance(cpp_sources, str) else list(cpp_sources)
    if not no_implicit_headers:
        parts.insert(0, "#include <torch/extension.h>")
    names = [functions] if isinstance(functions, str) else list(functions or [])
    if names:
        shown = "\n".join(f'  m.show("{function}", {function});' for function in names)
        parts.append(f"RUSHLIGHT_LIBRARY({name}, m) {{\n{shown}\n}}")
    folder = build_directory or os.path.join(get_default_build_root(), sys.implementation.cache_tag, name)
    os.makedirs(folder, exist_ok=True)
    source, text = os.path.join(folder, "main.cpp"), "\n".join(parts) + "\n"
    if not os.path.exists(source) or open(source, encoding="utf-8").read() != text:
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
    result = load(
        name,
        [source],
        extra_cflags=extra_cflags,
        extra_ldflags=extra_ldflags,
        extra_include_paths=extra_include_paths,
        build_directory=folder,
        verbose=verbose,
        is_python_module=is_python_module,
    )
    if isinstance(functions, dict) and is_python_module:
        for function, description in functions.items():
            getattr(result, function).__doc__ = description
    return result


# --- setuptools


def CppExtension(name, sources, *args, **kwargs):
    """A ``setuptools.Extension`` that finds this package's headers and library."""
    import setuptools

    lib = library_paths()
    kwargs["include_dirs"] = [*kwargs.get("include_dirs", []), *include_paths()]
    kwargs["library_dirs"] = [*kwargs.get("library_dirs", []), *lib]
    kwargs["runtime_library_dirs"] = [*kwargs.get("runtime_library_dirs", []), *lib]
    kwargs["libraries"] = [*kwargs.get("libraries", []), "rushlight"]
    kwargs["language"] = "c++"
    sources = [os.fspath(source) for source in sources]
    if any(source.endswith((".cu", ".cuh")) for source in sources):
        raise RuntimeError(_NO_CUDA)
    return setuptools.Extension(name, sources, *args, **kwargs)


def CUDAExtension(name, sources, *args, **kwargs):
    """Refused with a reason if there are CUDA sources; else a `CppExtension`, as packages expect that try."""
    return CppExtension(name, sources, *args, **kwargs)


def __getattr__(name):
    if name != "BuildExtension":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rushlight.utils._build_extension import BuildExtension

    globals()[name] = BuildExtension
    return BuildExtension
