// Fields that one thread may read while another one writes them.
#pragma once
#include <atomic>
#include <cstdint>
#include <type_traits>

namespace rushlight {

// Note [Objects and threads]
// Any thread may use any tensor, node or storage. What reading changes behind the scenes is safe: a meta made
// on demand, a wrapper, a view's renewed history, memory put in order. Threads that write to the elements of
// one tensor may see each other's halves, no more. Three rules serve that:
// - A field of one word that others may read at any time has one of the types below. A load costs what a
//   plain load costs.
// - References that may be replaced (Tensor.grad, grad_fn, hooks) are copied out and replaced under the lock
//   of their meta or node. What was there dies after the lock: its end may run Python.
// - No lock is held while Python code may run.
// Not covered: giving a tensor other memory, shape or dtype (set_data, resize_, transposing in place) while
// another thread uses it.

// A pointer that a thread fills in and others find.
template <class T>
class Published {
 public:
  constexpr Published() noexcept = default;
  constexpr explicit Published(T* p) noexcept : pointer_(p) {}
  Published(const Published&) = delete;
  Published& operator=(const Published&) = delete;
  Published& operator=(T* p) noexcept {
    pointer_.store(p, std::memory_order_release);
    return *this;
  }
  operator T*() const noexcept { return pointer_.load(std::memory_order_acquire); }
  T* get() const noexcept { return *this; }
  T* operator->() const noexcept
    requires(!std::is_void_v<T>)
  {
    return *this;
  }
  // Fills an empty pointer. What it holds afterwards: `mine`, or what another thread was faster with.
  T* publish(T* mine) noexcept {
    T* found = nullptr;
    return pointer_.compare_exchange_strong(found, mine, std::memory_order_acq_rel) ? mine : found;
  }
  T* exchange(T* p) noexcept { return pointer_.exchange(p, std::memory_order_acq_rel); }

 private:
  std::atomic<T*> pointer_{nullptr};
};

// A word of bits. The operators load and store: they are for the one thread that makes or changes an object.
// `set` and `clear` are for changes that several threads may make at once.
class SharedBits {
 public:
  constexpr explicit SharedBits(uint32_t bits = 0) noexcept : bits_(bits) {}
  SharedBits(const SharedBits&) = delete;
  SharedBits& operator=(const SharedBits& o) noexcept { return *this = uint32_t{o}; }
  SharedBits& operator=(uint32_t bits) noexcept {
    bits_.store(bits, std::memory_order_relaxed);
    return *this;
  }
  operator uint32_t() const noexcept { return bits_.load(std::memory_order_relaxed); }
  SharedBits& operator|=(uint32_t bits) noexcept { return *this = *this | bits; }
  SharedBits& operator&=(uint32_t bits) noexcept { return *this = *this & bits; }
  void set(uint32_t bits) noexcept {
    if (~*this & bits) bits_.fetch_or(bits, std::memory_order_relaxed);
  }
  void clear(uint32_t bits) noexcept {
    if (*this & bits) bits_.fetch_and(~bits, std::memory_order_relaxed);
  }

 private:
  std::atomic<uint32_t> bits_;
};

}  // namespace rushlight
