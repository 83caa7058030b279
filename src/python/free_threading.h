// What the interpreter without a global lock asks for, in terms that cost nothing where there is one.
#pragma once
#include <atomic>
#include <mutex>
#include <thread>

#include "python/python.h"

namespace rushlight::python {

#ifdef Py_GIL_DISABLED
inline constexpr bool kFreeThreaded = true;
#else
inline constexpr bool kFreeThreaded = false;
#endif

// Note [Free threading]
// Without a global lock (Py_GIL_DISABLED) these rules hold in this folder:
// - What a dictionary, list or type holds may be replaced at any time. `find_item`, `type_attribute`,
//   `Items` and `DictItems` give what the caller may use until they end. Only tuples and objects that nobody
//   else knows are read directly.
// - An object made on first use is a `Lazy`; interned names are made with the module (`Name`). A function's
//   `static` with Python code in its initializer could wait for a thread that waits for this one.
// - What the module itself may be told to replace, a hook or a class, is a `SharedObject`.
// - Locks around C++ data (ShortLock, IdentityLock) are held for a few instructions, and never while an
// object
//   is made or dies: that may run Python code, or stop all threads for the cycle collector.

// What a look-up found: borrowed under the global lock, else a reference.
class Found {
 public:
#ifdef Py_GIL_DISABLED
  explicit Found(PyObject* owned) noexcept : object_(owned) {}
  Found(Found&& o) noexcept : object_(std::exchange(o.object_, nullptr)) {}
  ~Found() { Py_XDECREF(object_); }
  PyObject* new_ref() noexcept { return std::exchange(object_, nullptr); }
#else
  explicit Found(PyObject* borrowed) noexcept : object_(borrowed) {}
  PyObject* new_ref() noexcept { return Py_XNewRef(object_); }
#endif
  PyObject* get() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  PyObject* object_;
};

// dict[key]; empty without an error where there is none, and with the error that a comparison raised.
inline Found find_item(PyObject* dict, PyObject* key) {
#ifdef Py_GIL_DISABLED
  PyObject* value;
  PyDict_GetItemRef(dict, key, &value);
  return Found(value);
#else
  return Found(PyDict_GetItemWithError(dict, key));
#endif
}

// What the type or its bases hold under the name, unbound.
inline Found type_attribute(PyTypeObject* type, PyObject* name) {
#ifdef Py_GIL_DISABLED
  return Found(_PyType_LookupRef(type, name));
#else
  return Found(_PyType_Lookup(type, name));
#endif
}

// The items of a list or tuple as they are now.
class Items {
 public:
  explicit Items(PyObject* sequence)
#ifdef Py_GIL_DISABLED
      : kept_(PyList_Check(sequence) ? check(PyList_AsTuple(sequence)) : nullptr) {
    if (kept_) sequence = kept_.get();
#else
  {
#endif
    items_ = PySequence_Fast_ITEMS(sequence);
    size_ = PySequence_Fast_GET_SIZE(sequence);
  }
  Py_ssize_t size() const { return size_; }
  PyObject** data() const { return items_; }
  PyObject* operator[](Py_ssize_t i) const { return items_[i]; }
  PyObject** begin() const { return items_; }
  PyObject** end() const { return items_ + size_; }
#ifdef Py_GIL_DISABLED
  PyObject* release() { return kept_.release(); }  // the tuple that holds them, or null

 private:
  PyRef kept_;
#else

 private:
#endif
  PyObject** items_;
  Py_ssize_t size_;
};

// A dictionary to walk over with PyDict_Next: itself, or a copy.
class DictItems {
 public:
#ifdef Py_GIL_DISABLED
  explicit DictItems(PyObject* dict) : copy_(check(PyDict_Copy(dict))) {}
  bool next(Py_ssize_t& at, PyObject*& key, PyObject*& value) const {
    return PyDict_Next(copy_.get(), &at, &key, &value);
  }

 private:
  PyRef copy_;
#else
  explicit DictItems(PyObject* dict) : dict_(dict) {}
  bool next(Py_ssize_t& at, PyObject*& key, PyObject*& value) const {
    return PyDict_Next(dict_, &at, &key, &value);
  }

 private:
  PyObject* dict_;
#endif
};

// Holds the lock of an object: what it holds stays as it is. Python code may run inside, with the lock given
// up.
class CriticalSection {
 public:
#ifdef Py_GIL_DISABLED
  explicit CriticalSection(PyObject* object) { PyCriticalSection_Begin(&section_, object); }
  ~CriticalSection() { PyCriticalSection_End(&section_); }

