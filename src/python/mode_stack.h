// The stacks of dispatch modes of a thread. Note [Python dispatch]
#pragma once
#include <vector>

#include "python/op_function.h"

namespace rushlight::python {

class ModeStack {
 public:
  bool active() const;  // whether a mode here is to see calls
  size_t size() const { return modes_.size(); }
  PyObject* at(size_t i) const { return modes_[i]; }  // borrowed
  void push(PyObject* owned);
  PyObject* pop();  // owned

 private:
  std::vector<PyObject*> modes_;  // owned, innermost last
};

ModeStack& dispatch_modes();      // see what really runs
ModeStack& pre_dispatch_modes();  // see what the program calls

// While disabled, no mode of this thread sees anything; returns what held before.
bool disable_modes(bool disabled);
bool modes_are_disabled();

// Takes the innermost mode off for as long as its handler runs.
class ModeScope {
 public:
  explicit ModeScope(ModeStack& stack) : stack_(stack), mode_(stack.pop()) {}
  ~ModeScope() { stack_.push(mode_); }
  ModeScope(const ModeScope&) = delete;
  PyObject* mode() const { return mode_; }

 private:
  ModeStack& stack_;
  PyObject* mode_;
};

// Lets the thread see every call while modes or replaced kernels want to.
void watch_python_dispatch();

void init_mode_stacks(PyObject* module);

}  // namespace rushlight::python
