#include "core/hidden_layout.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/fork_mutex.h"

namespace rushlight {

void (*put_in_order)(const Tensor&, const Tensor&) = nullptr;

namespace {

// What a storage without memory hides; freed by the storage's deleter.
struct Hidden {
  Tensor image;
  const StorageImpl* owner;
};

struct Registry {
  ForkMutex mutex;
  std::unordered_map<const StorageImpl*, Hidden*> hidden;
  std::atomic<int64_t> revealed{0};
  static Registry& get() {
    static Registry& registry = *new Registry;
    return registry;
  }
};

void forget(void* context, void*, size_t) {
  const std::unique_ptr<Hidden> hidden(static_cast<Hidden*>(context));
  Registry& registry = Registry::get();
  std::lock_guard guard(registry.mutex);
  registry.hidden.erase(hidden->owner);
}

bool may_hide(const StorageImpl& s) { return !s.data() && !s.owns_memory() && s.nbytes(); }

Tensor find_image(const StorageImpl& storage) {
  Registry& registry = Registry::get();
  std::lock_guard guard(registry.mutex);
  const auto found = registry.hidden.find(&storage);
  return found == registry.hidden.end() ? Tensor() : found->second->image;
}

}  // namespace

bool has_hidden_layout(const Tensor& t) {
  if (!t.defined() || !t->storage || t.has_data()) [[likely]]
    return false;
  if (!may_hide(*t->storage) || !t.is_cpu() || !t.is_contiguous() || t.storage_offset()) return false;
  const Tensor image = find_image(*t->storage);
  return image.defined() && image.sizes() == t.sizes() && image.dtype() == t.dtype();
}

Tensor image_of(const Tensor& t) {
  if (!has_hidden_layout(t)) return t;
  const Tensor image = find_image(*t->storage);
  return image.defined() ? image : t;
}

Tensor hide_layout(const Tensor& image) {
  Tensor plain;
  if (image->sizes[1] == 1 || image.numel() == image->sizes[0] * image->sizes[1] || image.numel() == 0) {
    plain = Tensor(Ref<TensorImpl>::adopt(new TensorImpl(image->storage, 0, image.dtype(), image.device())));
  } else {
    auto hidden = std::make_unique<Hidden>(Hidden{image, nullptr});
    Storage storage = StorageImpl::wrap(nullptr, image.nbytes(), image.device(), forget, hidden.get());
    hidden->owner = storage.get();
    {
      Registry& registry = Registry::get();
      std::lock_guard guard(registry.mutex);
      registry.hidden[storage.get()] = hidden.release();
    }
    plain =
        Tensor(Ref<TensorImpl>::adopt(new TensorImpl(std::move(storage), 0, image.dtype(), image.device())));
  }
  plain->set_contiguous(image.sizes());
  return plain;
}

void reveal_layout(StorageImpl& storage) {
  if (!may_hide(storage)) return;
  const Tensor image = find_image(storage);
  if (!image.defined()) return;
  const Tensor plain = empty_tensor(image.sizes(), image.dtype());
  put_in_order(image, plain);
  const Storage former = plain->storage;  // freed after the lock
  Registry& registry = Registry::get();
  std::lock_guard guard(registry.mutex);
  if (storage.data()) return;  // another reader was faster
  storage.swap_contents(*former);
  ++registry.revealed;
}

int64_t revealed_layouts() { return Registry::get().revealed; }

}  // namespace rushlight
