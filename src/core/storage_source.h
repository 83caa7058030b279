// Where the storages that a thread makes get their memory from, if not from the allocator.
#pragma once
#include "core/storage.h"

namespace rushlight {

struct StorageBlock {
  void* data = nullptr;  // null: let the allocator serve
  StorageImpl::Deleter deleter = nullptr;
  void* context = nullptr;
};

class StorageSource {
 public:
  virtual ~StorageSource() = default;
  virtual StorageBlock take(size_t nbytes) = 0;
};

// Asked for CPU storages beyond those that live inside their object. Null: nobody asks.
extern thread_local StorageSource* storage_source __attribute__((tls_model("initial-exec")));

}  // namespace rushlight
