// A piece of a segment, in use or free, in the list of its segment's pieces.
#pragma once
#include "core/caching_allocator.h"

namespace rushlight {

struct CachingAllocator::Block {
  char* address = nullptr;
  size_t size = 0;
  size_t requested = 0;
  Pool* pool = nullptr;
  Block* previous = nullptr;
  Block* next = nullptr;
  bool allocated = false;
  int events = 0;
  uint64_t freed_at = 0;
  std::string_view label = {};
  std::list<Pending> other_streams = {};
  uint64_t context = 0;
  FreeSet::node_type place = {};     // in the free set, while it is not there
  LiveBlocks::node_type entry = {};  // among live blocks, likewise

  bool free() const { return !allocated && events == 0; }
  bool is_split() const { return previous || next; }
};

}  // namespace rushlight
