"""What calls the operating system lies in src/core/host: other files are for all systems.

A file outside includes headers of the standard library, of its processor and of the libraries named here.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
HOST = ROOT / "src" / "core" / "host"
SYSTEMS = ("posix", "linux", "macos", "windows", "emscripten")

STANDARD = frozenset(
    """
        algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono
        cinttypes climits clocale cmath codecvt compare complex concepts condition_variable coroutine
        csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype deque
        exception execution filesystem format forward_list fstream functional future initializer_list
        iomanip ios iosfwd iostream istream iterator latch limits list locale map memory memory_resource
        mutex new numbers numeric optional ostream queue random ranges ratio regex scoped_allocator
        semaphore set shared_mutex source_location span sstream stack stdexcept stop_token streambuf
        string string_view syncstream system_error thread tuple type_traits typeindex typeinfo
        unordered_map unordered_set utility valarray variant vector version
        math.h stdbool.h stddef.h stdint.h stdio.h stdlib.h string.h
    """.split()
)
PROCESSOR = ("immintrin.h", "arm_neon.h", "cpuid.h", "pmmintrin.h")
# Libraries that are there on several systems, and the folders that use them.
LIBRARIES = {
    "boost/": "src/serve",
    "cblas.h": "src/cpu",
    "mkl": "src/cpu",
    "i_malloc.h": "src/cpu",  # MKL's
    "oneapi/": "src/cpu",
    "tbb/": "src/core",
    "gloo/": "src/distributed",
    "cub/": "src/cuda",
    "cuda/": "src/cuda",
    "cuda": "src/cuda",
    "cupti": "src/cuda",
    "thrust/": "src/cuda",
    "library_types.h": "src/cuda",
    "math_constants.h": "src/cuda",
    "mma.h": "src/cuda",
    "Python.h": "src/python",
    "frameobject.h": "src/python",
    "structmember.h": "src/python",
    "datetime.h": "src/python",
    "pybind11/": "include/torch",
}
INCLUDE = re.compile(r"^\s*#\s*include\s*<([^>]+)>", re.MULTILINE)
# What systems add to standard headers.
CALLS = re.compile(
    r"(?<![\w.>])(?:::)?(aligned_alloc|fork|getpid|gettid|gmtime_[rs]|localtime_[rs]|posix_memalign|realpath"
    r"|setenv|unsetenv|putenv|strdup|strtok_r|usleep|nanosleep|clock_gettime|fdopen|fileno|fseeko|popen|mkstemp)\s*\("
    r"|\b(ssize_t|off_t|pid_t|dev_t|ino_t)\b"
)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)


def _files():
    for folder in (ROOT / "src", ROOT / "include"):
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".h", ".cpp", ".cu", ".cuh", ".inc"):
                yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def _foreign(path, text):
    """The lines of a file that are one system's."""
    for header in INCLUDE.findall(text):
        of_ours = (ROOT / "src" / header).exists() or (ROOT / "include" / header).exists()
        library = any(header.startswith(name) and path.startswith(at) for name, at in LIBRARIES.items())
        if header not in STANDARD and header not in PROCESSOR and not of_ours and not library:
            yield f"<{header}>"
    for found in CALLS.finditer(COMMENT.sub("", text)):
        yield found[0].strip(" (")


def test_other_systems_calls_are_seen():
    text = '#include <unistd.h>\n#include <vector>\n#include "core/error.h"\n// fork()\nint x = ::getpid();\n'
    assert list(_foreign("src/core/x.cpp", text + 'call("fork(");\nssize_t n;\nnode.fork();')) == [
        "<unistd.h>",
        "::getpid",
        "ssize_t",
    ]
    assert list(_foreign("src/ops/x.cpp", "#include <tbb/arena.h>\n")) == ["<tbb/arena.h>"]


def test_only_the_host_calls_the_system():
    found = {}
    files = list(_files())
    assert len(files) > 900
    for path, text in files:
        if not path.startswith("src/core/host/"):
            found[path] = list(_foreign(path, text))
    assert {path: calls for path, calls in found.items() if calls} == {}


def test_headers_of_the_host_are_anyones():
    """What others include of it names no system."""
    headers = sorted(HOST.glob("*.h"))
    assert len(headers) >= 9
    for path in headers:
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        assert list(_foreign(name, text)) == [] and not re.search(r"^#\s*if", text, re.MULTILINE), name
    outside = re.compile(rf'#include "core/host/(?:{"|".join(SYSTEMS)})/')
    for path, text in _files():
        assert path.startswith("src/core/host/") or not outside.search(text), path


FUNCTION = re.compile(
    r"^[\w:<>*& ]*?\b(?:FileReplacement::~?)?(\w+)\([^;{}]*\)(?: const)?(?: noexcept)?;", re.MULTILINE
)


def test_each_system_has_all_functions():
    declared = set()
    for path in HOST.glob("*.h"):
        text = COMMENT.sub("", path.read_text(encoding="utf-8"))
        text = re.sub(r"^(class|struct) .*?^};", "", text, flags=re.DOTALL | re.MULTILINE)
        declared.update(FUNCTION.findall(text))
    assert {"around_fork", "map_file", "usable_cores", "load_library", "peer_is_gone"} < declared
    common = _text(HOST.glob("*.cpp"))
    for folders in (("posix", "linux"), ("posix", "macos"), ("posix", "emscripten"), ("windows",)):
        own = common + _text(path for folder in folders for path in (HOST / folder).glob("*.cpp"))
        missing = [name for name in sorted(declared) if not re.search(rf"\b{name}\([^;]*\)[^;]*\{{", own)]
        assert not missing, (folders, missing)


def _text(paths):
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)
