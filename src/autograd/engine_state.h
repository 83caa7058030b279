// What one backward pass knows about the nodes it reaches. Private to engine.cpp.
#pragma once
#include <bit>

#include "autograd/node.h"

namespace rushlight {

struct NodeState {
  Node* node = nullptr;
  uint32_t pending = 0;  // edges that have not delivered yet
  int32_t capture = -1;  // first entry of Workspace::captures
  bool visited = false;
  bool reaches = false;   // is or leads to an input
  bool executes = false;  // leads to an input
  bool queued = false;
  Gradients buffer;
};

// Reused from pass to pass, so that small graphs need no memory from the heap.
class Workspace {
 public:
  struct Capture {
    uint32_t input;   // gradient of the node
    uint32_t result;  // position among the inputs asked for
    int32_t next;
  };
  struct Step {
    uint32_t state, next_edge;
  };
  std::vector<Capture> captures;
  std::vector<Step> stack;

  static std::unique_ptr<Workspace> borrow() {
    auto& kept = spare();
    return kept ? std::move(kept) : std::make_unique<Workspace>();
  }
  static void give_back(std::unique_ptr<Workspace> work) {
    work->clear();
    if (work->states_.capacity() <= 1 << 14) spare() = std::move(work);
  }

  NodeState& operator[](uint32_t i) { return states_[i]; }
  const NodeState& operator[](uint32_t i) const { return states_[i]; }
  int64_t find_known(const Node* node) const {  // -1: not part of the pass
    if (slots_.empty()) return -1;
    for (size_t i = hash(node); slots_[i]; i = (i + 1) & (slots_.size() - 1))
      if (states_[slots_[i] - 1].node == node) return slots_[i] - 1;
    return -1;
  }
  uint32_t find(const Node* node) const {
    for (size_t i = hash(node);; i = (i + 1) & (slots_.size() - 1))
      if (states_[slots_[i] - 1].node == node) return slots_[i] - 1;
  }
  std::pair<uint32_t, bool> find_or_add(Node* node) {
    if (2 * (states_.size() + 1) > slots_.size()) grow();
    for (size_t i = hash(node);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i] == 0) {
        states_.emplace_back().node = node;
        slots_[i] = static_cast<uint32_t>(states_.size());
        return {slots_[i] - 1, true};
      }
      if (states_[slots_[i] - 1].node == node) return {slots_[i] - 1, false};
    }
  }

  // Ready nodes, as a heap: the highest sequence number comes out first.
  bool has_ready() const { return !ready_.empty(); }
  void push_ready(uint32_t s) {
    states_[s].queued = true;
    ready_.push_back({states_[s].node->sequence(), s});
    std::push_heap(ready_.begin(), ready_.end());
  }
  uint32_t pop_ready() {
    std::pop_heap(ready_.begin(), ready_.end());
    const uint32_t s = ready_.back().state;
    ready_.pop_back();
    return s;
  }

 private:
  struct Ready {
    uint64_t sequence;
    uint32_t state;
    bool operator<(const Ready& o) const { return sequence < o.sequence; }
  };
  static std::unique_ptr<Workspace>& spare() {
    static thread_local std::unique_ptr<Workspace> kept;
    return kept;
  }
  size_t hash(const Node* node) const {
    return static_cast<size_t>((reinterpret_cast<uintptr_t>(node) >> 4) * 0x9E3779B97F4A7C15ull >> shift_);
  }
  void grow() {
    const size_t n = std::max<size_t>(64, 2 * slots_.size());
    slots_.assign(n, 0);
    shift_ = 64 - std::countr_zero(n);
    for (uint32_t s = 0; s < states_.size(); ++s) {
      size_t i = hash(states_[s].node);
      while (slots_[i]) i = (i + 1) & (n - 1);
      slots_[i] = s + 1;
    }
  }
  void clear() {
    states_.clear();
    captures.clear();
    stack.clear();
    ready_.clear();
    if (slots_.size() > 4096)
      slots_.clear(), shift_ = 0;
    else
      std::fill(slots_.begin(), slots_.end(), 0);
  }

  std::vector<NodeState> states_;
  std::vector<uint32_t> slots_;  // open addressing; index of the state plus one
  std::vector<Ready> ready_;
  int shift_ = 0;
};

}  // namespace rushlight
