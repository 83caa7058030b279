// What the users of oneDNN share: its engine, and a bounded cache of compiled primitives.
#pragma once
#ifdef RUSHLIGHT_WITH_ONEDNN
#include <array>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/fork_mutex.h"
#include "cpu/onednn_api.h"

namespace rushlight::cpu {

inline dnnl::engine& onednn_engine() {
  static dnnl::engine e = [] {
    dnnl::set_primitive_cache_capacity(128);  // for reorders: plans are kept below
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return e;
}

// Whether oneDNN uses AVX-512 here, and so has bfloat16: ONEDNN_MAX_CPU_ISA may allow it less than the
// processor.
inline bool onednn_has_avx512() {
  static const bool has =
      (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
  return has;
}

// The plans last used, by the words that determine them. Bounded: programs with ever new shapes must not grow
// without end.
template <class Plan, size_t kWords>
class PlanCache {
 public:
  using Key = std::array<int64_t, kWords>;

  template <class Make>
  std::shared_ptr<const Plan> get(const Key& key, Make&& make) {
    std::lock_guard lock(mutex_);
    if (auto found = index_.find(key); found != index_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return found->second->second;
    }
    order_.emplace_front(key, std::make_shared<const Plan>(make()));
    index_[key] = order_.begin();
    if (order_.size() > kLimit) {
      index_.erase(order_.back().first);
      order_.pop_back();
    }
    return order_.front().second;
  }

 private:
  static constexpr size_t kLimit = 256;  // a large network has some 100; a product's code takes 100 KB
  struct Hash {
    size_t operator()(const Key& key) const {
      uint64_t h = 0xcbf29ce484222325;
      for (int64_t w : key) h = (h ^ static_cast<uint64_t>(w)) * 0x100000001b3;
      return h ^ h >> 29;
    }
  };
  using Entry = std::pair<Key, std::shared_ptr<const Plan>>;
  ForkMutex mutex_;
  std::list<Entry> order_;
  std::unordered_map<Key, typename std::list<Entry>::iterator, Hash> index_;
};

}  // namespace rushlight::cpu
#endif
