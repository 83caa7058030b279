#include "core/foreign_allocator.h"

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "core/device_backend.h"

namespace rushlight::foreign {
namespace {

struct Given {
  ForeignAllocator by;
  size_t bytes;
  int device;
  void* stream;
  std::vector<StreamId> users = {};  // other streams
};

struct State {
  std::mutex mutex;
  ForeignAllocator all;
  std::unordered_map<PoolId, ForeignAllocator> pools;
  std::unordered_map<void*, Given> given;
};
State& state() {
  static auto* one = new State;  // tensors may outlive the library's objects
  return *one;
}
std::atomic<bool> has_all{false}, has_any{false};

void wait_for(const std::vector<StreamId>& streams) {
  for (const StreamId id : streams) device_backend(DeviceType::CUDA).synchronize_stream(id);
}

}  // namespace

void give_all(const ForeignAllocator& allocator) {
  DeviceBackend& backend = device_backend(DeviceType::CUDA);
  bool used = has_all;
  for (int i = 0; i < backend.device_count(); ++i)
    used |= backend.memory(i).stats().num_source_allocations > 0;
  RL_CHECK(!used, "Can't swap an already initialized allocator");
  state().all = allocator;
  has_any = true;
  has_all = true;
}
bool gives_all() { return has_all.load(std::memory_order_relaxed); }

void give_pool(PoolId pool, const ForeignAllocator& allocator) {
  const std::lock_guard lock(state().mutex);
  state().pools[pool] = allocator;
  has_any = true;
}
bool gives_pool(PoolId pool) {
  if (pool == 0 || !has_any.load(std::memory_order_relaxed)) return false;
  const std::lock_guard lock(state().mutex);
  return state().pools.contains(pool);
}

void* allocate(size_t bytes, int device, void* stream, PoolId pool) {
  ForeignAllocator by;
  {
    const std::lock_guard lock(state().mutex);
    by = pool ? state().pools.at(pool) : state().all;
  }
  void* address = by.allocate(static_cast<ptrdiff_t>(bytes), device, stream);
  if (!address) return nullptr;
  const std::lock_guard lock(state().mutex);
  state().given[address] = {by, bytes, device, stream};
  return address;
}

bool release(void* address) noexcept {
  if (!has_any.load(std::memory_order_relaxed)) return false;
  Given given;
  {
    const std::lock_guard lock(state().mutex);
    const auto found = state().given.find(address);
    if (found == state().given.end()) return false;
    given = std::move(found->second);
    state().given.erase(found);
  }
  try {
    wait_for(given.users);
  } catch (const Error&) {  // the device is lost
  }
  given.by.release(address, static_cast<ptrdiff_t>(given.bytes), given.device, given.stream);
  return true;
}

void record_stream(void* address, StreamId stream) {
  const std::lock_guard lock(state().mutex);
  if (const auto found = state().given.find(address); found != state().given.end())
    found->second.users.push_back(stream);
}

}  // namespace rushlight::foreign