 private:
  PyCriticalSection section_;
#else
  explicit CriticalSection(PyObject*) {}
  ~CriticalSection() {}  // NOLINT: a scope, also where it does nothing
#endif

 public:
  CriticalSection(const CriticalSection&) = delete;
};

// An interned string, made with the module: names are objects at file scope.
class Name {
 public:
  explicit Name(const char* text) : text_(text), next_(std::exchange(first(), this)) {}
  Name(const Name&) = delete;
  PyObject* get() const { return object_; }
  operator PyObject*() const { return object_; }
  static void make_all() {
    for (Name* name = first(); name; name = name->next_)
      if (!name->object_) name->object_ = check(PyUnicode_InternFromString(name->text_));
  }

 private:
  static Name*& first();
  const char* text_;
  PyObject* object_ = nullptr;
  Name* next_;
};

// An object that is made on first use and kept for good. `make` returns a new reference and may throw; two
// threads may both call it, and one result is kept.
class Lazy {
 public:
  template <class F>
  PyObject* get(F&& make) {
    if (PyObject* there = object_.load(std::memory_order_acquire)) return there;
    PyRef made(make());
    PyObject* found = nullptr;
    if (object_.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel)) return made.release();
    return found;
  }
  PyObject* peek() const { return object_.load(std::memory_order_acquire); }

 private:
  std::atomic<PyObject*> object_{nullptr};
};

// A short lock around C++ data. Waiting gives the core up, not the thread's place in the interpreter.
class ShortLock {
 public:
  void lock() noexcept {
    if constexpr (kFreeThreaded)
      while (held_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() noexcept {
    if constexpr (kFreeThreaded) held_.store(false, std::memory_order_release);
  }

 private:
  std::atomic<bool> held_{false};
};

// An object that Python code may replace while other threads read it.
class SharedObject {
 public:
  explicit operator bool() const { return object_.load(std::memory_order_relaxed) != nullptr; }
  PyRef get() {
    const std::lock_guard guard(lock_);
    return PyRef::borrow(object_.load(std::memory_order_relaxed));
  }
  // Takes the reference; returns the one before.
  PyRef exchange(PyObject* owned) {
    const std::lock_guard guard(lock_);
    return PyRef(object_.exchange(owned, std::memory_order_relaxed));
  }

 private:
  std::atomic<PyObject*> object_{nullptr};
  ShortLock lock_;
};

#ifdef Py_GIL_DISABLED
// For objects that are found through a pointer which does not own them: `enable_try_incref` when one is made,
// `try_incref` when it is found, under a lock that its deallocation takes too.
inline void enable_try_incref(PyObject* fresh) {
#if PY_VERSION_HEX >= 0x030E0000
  PyUnstable_EnableTryIncRef(fresh);
#else
  // The last reference then goes through a compare-and-swap.
  std::atomic_ref<Py_ssize_t> shared(fresh->ob_ref_shared);
  Py_ssize_t count = shared.load(std::memory_order_relaxed);
  while (!(count & _Py_REF_SHARED_FLAG_MASK) &&
         !shared.compare_exchange_weak(count, count | _Py_REF_MAYBE_WEAKREF, std::memory_order_relaxed)) {
  }
#endif
}
// False for an object that is dying.
inline bool try_incref(PyObject* object) {
#if PY_VERSION_HEX >= 0x030E0000
  return PyUnstable_TryIncRef(object);
#else
  if (_Py_IsOwnedByCurrentThread(object)) {  // the owner's count is above zero until it lets go of the object
    Py_INCREF(object);
    return true;
  }
  std::atomic_ref<Py_ssize_t> shared(object->ob_ref_shared);
  Py_ssize_t count = shared.load(std::memory_order_relaxed);
  do {
    if (count == _Py_REF_SHARED_INIT || count == _Py_REF_MERGED) return false;
  } while (!shared.compare_exchange_weak(count, count + (Py_ssize_t{1} << _Py_REF_SHARED_SHIFT)));
  return true;
#endif
}
#else
inline void enable_try_incref(PyObject*) {}
inline bool try_incref(PyObject* object) {
  Py_INCREF(object);
  return true;
}
#endif

// The lock over which object is whose wrapper, one for many addresses. Note [Python identity]
class IdentityLock {
 public:
  explicit IdentityLock(const void* address) : lock_(lock_of(address)) { lock_.lock(); }
  ~IdentityLock() { lock_.unlock(); }
  IdentityLock(const IdentityLock&) = delete;

 private:
  static ShortLock& lock_of(const void* address);
  ShortLock& lock_;
};

}  // namespace rushlight::python
