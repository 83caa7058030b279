// Which values of a graph may share memory, and which of that memory is written.
#pragma once
#include "jit/graph.h"

namespace rushlight::jit {

// Values that may share memory are one class. A class that some node writes to is left alone by passes that
// move or merge what reads it.
class Aliases {
 public:
  explicit Aliases(const Graph& graph);
  bool same(ValueId a, ValueId b) { return root(a) == root(b); }
  bool written(ValueId v) { return written_[root(v)]; }
  ValueId representative(ValueId v) { return root(v); }
  // Whether a node reads or writes memory that is written somewhere.
  bool touches_written(const Node& node);

 private:
  ValueId root(ValueId v);
  void join(ValueId a, ValueId b);
  std::vector<ValueId> parent_;
  std::vector<bool> written_;
};

// Names of the constants whose memory some node writes to, and where in the user's program it does.
std::vector<std::pair<std::string, std::string>> written_constants(const Graph& graph);

// Whether results may share memory with operands.
bool may_alias(const Node& node);
// Whether the node writes to the operand of this parameter.
bool writes_to(const Node& node, size_t parameter);
bool writes(const Node& node);
// Whether two runs on the same operands may differ.
bool may_differ(const Node& node);

}  // namespace rushlight::jit
