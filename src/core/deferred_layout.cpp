#include "core/deferred_layout.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/fork_mutex.h"

namespace rushlight {

void (*copy_to_plain_layout)(const Tensor&, const Tensor&) = nullptr;
void (*apply_epilogue)(const Tensor&, const Epilogue&, const Tensor&) = nullptr;

bool Epilogue::bounded() const {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return low != -kInfinity || high != kInfinity;
}

namespace {

// What a storage without memory stands for.
struct Deferred {
  const StorageImpl* owner = nullptr;
  std::mutex mutex;  // held while an epilogue is computed, so that one reader computes it
  Tensor image;
  std::optional<Epilogue> epilogue;

  // The lock is held.
  const Tensor& with_epilogue();
};

// Whether this is the only handle on the image.
bool is_sole_owner(const Tensor& image) {
  return image->use_count() == 1 && image->storage->use_count() == 1;
}

const Tensor& Deferred::with_epilogue() {
  if (epilogue) {
    Tensor result = is_sole_owner(image) ? image : empty_like_tensor(image, image.dtype());
    apply_epilogue(image, *epilogue, result);
    image = std::move(result);
    epilogue.reset();
  }
  return image;
}

struct Registry {
  ForkMutex mutex;
  std::unordered_map<const StorageImpl*, std::shared_ptr<Deferred>> deferred;
  std::atomic<int64_t> materialized{0};
  static Registry& get() {
    static Registry& registry = *new Registry;
    return registry;
  }
};

// The storage's deleter. What it stood for is freed after the lock.
void forget(void* context, void*, size_t) {
  Registry& registry = Registry::get();
  std::shared_ptr<Deferred> deferred;
  std::lock_guard guard(registry.mutex);
  const auto found = registry.deferred.find(static_cast<Deferred*>(context)->owner);
  if (found == registry.deferred.end()) return;  // it never got there
  deferred = std::move(found->second);
  registry.deferred.erase(found);
}

bool may_be_deferred(const StorageImpl& s) { return !s.data() && !s.owns_memory() && s.nbytes(); }

std::shared_ptr<Deferred> find_deferred(const StorageImpl& storage) {
  Registry& registry = Registry::get();
  std::lock_guard guard(registry.mutex);
  const auto found = registry.deferred.find(&storage);
  return found == registry.deferred.end() ? nullptr : found->second;
}

// The image behind t, if t is all of it.
std::shared_ptr<Deferred> deferred_of(const Tensor& t) {
  if (!t.defined() || !t->storage || t.has_data()) [[likely]]
    return nullptr;
  if (!may_be_deferred(*t->storage) || !t.is_cpu() || !t.is_contiguous() || t.storage_offset())
    return nullptr;
  auto deferred = find_deferred(*t->storage);
  if (!deferred) return nullptr;
  std::lock_guard guard(deferred->mutex);
  return deferred->image.sizes() == t.sizes() && deferred->image.dtype() == t.dtype() ? deferred : nullptr;
}

Tensor defer(const Tensor& image, std::optional<Epilogue> epilogue) {
  auto deferred = std::make_shared<Deferred>();
  deferred->image = image, deferred->epilogue = std::move(epilogue);
  Storage storage = StorageImpl::wrap(nullptr, image.nbytes(), image.device(), forget, deferred.get());
  deferred->owner = storage.get();
  {
    Registry& registry = Registry::get();
    std::lock_guard guard(registry.mutex);
    registry.deferred[storage.get()] = std::move(deferred);
  }
  Tensor plain(Ref<TensorImpl>::adopt(new TensorImpl(std::move(storage), 0, image.dtype(), image.device())));
  plain->set_contiguous(image.sizes());
  return plain;
}

}  // namespace

bool has_deferred_layout(const Tensor& t) { return deferred_of(t) != nullptr; }

Tensor image_of(const Tensor& t) {
  const auto deferred = deferred_of(t);
  if (!deferred) return t;
  std::lock_guard guard(deferred->mutex);
  return deferred->with_epilogue();
}

Tensor writable_image_of(const Tensor& t) {
  const auto deferred = deferred_of(t);
  if (!deferred) return t;
  std::lock_guard guard(deferred->mutex);
  deferred->with_epilogue();
  if (!is_sole_owner(deferred->image)) {
    Tensor copy = empty_like_tensor(deferred->image, deferred->image.dtype());
    copy_to_plain_layout(deferred->image, copy);
    deferred->image = std::move(copy);
  }
  return deferred->image;
}

bool can_defer(const Tensor& image) {
  return image->sizes[1] != 1 && image.numel() != image->sizes[0] * image->sizes[1] && image.numel() != 0;
}

Tensor defer_layout(const Tensor& image) {
  if (can_defer(image)) return defer(image, std::nullopt);
  Tensor plain(Ref<TensorImpl>::adopt(new TensorImpl(image->storage, 0, image.dtype(), image.device())));
  plain->set_contiguous(image.sizes());
  return plain;
}

std::optional<DeferredEpilogue> deferred_epilogue_of(const Tensor& t) {
  const auto deferred = deferred_of(t);
  if (!deferred) return std::nullopt;
  std::lock_guard guard(deferred->mutex);
  if (!deferred->epilogue) return std::nullopt;
  return DeferredEpilogue{deferred->image, *deferred->epilogue};
}

Tensor defer_epilogue(DeferredEpilogue pending) { return defer(pending.image, std::move(pending.epilogue)); }

void replace_deferred(const Tensor& t, DeferredEpilogue pending) {
  const auto deferred = deferred_of(t);
  RL_ASSERT(deferred);
  std::lock_guard guard(deferred->mutex);
  deferred->image = std::move(pending.image);
  deferred->epilogue = std::move(pending.epilogue);
}

void materialize_layout(StorageImpl& storage) {
  if (!may_be_deferred(storage)) return;
  const auto deferred = find_deferred(storage);
  if (!deferred) return;
  Tensor image;
  {
    std::lock_guard guard(deferred->mutex);
    image = deferred->with_epilogue();
  }
  const Tensor plain = empty_tensor(image.sizes(), image.dtype());
  copy_to_plain_layout(image, plain);
  const Storage former = plain->storage;  // freed after the lock
  Registry& registry = Registry::get();
  std::lock_guard guard(registry.mutex);
  if (storage.data()) return;  // another reader was faster
  storage.take_contents(*former);
  ++registry.materialized;
}

int64_t materialized_layouts() { return Registry::get().materialized; }

}  // namespace rushlight
