// Memory of a graph's run: what a first run asks for is recorded, laid out in one block by lifetimes, and
// from then on served from such a block, the arena.
#pragma once
#include <mutex>
#include <vector>

#include "core/ref.h"
#include "core/storage_source.h"

namespace rushlight::jit {

// Requests up to this size are left to the allocator's thread-local lists.
inline constexpr size_t kPlannedBytes = 4096;

// One request of a run and the span of time it was alive, in requests and releases since the run began.
struct Request {
  size_t nbytes = 0;
  uint32_t begin = 0, end = 0;  // end 0: it outlived the run, and the arena must not hold it
};

struct MemoryPlan {
  static constexpr size_t kNotPlanned = SIZE_MAX;
  struct Slot {
    size_t nbytes, offset;
  };
  std::vector<Slot> slots;  // one per request, in order
  size_t arena_bytes = 0;
};

// Offsets such that requests alive at the same time do not overlap: largest first, each into the smallest
// gap that holds it.
MemoryPlan plan_memory(const std::vector<Request>& requests);

// Writes down what a thread asks for while the scope lasts.
class MemoryRecorder final : public StorageSource {
 public:
  MemoryRecorder();
  ~MemoryRecorder() override;
  StorageBlock take(size_t nbytes) override;
  // Ends the recording; what is alive now outlives the run.
  std::vector<Request> finish();

 private:
  struct Log;
  struct Block;
  Ref<Log> log_;
};

// Memory for one run at a time. Storages that outlive the run keep it alive, and the bytes they hold are not
// given out again before they are free, whatever the plan says.
class Arena final : public RefCounted {
 public:
  explicit Arena(size_t nbytes);
  static void destroy(Arena* arena) { delete arena; }
  size_t nbytes() const { return nbytes_; }
  // A block at this place, or nothing if somebody still holds part of it.
  StorageBlock take(size_t offset, size_t nbytes);

 private:
  ~Arena();
  static void give_back(void* arena, void* data, size_t nbytes);
  struct Span {
    size_t begin, end;
  };
  std::byte* data_;
  size_t nbytes_;
  std::mutex mutex_;
  std::vector<Span> live_;
};

// Serves a run from an arena as planned; requests that differ from the plan go to the allocator.
class PlannedMemory final : public StorageSource {
 public:
  PlannedMemory(const MemoryPlan& plan, Arena& arena) : plan_(plan), arena_(arena) {}
  StorageBlock take(size_t nbytes) override;

 private:
  const MemoryPlan& plan_;
  Arena& arena_;
  size_t next_ = 0;
};

// Makes a source this thread's for the length of a scope.
class UseStorageSource {
 public:
  explicit UseStorageSource(StorageSource* source) : before_(std::exchange(storage_source, source)) {}
  ~UseStorageSource() { storage_source = before_; }
  UseStorageSource(const UseStorageSource&) = delete;

 private:
  StorageSource* before_;
};

}  // namespace rushlight::jit
