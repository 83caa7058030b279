#include "core/constant_memory.h"

#include <cstdint>
#include <mutex>

#include "core/host/memory.h"

namespace rushlight {
namespace {

constexpr size_t kMaxMade = 4;  // of one constant: few layouts serve all shapes of a model

ConstantSet& registered_for_all() {
  static ConstantSet& set = *new ConstantSet;
  return set;
}

thread_local ConstantSet* own_set = nullptr;

ConstantSet& holder_of(const void* data) {
  return own_set && own_set->contains(data) ? *own_set : registered_for_all();
}

}  // namespace

void leave_memory(const void* data, size_t nbytes) { host::forget_pages(data, nbytes); }

UseConstants::UseConstants(ConstantSet* set) : before_(std::exchange(own_set, set)) {}
UseConstants::~UseConstants() { own_set = before_; }
ConstantSet* UseConstants::current() { return own_set; }

void ConstantMemory::add(const void* data, size_t nbytes, bool in_file) {
  registered_for_all().add(data, nbytes, in_file);
}
void ConstantMemory::remove(const void* data) { registered_for_all().remove(data); }
bool ConstantMemory::contains(const void* data) { return holder_of(data).contains(data); }
std::shared_ptr<const ConstantMemory::Made> ConstantMemory::find_any(const void* data, Visitor visit,
                                                                     void* context) {
  return holder_of(data).find(data, visit, context);
}
void ConstantMemory::keep(const void* data, std::shared_ptr<const Made> made) {
  holder_of(data).keep(data, std::move(made));
}
void ConstantMemory::have_read(const void* data, size_t begin, size_t nbytes) {
  if (holder_of(data).in_file(data)) leave_memory(static_cast<const std::byte*>(data) + begin, nbytes);
}

void ConstantSet::add(const void* data, size_t nbytes, bool in_file) {
  if (nbytes == 0) return;
  std::lock_guard lock(mutex_);
  Constant& constant = constants_.try_emplace(data, Constant{nbytes, in_file, 0, {}}).first->second;
  ++constant.registrations;
  count_ = constants_.size();
}

void ConstantSet::remove(const void* data) {
  std::vector<std::shared_ptr<const ConstantMemory::Made>> freed;  // after the lock
  std::lock_guard lock(mutex_);
  const auto found = constants_.find(data);
  if (found == constants_.end() || --found->second.registrations > 0) return;
  freed = std::move(found->second.made);
  for (const auto& made : freed) made_bytes_ -= made->nbytes();
  constants_.erase(found);
  count_ = constants_.size();
}

bool ConstantSet::contains(const void* data) {
  if (count_.load(std::memory_order_relaxed) == 0) return false;
  std::lock_guard lock(mutex_);
  return constants_.contains(data);
}

bool ConstantSet::in_file(const void* data) {
  std::lock_guard lock(mutex_);
  const auto found = constants_.find(data);
  return found != constants_.end() && found->second.in_file;
}

std::shared_ptr<const ConstantMemory::Made> ConstantSet::find(const void* data, ConstantMemory::Visitor visit,
                                                              void* context) {
  std::lock_guard lock(mutex_);
  const auto found = constants_.find(data);
  if (found == constants_.end()) return nullptr;
  for (const auto& made : found->second.made)
    if (visit(context, made)) return made;
  return nullptr;
}

void ConstantSet::keep(const void* data, std::shared_ptr<const ConstantMemory::Made> made) {
  std::lock_guard lock(mutex_);
  const auto found = constants_.find(data);
  if (found == constants_.end() || found->second.made.size() == kMaxMade) return;
  made_bytes_ += made->nbytes();
  found->second.made.push_back(std::move(made));
  if (found->second.in_file) leave_memory(data, found->second.nbytes);
}

}  // namespace rushlight
