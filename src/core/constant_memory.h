// Constants: memory that does not change while it is registered, so that kernels may keep what they make of
// it, such as weights in a layout of their own.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/fork_mutex.h"

namespace rushlight {

class ConstantSet;

// Lets go of the pages that hold nothing but a part of a mapped file; the system reads them again when
// somebody wants them.
void leave_memory(const void* data, size_t nbytes);

// What this thread may take for constant: what is registered for all, and before that the set of a scope.
class ConstantMemory {
 public:
  // What a kernel made; kinds tell apart those of different kernels.
  struct Made {
    virtual ~Made() = default;
    virtual size_t nbytes() const = 0;
  };

  // Registrations count. `in_file`: mapped from a file, from which the system can read it again.
  static void add(const void* data, size_t nbytes, bool in_file);
  static void remove(const void* data);

  // The first thing made of this memory that `matches`; null if there is none.
  template <class T, class Matches>
  static std::shared_ptr<const T> find(const void* data, Matches&& matches);
  // Keeps it until the memory's registration ends, unless that has many already. What lies in a file leaves
  // memory: kernels read what was made of it from now on.
  static void keep(const void* data, std::shared_ptr<const Made> made);
  // Of what is being made of memory that starts at `data`: these bytes of it have been read. Where it lies in
  // a file they leave memory at once, so that a large constant is there once and not twice.
  static void have_read(const void* data, size_t begin, size_t nbytes);
  // Whether data is the start of registered memory; cheap when nothing is registered.
  static bool contains(const void* data);

 private:
  friend ConstantSet;
  using Visitor = bool (*)(void* context, const std::shared_ptr<const Made>& made);
  static std::shared_ptr<const Made> find_any(const void* data, Visitor visit, void* context);
};

// Registered memory, and what was made of it.
class ConstantSet {
 public:
  ConstantSet() = default;
  ConstantSet(const ConstantSet&) = delete;
  void add(const void* data, size_t nbytes, bool in_file);
  void remove(const void* data);
  bool contains(const void* data);
  bool in_file(const void* data);
  size_t made_bytes() const { return made_bytes_.load(std::memory_order_relaxed); }

 private:
  friend ConstantMemory;
  struct Constant {
    size_t nbytes;
    bool in_file;
    int registrations = 0;
    std::vector<std::shared_ptr<const ConstantMemory::Made>> made{};
  };
  std::shared_ptr<const ConstantMemory::Made> find(const void* data, ConstantMemory::Visitor visit,
                                                   void* context);
  void keep(const void* data, std::shared_ptr<const ConstantMemory::Made> made);

  ForkMutex mutex_;
  std::unordered_map<const void*, Constant> constants_;
  std::atomic<size_t> count_{0}, made_bytes_{0};
};

// Makes a set this thread's for the length of a scope: it is known constant to those alone who checked it.
class UseConstants {
 public:
  explicit UseConstants(ConstantSet* set);
  ~UseConstants();
  UseConstants(const UseConstants&) = delete;
  static ConstantSet* current();  // of this thread, to hand on to others that help it

 private:
  ConstantSet* before_;
};

template <class T, class Matches>
std::shared_ptr<const T> ConstantMemory::find(const void* data, Matches&& matches) {
  const auto visit = [](void* context, const std::shared_ptr<const Made>& made) {
    const auto* own = dynamic_cast<const T*>(made.get());
    return own && (*static_cast<std::remove_reference_t<Matches>*>(context))(*own);
  };
  return std::static_pointer_cast<const T>(
      find_any(data, visit, const_cast<void*>(static_cast<const void*>(&matches))));
}

}  // namespace rushlight
