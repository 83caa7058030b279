// A thread-local list of freed objects of one size, for the objects that every operation creates.
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>

namespace rushlight {

// The address sanitizer sees the use of a freed object only if its memory is given back.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kFreeListsKeep = false;
#else
inline constexpr bool kFreeListsKeep = true;
#endif

template <size_t Size, size_t Align, uint16_t Limit = 256>
class FreeList {
 public:
  static void* take() {
    if (Node* node = list.head) [[likely]] {
      list.head = node->next;
      --list.count;
      return node;
    }
    return ::operator new(Size, std::align_val_t(Align));
  }
  static void give(void* memory) noexcept {
    if (list.count >= list.limit) [[unlikely]]
      return give_slowly(memory);
    list.head = new (memory) Node{list.head};
    ++list.count;
  }

 private:
  struct Node {
    Node* next;
  };
  // Trivial, so that reaching it costs no guard; `limit` is 0 until the thread's cleaner stands, and again
  // after it ran. Small, for all of a library's initial-exec variables share the 1.6 KB that the C library
  // keeps for libraries that are loaded late, this one and others.
  struct List {
    Node* head;
    uint32_t count;
    uint16_t limit;
    bool closed;
  };
  static_assert(sizeof(List) <= 16);
  struct Cleaner {
    bool armed = false;
    ~Cleaner() {
      list.limit = 0;
      list.closed = true;
      while (Node* node = list.head) {
        list.head = node->next;
        ::operator delete(static_cast<void*>(node), std::align_val_t(Align));
      }
    }
  };
  [[gnu::noinline]] static void give_slowly(void* memory) noexcept {
    if (kFreeListsKeep && !list.closed && list.limit == 0) {
      static thread_local Cleaner cleaner;
      cleaner.armed = true;
      list.limit = Limit;
      return give(memory);
    }
    ::operator delete(memory, std::align_val_t(Align));
  }
  static inline constinit thread_local List list __attribute__((tls_model("initial-exec"))) = {};
};

}  // namespace rushlight
