// A thread-local list of freed objects of one size, for the objects that every operation creates.
#pragma once
#include <cstddef>
#include <new>

namespace rushlight {

template <size_t Size, size_t Align, size_t Limit = 256>
class FreeList {
 public:
  static void* take() {
    List& list = local();
    if (list.head) [[likely]] {
      Node* node = list.head;
      list.head = node->next;
      --list.count;
      return node;
    }
    return ::operator new(Size, std::align_val_t(Align));
  }
  static void give(void* memory) noexcept {
    List& list = local();
    if (list.count >= Limit || list.closed) return ::operator delete(memory, std::align_val_t(Align));
    list.head = new (memory) Node{list.head};
    ++list.count;
  }

 private:
  struct Node {
    Node* next;
  };
  struct List {
    Node* head = nullptr;
    size_t count = 0;
    bool closed = false;  // the thread is ending: give straight back
    ~List() {
      closed = true;
      while (head) {
        Node* next = head->next;
        ::operator delete(static_cast<void*>(head), std::align_val_t(Align));
        head = next;
      }
    }
  };
  static List& local() {
    static thread_local List list;
    return list;
  }
};

}  // namespace rushlight
