// The options of PyTorch's allocator, as its environment variable spells them: "name:value,name:value".
#include <cstdlib>

#include "core/caching_allocator.h"
#include "core/real_number.h"

namespace rushlight {
namespace {

double number_of(std::string_view name, std::string_view value) {
  double number = 0;
  const auto [end, error] = real_from_chars(value.data(), value.data() + value.size(), number);
  RL_CHECK_VALUE(error == std::errc{} && end == value.data() + value.size(), "Error parsing ", name,
                 " of the CachingAllocator's options: expected a number, got '", value, "'");
  return number;
}

void set_option(AllocatorConfig& config, std::string_view name, std::string_view value) {
  if (name == "expandable_segments") {
    RL_CHECK_VALUE(value == "True" || value == "False",
                   "Expected a single True/False argument for expandable_segments, got '", value, "'");
    config.expandable = value == "True";
  } else if (name == "garbage_collection_threshold") {
    config.collect_above = number_of(name, value);
    RL_CHECK_VALUE(config.collect_above > 0 && config.collect_above < 1,
                   "garbage_collect_threshold is invalid, set it in (0.0, 1.0)");
  } else if (name == "max_split_size_mb") {
    const double megabytes = number_of(name, value);
    RL_CHECK_VALUE(megabytes > 20 && megabytes < 1e9,
                   "CachingAllocator option max_split_size_mb too small, must be > 20");
    config.max_split = static_cast<size_t>(megabytes) << 20;
  } else {
    // Options that change speed alone, or choose what is the only choice here.
    for (const std::string_view known :
         {"backend", "roundup_power2_divisions", "roundup_bypass_threshold_mb", "release_lock_on_cudamalloc",
          "pinned_use_cuda_host_register", "pinned_num_register_threads", "pinned_use_background_threads",
          "graph_capture_record_stream_reuse", "per_process_memory_fraction"})
      if (name == known) return;
    RL_FAIL_AS(Value, "Unrecognized CachingAllocator option: ", name);
  }
}

}  // namespace

AllocatorConfig parse_allocator_config(std::string_view text) {
  AllocatorConfig config;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const size_t colon = part.find(':');
    RL_CHECK_VALUE(colon != part.npos, "CachingAllocator options are name:value, separated by commas; got '",
                   part, "'");
    set_option(config, part.substr(0, colon), part.substr(colon + 1));
    text = comma == text.npos ? std::string_view() : text.substr(comma + 1);
  }
  return config;
}

AllocatorConfig allocator_config_from_environment() {
  for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"})
    if (const char* given = std::getenv(name)) return parse_allocator_config(given);
  return {};
}

}  // namespace rushlight
