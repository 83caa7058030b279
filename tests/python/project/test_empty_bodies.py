"""No function of the C++ sources pretends: what has an empty body is named here, with the reason."""

import fnmatch
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]

# A type, a name, parameters, qualifiers, and nothing between the braces. Constructors and destructors have no
# type before them; classes have names in capitals.
BODY = re.compile(
    r"(?P<before>[^;{}()\n]*[\w>&*]\s+[*&]*)(?P<name>[a-z_]\w*)\s*\((?P<parameters>[^;{}]*)\)"
    r"(?:\s|const|noexcept|override|final)*\{\s*\}"
)
NO_FUNCTIONS = re.compile(r"\b(return|else|explicit|catch|class|struct|enum|namespace|operator)\b|&&|\+| < ")

# name -> (where, why)
ALLOWED = {
    "reset": ("include/rushlight/nn/*.h", "modules without parameters have nothing to start anew"),
    "check": ("include/rushlight/nn/activation.h", "options of most modules have no bounds"),
    "note": ("src/dispatch/derivative.h", "most parameters of a derivative need no mark"),
    "tile_reduce": ("src/cuda/launch.h", "the end of a recursion"),
    "release_saved": ("src/autograd/node.h", "nodes that save nothing"),
    "each_saved": ("src/autograd/node.h", "nodes that save nothing"),
    "from_dict": ("include/rushlight/optim_state.h", "optimizers without a state"),
    "release_addresses": ("src/core/*.h", "devices without virtual addresses"),
    "unmap_memory": ("src/core/*.h", "devices without virtual addresses"),
    "wait_event": ("src/core/caching_allocator.h", "sources of memory in one order of work"),
    "release_event": ("src/core/caching_allocator.h", "sources of memory in one order of work"),
    "push_cause": ("src/core/device_driver.h", "devices whose work is not traced"),
    "pop_cause": ("src/core/device_driver.h", "devices whose work is not traced"),
    "cupti_push": ("src/cuda/cupti.cpp", "builds without CUPTI"),
    "cupti_pop": ("src/cuda/cupti.cpp", "builds without CUPTI"),
    "set_num_interop_threads": ("include/rushlight/tensor.h", "operators do not run beside each other"),
    "init_num_threads": ("include/rushlight/tensor.h", "threads are there from the start"),
    "flatten_parameters": ("include/rushlight/nn/rnn.h", "no kernel wants weights in one piece"),
    "join": ("include/rushlight/data_chunks.h", "workers end with the iteration"),
    "enable_try_incref": ("src/python/free_threading.h", "interpreters with a lock"),
    "discard_shared": ("src/core/host/emscripten/memory.cpp", "a system without shared memory"),
    "set_thread_name": ("src/core/host/emscripten/thread.cpp", "one thread, which has no name"),
    "around_fork": ("src/core/host/windows/process.cpp", "a system without fork()"),
    "ignore_closed_pipes": ("src/core/host/windows/process.cpp", "a system without SIGPIPE"),
    "in_order": ("src/cpu/isa/byte_finish_inl.h", "vectors that are in their columns' order already"),
    "init_indexing": ("src/python/indexing.cpp", "a part of the module without a table of its own"),
}


def _empty_bodies(text):
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"^[ ]*#(?:[^\\\n]|\\\n?)*", "", text, flags=re.M)  # the preprocessor's
    for found in BODY.finditer(text):
        before = found["before"].splitlines()[-1] if found["before"].strip() else ""
        if "[](" in found["parameters"] or found["name"] == "sizeof":
            continue  # a lambda that is an argument, a condition
        if found["parameters"].count("(") != found["parameters"].count(")"):
            continue  # a call among a constructor's initialisers
        if before.strip() and not NO_FUNCTIONS.search(before) and not before.rstrip().endswith((":", ",")):
            yield found["name"]


def test_empty_bodies_are_found():
    code = (
        "struct A { A() {} ~A() {} explicit A(int i) : i_(i) {} void seed(uint64_t) {}\n int f() const { } };"
    )
    assert list(_empty_bodies(code)) == ["seed", "f"]
    assert list(_empty_bodies("inline void g(const std::function<void(int)>&) noexcept {\n}")) == ["g"]
    assert list(_empty_bodies("A::A(int n) : a_(n * g(n).size, n), b_(n) {}")) == []
    assert list(_empty_bodies("#if defined(X)\nA::A(int n) : a_(n) {}\n#endif")) == []
    assert list(_empty_bodies("try { f(); } catch (const E&) {}  void h() { x(); }")) == []


def test_no_function_has_an_empty_body():
    found = {}
    for folder in ("src", "include"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".cu", ".cuh"):
                for name in _empty_bodies(path.read_text(encoding="utf-8")):
                    found.setdefault(name, []).append(str(path.relative_to(ROOT)))
    fakes = [
        f"{path}: {name}"
        for name, paths in found.items()
        for path in paths
        if name not in ALLOWED or not fnmatch.fnmatch(path, ALLOWED[name][0])
    ]
    assert fakes == []
    assert sorted(ALLOWED.keys() - found.keys()) == []
