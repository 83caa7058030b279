"""What is written for ARM64 alone, compiled by Debian's cross compiler and run under QEMU, where both are.

`./dev cross aarch64` runs everything (docs/arm64.md); this takes seconds.
"""

import json
import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SRC = ROOT / "src"
COMPILER, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64-static"
# As cmake/Dependencies.cmake and cmake/InstructionSets.cmake have them.
FLAGS = ["-std=c++20", "-O1", "-fsigned-char", "-ffp-contract=off", "-static", f"-I{SRC}"]
SETS = ["-fno-math-errno", "-fno-trapping-math"]
NEON = ["-ffp-contract=fast", "-DRL_NEON=1"]

PACKAGES = {COMPILER: "g++-aarch64-linux-gnu", EMULATOR: "qemu-user-static"}
pytestmark = [
    pytest.mark.skipif(not shutil.which(program), reason=f"no {program} (apt install {package})")
    for program, package in PACKAGES.items()
]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """compiled(program, (source, isa), ...): the path of a program for ARM64."""
    folder = tmp_path_factory.mktemp("arm64")

    def compile_program(text, *sources, level="-O1"):
        objects = []
        for source, isa in (("main.cpp", None), *sources):
            path = SRC / source
            if source == "main.cpp":
                path = folder / source
                path.write_text(text)
            objects.append(str(folder / f"{len(objects)}-{isa}.o"))
            flags = [*SETS, f"-DRL_ISA={isa}"] if isa else []
            flags += NEON if isa == "neon" else []
            words = [
                COMPILER,
                *FLAGS,
                level,
                "-DRUSHLIGHT_WITH_NEON=1",
                *flags,
                "-c",
                path,
                "-o",
                objects[-1],
            ]
            ran = subprocess.run(list(map(str, words)), capture_output=True, text=True)
            assert ran.returncode == 0, ran.stderr
        program = folder / "program"
        subprocess.run([COMPILER, *FLAGS, *objects, "-o", str(program)], check=True)
        return program

    return compile_program


def emulate(program, processor="max", capability=None):
    variables = {"RUSHLIGHT_CPU_CAPABILITY": capability} if capability else {}
    ran = subprocess.run(
        [EMULATOR, "-cpu", processor, str(program)],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )
    assert ran.returncode == 0, ran.stderr
    return ran


CHOICE = """
#include <cstdio>
#include "core/crc32.h"
#include "core/host/processor.h"

using namespace rushlight;

int main() {
  unsigned char bytes[1000];
  for (int i = 0; i < 1000; ++i) bytes[i] = static_cast<unsigned char>(i * i + 7 * i);
  std::printf("[%d, %d, %d, [", static_cast<int>(host::isa()), host::has_dot_products(),
              host::has_checksums());
  for (int n = 0; n < 1000; ++n) std::printf("%s%u", n ? ", " : "", crc32(bytes, n, 1));
  std::printf("]]");
}
"""


CHOOSERS = ("crc32", "host/processor", "host/linux/processor", "host/linux/cgroup", "host/posix/process")


def test_instruction_sets_are_chosen_by_the_processor_and_the_variable(compiled):
    """A Cortex-A53 has NEON alone; `neon` allows no more, `baseline` not even that; x86's names are none."""
    program = compiled(CHOICE, *((f"core/{name}.cpp", None) for name in CHOOSERS))
    data = bytes((i * i + 7 * i) & 255 for i in range(1000))
    sums = [zlib.crc32(data[:n], 1) for n in range(1000)]

    def choice(**kwargs):
        isa, dot_products, checksums, found = json.loads(emulate(program, **kwargs).stdout)
        assert found == sums
        return isa, dot_products, checksums

    assert choice() == (1, 1, 1)
    assert choice(processor="cortex-a53")[:2] == (1, 0)
    assert choice(capability="neon") == (1, 0, 1)
    assert choice(capability="dotprod") == (1, 1, 1)
    assert choice(capability="baseline") == (0, 0, 1)
    ran = emulate(program, capability="avx2")
    assert "it can be baseline, neon or dotprod. It is ignored." in ran.stderr
    assert json.loads(ran.stdout)[0] == 1


