// NVIDIA's libraries, found at run time: in the wheels beside this package, then by name.
#pragma once
#include <initializer_list>
#include <string>

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

 private:
  void* address(const char* name);

  std::string title_, package_, failure_;
  void* handle_ = nullptr;
};

}  // namespace rushlight::cuda
