// NVIDIA's libraries, found at run time: in the wheels beside this package, then by name.
#pragma once
#include <initializer_list>
#include <string>

#include "core/device_driver.h"

namespace rushlight::cuda {

class Library {
 public:
  // `folders`: of site-packages/nvidia. `wish`: what needs it, for the error; `package`: of PyPI.
  Library(const char* title, std::initializer_list<const char*> folders,
          std::initializer_list<const char*> names, const char* package);

  bool found() const { return handle_ && failure_.empty(); }
  // Fails with what is missing, and with the command that brings it.
  void require(const char* wish) const;
  const std::string& failure() const { return failure_; }

  template <class F>
  void entry(const char* name, F** out) {
    *out = reinterpret_cast<F*>(address(name));
  }
  // As entry, for what only newer versions have: null there, and the library is no worse for it.
  template <class F>
  void newer_entry(const char* name, F** out) {
    *out = reinterpret_cast<F*>(address_if_there(name));
  }

 private:
  void* address(const char* name);
  void* address_if_there(const char* name);

  std::string title_, package_, failure_;
  void* handle_ = nullptr;
};

// Fails unless `status`, what a library's function answered, is 0.
inline void check_status(const char* library, int status, const char* function) {
  if (status != 0)
    throw DeviceError(str("CUDA error: ", library, " answered ", status, " to ", function), status);
}

// A function of a library, found when the table that it is a member of is made; null where it is missing.
template <class F>
class Entry {
 public:
  Entry(Library& library, const char* name) { library.entry(name, &function_); }
  operator F*() const { return function_; }

 private:
  F* function_ = nullptr;
};

template <class F>
class NewerEntry {
 public:
  NewerEntry(Library& library, const char* name) { library.newer_entry(name, &function_); }
  operator F*() const { return function_; }

 private:
  F* function_ = nullptr;
};

}  // namespace rushlight::cuda