RANDOM = """
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "cpu/random_blocks.h"

int main() {
  for (const auto* blocks : {&rushlight::baseline::random_blocks, &rushlight::neon::random_blocks}) {
    float data[64], range[64];
    unsigned bits[64], seed = 1;
    for (int i = 0; i < 64; ++i) {
      seed = seed * 1664525u + 1013904223u;
      bits[i] = seed;
    }
    blocks->uniform_float(bits, data, 64, 0, 1);
    blocks->uniform_float(bits, range, 64, -0.3f, 2.7f);
    blocks->normal_float(data, 4, 0.5f, 3);
    for (const float* values : {data, range})
      for (int i = 0; i < 64; ++i) {
        unsigned word;
        std::memcpy(&word, values + i, 4);
        std::printf("%08x", word);
      }
    std::printf("\\n");
  }
}
"""


def test_random_numbers_are_those_of_x86(compiled, tmp_path):
    """The baseline's are x86's baseline's, NEON's are AVX2's, to the last bit."""
    machine = subprocess.run(["g++", "-dumpmachine"], capture_output=True, text=True).stdout
    if not machine.startswith("x86_64"):
        pytest.skip("this is no x86 to compare with")
    if "avx2" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has no AVX2 to compare with")
    units = (("cpu/isa/random.cpp", "baseline"), ("cpu/isa/random.cpp", "neon"))
    ours = emulate(compiled(RANDOM, *units)).stdout.split()
    main = tmp_path / "main.cpp"
    main.write_text(RANDOM.replace("neon::", "avx2::"))
    common = ["g++", "-std=c++20", "-O1", f"-I{SRC}"]
    for isa, flags in (("baseline", []), ("avx2", ["-mavx2", "-mfma", "-mf16c"])):
        words = [*common, *SETS, *flags, f"-DRL_ISA={isa}", "-c", str(SRC / "cpu/isa/random.cpp")]
        subprocess.run([*words, "-o", str(tmp_path / f"{isa}.o")], check=True)
    program = tmp_path / "program"
    objects = [str(tmp_path / "baseline.o"), str(tmp_path / "avx2.o")]
    subprocess.run([*common, str(main), *objects, "-o", str(program)], check=True)
    theirs = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.split()
    assert ours[1] == theirs[1]
    assert ours[0] == theirs[0]
    assert len(set(ours)) == 2  # sets differ from each other


PRODUCT = """
#include <cmath>
#include <cstdlib>
#include <vector>

#include "cpu/double_gemm.h"
#include "cpu/packed_product.h"
#include "cpu/transpose.h"

using namespace rushlight;
using namespace rushlight::cpu;

namespace rushlight::cpu {
TransposeTile transpose_tile(size_t) { std::abort(); }  // nothing is packed here
namespace neon {
DoubleTile double_tile();
PackedKernels packed_kernels();
}
}

constexpr int64_t m = 60, n = 32, k = 256;

template <class T>
void product(const T* a, const T* b, T* c) {
  if constexpr (sizeof(T) == 4) {
    const PackedProduct p{DType::Float32, m, n, k, a, k, b, nullptr, -INFINITY, INFINITY, c};
    const PackedKernels kernels = neon::packed_kernels();
    kernels.multiply(p, 0, m, 0, n / kernels.width(DType::Float32));
  } else {
    const DoubleTile tile = neon::double_tile();
    for (int64_t i = 0; i < m; i += tile.rows)
      for (int64_t j = 0; j < n; j += tile.columns)
        tile.run(a + i * k, b + j * k, k, 1, 0, c + i * n + j, n);
  }
}

template <class T>
int run(int times) {
  const std::vector<T> a(m * k, T(1)), b(n * k, T(2));
  std::vector<T> c(m * n);
  for (int i = 0; i < times; ++i) product(a.data(), b.data(), c.data());
  for (T x : c)
    if (times && x != 2 * k) return 1;
  return 0;
}

int main(int, char** arguments) {
  const int times = std::atoi(arguments[2]);
  return arguments[1][0] == 'f' ? run<float>(times) : run<double>(times);
}
"""


