// Which instruction set kernels use. Libraries that choose their own are told by the variables they read.
#include "core/host/processor.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "core/host/features.h"
#include "core/host/process.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif

namespace rushlight::host {
namespace {

#if defined(__aarch64__)
// "neon" leaves out what only some processors have; "dotprod" is all there is.
constexpr IsaLimit kLimits[] = {{"baseline", Isa::kBaseline, nullptr, nullptr},
                                {"neon", Isa::kNeon, nullptr, nullptr},
                                {"dotprod", Isa::kNeon, nullptr, nullptr}};
constexpr const char* kNames = "baseline, neon or dotprod";
#else
constexpr IsaLimit kLimits[] = {{"baseline", Isa::kBaseline, "SSE41", "SSE4_2"},
                                {"avx2", Isa::kAvx2, "AVX2", "AVX2"},
                                {"avx512", Isa::kAvx512, "AVX512_CORE_FP16", "AVX512"},
                                {"amx", Isa::kAvx512, nullptr, nullptr}};
constexpr const char* kNames = "baseline, avx2, avx512 or amx";
#endif

Isa best() {
#if defined(RUSHLIGHT_WITH_NEON)
  return Isa::kNeon;
#endif
#if defined(RUSHLIGHT_WITH_AVX512)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    return Isa::kAvx512;
#endif
#if defined(RUSHLIGHT_WITH_AVX2)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"))
    return Isa::kAvx2;
#endif
  return Isa::kBaseline;
}

Isa choose() {
  const char* text = std::getenv("RUSHLIGHT_CPU_CAPABILITY");
  if (!text || !*text) return best();
  const auto limit = parse_isa_limit(text);
  if (!limit) {
    std::fprintf(stderr, "rushlight: RUSHLIGHT_CPU_CAPABILITY is '%s'; it can be %s. It is ignored.\n", text,
                 kNames);
    return best();
  }
#if defined(RUSHLIGHT_WITH_AVX512) && !defined(RUSHLIGHT_WITH_AVX2)
  if (limit->own == Isa::kAvx2)
    std::fprintf(
        stderr,
        "rushlight: this build has no kernels for AVX2, those of the baseline take their place; build "
        "with RUSHLIGHT_INSTRUCTION_SETS=all to have them.\n");
#endif
  // Set by the program itself, they count.
  if (limit->onednn) set_variable_if_unset("ONEDNN_MAX_CPU_ISA", limit->onednn);
  if (limit->mkl) set_variable_if_unset("MKL_ENABLE_INSTRUCTIONS", limit->mkl);
  return std::min(limit->own, best());
}

// Tiles whose products are of a kind: a bit of what the processor says of itself, which
// __builtin_cpu_supports may not know.
bool has_tiles([[maybe_unused]] unsigned kind) {
#if defined(__x86_64__) && defined(__GNUC__)
  constexpr unsigned kTiles = 1u << 24;
  const char* text = std::getenv("RUSHLIGHT_CPU_CAPABILITY");
  const bool forbidden = text && std::string_view(text) == "avx512";
  unsigned a = 0, b = 0, c = 0, d = 0;
  return isa() == Isa::kAvx512 && !forbidden && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & kTiles) &&
         (d & kind) && system_gives_tiles();
#else
  return false;
#endif
}

}  // namespace

std::optional<IsaLimit> parse_isa_limit(std::string_view text) {
  for (const IsaLimit& limit : kLimits)
    if (limit.name == text) return limit;
  return std::nullopt;
}

Isa isa() {
  static const Isa chosen = choose();
  return chosen;
}

bool has_dot_products() {
  static const bool has = [] {
    const char* text = std::getenv("RUSHLIGHT_CPU_CAPABILITY");
    const bool forbidden = text && std::string_view(text) == "neon";
    return isa() == Isa::kNeon && !forbidden && system_has_dot_products();
  }();
  return has;
}

bool has_checksums() {
  static const bool has = system_has_checksums();
  return has;
}

bool has_byte_tiles() {
  static const bool has = has_tiles(1u << 25);
  return has;
}
bool has_bfloat16_tiles() {
  static const bool has = has_tiles(1u << 22);
  return has;
}

int avx10_version() {
#if defined(__x86_64__) && defined(__GNUC__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kHas = 1u << 19;
  if (!__get_cpuid_count(7, 1, &a, &b, &c, &d) || !(d & kHas) || !__get_cpuid_count(0x24, 0, &a, &b, &c, &d))
    return 0;
  return static_cast<int>(b & 0xff);
#else
  return 0;
#endif
}

bool is_intel() {
#if defined(__x86_64__) && defined(__GNUC__)
  static const bool is = __builtin_cpu_is("intel");
  return is;
#else
  return false;
#endif
}

// As this library is loaded: before the others read their variables, and mostly before there are threads.
[[maybe_unused]] static const Isa kAtLoad = isa();

}  // namespace rushlight::host
