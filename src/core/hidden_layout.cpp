#include "core/hidden_layout.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/fork_mutex.h"

namespace rushlight {

void (*put_in_order)(const Tensor&, const Tensor&) = nullptr;
void (*apply_epilogue)(const Tensor&, const Epilogue&, const Tensor&) = nullptr;

bool Epilogue::bounded() const {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return low != -kInfinity || high != kInfinity;
}

namespace {

// What a storage without memory hides.
struct Hidden {
  const StorageImpl* owner = nullptr;
  std::mutex mutex;  // held while an epilogue is computed, so that one reader computes it
  Tensor image;
  std::optional<Epilogue> epilogue;

  // The lock is held.
  const Tensor& finished();
};

// Whether this is the only handle on the image.
bool is_sole_owner(const Tensor& image) {
  return image->use_count() == 1 && image->storage->use_count() == 1;
}

const Tensor& Hidden::finished() {
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
  std::unordered_map<const StorageImpl*, std::shared_ptr<Hidden>> hidden;
  std::atomic<int64_t> revealed{0};
  static Registry& get() {
    static Registry& registry = *new Registry;
    return registry;
  }
};

// The storage's deleter. What it hid is freed after the lock.
void forget(void* context, void*, size_t) {
  Registry& registry = Registry::get();
  std::shared_ptr<Hidden> hidden;
  std::lock_guard guard(registry.mutex);
  const auto found = registry.hidden.find(static_cast<Hidden*>(context)->owner);
  hidden = std::move(found->second);
  registry.hidden.erase(found);
}

bool may_hide(const StorageImpl& s) { return !s.data() && !s.owns_memory() && s.nbytes(); }

std::shared_ptr<Hidden> find_hidden(const StorageImpl& storage) {
  Registry& registry = Registry::get();
  std::lock_guard guard(registry.mutex);
  const auto found = registry.hidden.find(&storage);
  return found == registry.hidden.end() ? nullptr : found->second;
}

// What t hides, if t is all of it.
std::shared_ptr<Hidden> hidden_by(const Tensor& t) {
  if (!t.defined() || !t->storage || t.has_data()) [[likely]]
    return nullptr;
  if (!may_hide(*t->storage) || !t.is_cpu() || !t.is_contiguous() || t.storage_offset()) return nullptr;
  auto hidden = find_hidden(*t->storage);
  if (!hidden) return nullptr;
  std::lock_guard guard(hidden->mutex);
  return hidden->image.sizes() == t.sizes() && hidden->image.dtype() == t.dtype() ? hidden : nullptr;
}

Tensor hide(const Tensor& image, std::optional<Epilogue> epilogue) {
  auto hidden = std::make_shared<Hidden>();
  hidden->image = image, hidden->epilogue = std::move(epilogue);
  Storage storage = StorageImpl::wrap(nullptr, image.nbytes(), image.device(), forget, hidden.get());
  hidden->owner = storage.get();
  {
    Registry& registry = Registry::get();
    std::lock_guard guard(registry.mutex);
    registry.hidden[storage.get()] = std::move(hidden);
  }
  Tensor plain(Ref<TensorImpl>::adopt(new TensorImpl(std::move(storage), 0, image.dtype(), image.device())));
  plain->set_contiguous(image.sizes());
  return plain;
}

}  // namespace

bool has_hidden_layout(const Tensor& t) { return hidden_by(t) != nullptr; }

Tensor image_of(const Tensor& t) {
  const auto hidden = hidden_by(t);
  if (!hidden) return t;
  std::lock_guard guard(hidden->mutex);
  return hidden->finished();
}

Tensor own_image_of(const Tensor& t) {
  const auto hidden = hidden_by(t);
  if (!hidden) return t;
  std::lock_guard guard(hidden->mutex);
  hidden->finished();
  if (!is_sole_owner(hidden->image)) {
    Tensor copy = empty_like_tensor(hidden->image, hidden->image.dtype());
    put_in_order(hidden->image, copy);
    hidden->image = std::move(copy);
  }
  return hidden->image;
}

bool can_hide(const Tensor& image) {
  return image->sizes[1] != 1 && image.numel() != image->sizes[0] * image->sizes[1] && image.numel() != 0;
}

Tensor hide_layout(const Tensor& image) {
  if (can_hide(image)) return hide(image, std::nullopt);
  Tensor plain(Ref<TensorImpl>::adopt(new TensorImpl(image->storage, 0, image.dtype(), image.device())));
  plain->set_contiguous(image.sizes());
  return plain;
}

std::optional<UnfinishedImage> unfinished_image_of(const Tensor& t) {
  const auto hidden = hidden_by(t);
  if (!hidden) return std::nullopt;
  std::lock_guard guard(hidden->mutex);
  if (!hidden->epilogue) return std::nullopt;
  return UnfinishedImage{hidden->image, *hidden->epilogue};
}

Tensor hide_unfinished(UnfinishedImage unfinished) {
  return hide(unfinished.image, std::move(unfinished.epilogue));
}

void replace_hidden(const Tensor& t, UnfinishedImage unfinished) {
  const auto hidden = hidden_by(t);
  RL_ASSERT(hidden);
  std::lock_guard guard(hidden->mutex);
  hidden->image = std::move(unfinished.image);
  hidden->epilogue = std::move(unfinished.epilogue);
}

void reveal_layout(StorageImpl& storage) {
  if (!may_hide(storage)) return;
  const auto hidden = find_hidden(storage);
  if (!hidden) return;
  Tensor image;
  {
    std::lock_guard guard(hidden->mutex);
    image = hidden->finished();
  }
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