def test_products_of_matrices_take_few_instructions(compiled):
    """For each that multiplies and adds at most half another one. OpenBLAS's kernels for Neoverse N1 take
    1.46 and 1.43 in all; docs/arm64.md tells how that was counted."""
    isa = (("cpu/isa/double_gemm.cpp", "neon"), ("cpu/isa/packed_product.cpp", "neon"))
    units = (*isa, ("cpu/panel.cpp", "neon"))
    program = compiled(PRODUCT, *units, level="-O3")

    def instructions(kind, times):
        words = [
            EMULATOR,
            "-singlestep",
            "-d",
            "exec,nochain",
            "-D",
            "/dev/stdout",
            program,
            kind,
            str(times),
        ]
        ran = subprocess.run(list(map(str, words)), capture_output=True)
        assert ran.returncode == 0
        return ran.stdout.count(b"\n")

    for kind, lanes, most in (("float", 4, 1.6), ("double", 2, 1.5)):
        counted = instructions(kind, 2) - instructions(kind, 1)
        needed = 60 * 32 * 256 // lanes
        assert needed < counted <= most * needed


NARROW = """
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "core/half.h"
#include "cpu/packed_product.h"
#include "cpu/transpose.h"

using namespace rushlight;
using namespace rushlight::cpu;

namespace rushlight::cpu {
TransposeTile transpose_tile(size_t) { std::abort(); }  // the small numbers here are packed without it
namespace baseline { PackedKernels narrow_packed_kernels(); }
namespace neon { PackedKernels narrow_packed_kernels(); }
}

constexpr int64_t m = 13, n = 45, k = 19;

int main() {
  std::vector<float> a(m * k), bias(n);
  std::vector<BFloat16> b(k * n);
  for (int64_t i = 0; i < m * k; ++i) a[i] = static_cast<float>(i % 7 - 3);
  for (int64_t i = 0; i < k * n; ++i) b[i] = BFloat16(static_cast<float>(i % 11 - 5));
  for (int64_t i = 0; i < n; ++i) bias[i] = static_cast<float>(i);
  for (const PackedKernels& kernels : {baseline::narrow_packed_kernels(), neon::narrow_packed_kernels()}) {
    const int64_t width = kernels.width(DType::Float32), panels = (n + width - 1) / width;
    std::vector<BFloat16> packed(panel_elements(k, n));
    std::vector<float> c(m * n);
    kernels.pack(DType::BFloat16, k, n, MatrixView{b.data(), n, 1}, packed.data(), 0, panels);
    const PackedProduct p{DType::Float32, m,           n,         k,        a.data(), k, packed.data(),
                          bias.data(),    -INFINITY, INFINITY, c.data()};
    kernels.multiply(p, 0, m, 0, panels);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        float sum = bias[j];
        for (int64_t l = 0; l < k; ++l) sum += a[i * k + l] * static_cast<float>(b[l * n + j]);
        if (c[i * n + j] != sum) return 1;
      }
    std::printf("%d ", static_cast<int>(width));
  }
}
"""


def test_products_with_bfloat16_panels_are_exact_for_panels_of_any_width(compiled):
    """Small integers, whose sums are exact. Panels are of four vectors here; x86 has them of two."""
    isa = (("cpu/isa/packed_product.cpp", "baseline"), ("cpu/isa/packed_product.cpp", "neon"))
    units = (*isa, ("cpu/panel.cpp", "baseline"))
    assert emulate(compiled(NARROW, *units)).stdout.split() == ["16", "16"]


def test_the_command_names_the_processors_it_builds_for():
    ran = subprocess.run(
        [sys.executable, ROOT / "dev", "cross", "sparc"], capture_output=True, text=True, cwd=ROOT
    )
    assert ran.returncode == 1
    assert ran.stderr == "dev: cross: name the processor to build for, which can be aarch64\n"
