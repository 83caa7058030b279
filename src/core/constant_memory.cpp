#include "core/constant_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/fork_mutex.h"

namespace rushlight {
namespace {

constexpr size_t kMaxMade = 4;  // of one constant: few layouts serve all shapes of a model

struct Constant {
  size_t nbytes;
  bool in_file;
  int registrations = 0;
  std::vector<std::shared_ptr<const ConstantMemory::Made>> made{};
};

struct Registry {
  ForkMutex mutex;
  std::unordered_map<const void*, Constant> constants;
  std::atomic<size_t> count{0};
  static Registry& get() {
    static Registry& registry = *new Registry;
    return registry;
  }
};

// The pages that hold nothing else. They are clean, and come back from the file when somebody reads them.
void leave_memory(const void* data, size_t nbytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(data) + page - 1) / page * page;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + nbytes) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace

void ConstantMemory::add(const void* data, size_t nbytes, bool in_file) {
  if (nbytes == 0) return;
  Registry& registry = Registry::get();
  std::lock_guard lock(registry.mutex);
  Constant& constant = registry.constants.try_emplace(data, Constant{nbytes, in_file}).first->second;
  ++constant.registrations;
  registry.count = registry.constants.size();
}

void ConstantMemory::remove(const void* data) {
  std::vector<std::shared_ptr<const Made>> freed;  // after the lock
  Registry& registry = Registry::get();
  std::lock_guard lock(registry.mutex);
  const auto found = registry.constants.find(data);
  if (found == registry.constants.end() || --found->second.registrations > 0) return;
  freed = std::move(found->second.made);
  registry.constants.erase(found);
  registry.count = registry.constants.size();
}

bool ConstantMemory::contains(const void* data) {
  Registry& registry = Registry::get();
  if (registry.count.load(std::memory_order_relaxed) == 0) return false;
  std::lock_guard lock(registry.mutex);
  return registry.constants.contains(data);
}

std::shared_ptr<const ConstantMemory::Made> ConstantMemory::find_any(const void* data, Visitor visit,
                                                                     void* context) {
  Registry& registry = Registry::get();
  std::lock_guard lock(registry.mutex);
  const auto found = registry.constants.find(data);
  if (found == registry.constants.end()) return nullptr;
  for (const auto& made : found->second.made)
    if (visit(context, made)) return made;
  return nullptr;
}

void ConstantMemory::keep(const void* data, std::shared_ptr<const Made> made) {
  Registry& registry = Registry::get();
  std::lock_guard lock(registry.mutex);
  const auto found = registry.constants.find(data);
  if (found == registry.constants.end() || found->second.made.size() == kMaxMade) return;
  found->second.made.push_back(std::move(made));
  if (found->second.in_file) leave_memory(data, found->second.nbytes);
}

}  // namespace rushlight
