// Intrusive reference counting: RefCounted is the count, Ref<T> the smart pointer.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace rushlight {

class RefCounted {
 public:
  RefCounted() noexcept = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void retain() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  // True when this was the last reference: the caller must destroy the object.
  bool release() const noexcept {
    // A sole owner writes nothing: nobody else can retain meanwhile. So the last reference stays counted, for
    // those that find a dying object without owning it (Note [Accumulators], Note [Python identity]).
    uint32_t n = count_.load(std::memory_order_acquire);
    do {
      if (n == 1) return true;
    } while (!count_.compare_exchange_weak(n, n - 1, std::memory_order_acq_rel, std::memory_order_acquire));
    return false;
  }
  uint32_t use_count() const noexcept { return count_.load(std::memory_order_acquire); }

 protected:
  ~RefCounted() = default;

 private:
  mutable std::atomic<uint32_t> count_{1};
};

// Owns one reference. T offers retain(), release() (from RefCounted) and static void destroy(T*).
template <class T>
class Ref {
 public:
  Ref() noexcept = default;
  Ref(std::nullptr_t) noexcept {}
  static Ref adopt(T* object) noexcept {  // takes over the caller's reference
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  static Ref share(T* object) noexcept {
    if (object) object->retain();
    return adopt(object);
  }
  Ref(const Ref& other) noexcept : object_(other.object_) {
    if (object_) object_->retain();
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <class U>
    requires std::is_convertible_v<U*, T*>
  Ref(Ref<U> other) noexcept : object_(other.detach()) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { reset(); }

  void reset() noexcept {
    T* object = std::exchange(object_, nullptr);
    if (object && object->release()) T::destroy(object);
  }
  T* detach() noexcept { return std::exchange(object_, nullptr); }  // gives the reference to the caller
  T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) noexcept { return a.object_ == b.object_; }

 private:
  T* object_ = nullptr;
};

template <class T, class... Args>
Ref<T> make_ref(Args&&... args) {
  return Ref<T>::adopt(new T(std::forward<Args>(args)...));
}

}  // namespace rushlight
