// Data of other libraries, read by position.
#pragma once
#include <unordered_map>

#include "python/factory.h"

namespace rushlight::python {

// Note [Data by position]: A series or a data frame answers data[0] and len(data) by its labels or columns,
// so reading it as a sequence shuffles or transposes it. What describes its memory itself (__array__,
// __array_interface__, a buffer of several axes) becomes an array once; other sequences become a list once,
// by iterating. Both are read by position only. The dtype is the one that PyTorch infers from single
// elements.
class Positions {
 public:
  struct Read {
    PyObject* data;  // borrowed: a list, an array, or what was given
    OptDType dtype;  // of an array whose elements are numbers of Python
  };
  Read of(PyObject* data);  // the answer lives as long as this object

 private:
  struct Entry {
    PyRef source, read;  // the source too, so that no other object takes its address
    OptDType dtype;
  };
  Entry convert(PyObject* data);
  std::unordered_map<PyObject*, Entry> known_;
};

// Whether an object tells NumPy what it holds. Lists, numbers, tensors, arrays, text do not count.
bool is_array_like(PyObject* o);
// A sequence that is no list and holds no text: read through the protocol (ranges, user classes).
bool is_other_sequence(PyObject* o);

inline bool is_list(PyObject* o) { return PyList_Check(o) || PyTuple_Check(o); }
bool is_scalar_leaf(PyObject* o);  // a number, also as an array or tensor without axes

}  // namespace rushlight::python
