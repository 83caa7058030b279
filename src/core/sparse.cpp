#include "core/sparse.h"

namespace rushlight {

static void set_sizes(TensorImpl& t, IntList sizes) {
  t.set_contiguous(sizes);
  t.strides.clear();
  t.flags = (t.flags & ~kContiguous) | kSpecialElements;
}

Tensor make_sparse(SparseParts parts, IntList sizes) {
  const DType dtype = parts.values.dtype();
  const Device device = parts.values.device();
  // Memory of no address: a kernel that forgets about sparse tensors fails instead of reading what lies
  // there.
  Tensor t(make_ref<TensorImpl>(
      StorageImpl::wrap(nullptr, 0, device, [](void*, void*, size_t) {}, nullptr), 0, dtype, device));
  set_sizes(*t.impl(), sizes);
  const bool single = parts.layout == Layout::SparseCoo && parts.values.size(0) < 2;  // nothing to merge
  parts.coalesced = parts.coalesced || single;
  t->sparse = new SparseParts(std::move(parts));
  return t;
}

Tensor sparse_alias(const Tensor& t) {
  Tensor alias(make_ref<TensorImpl>(t->storage, 0, t->dtype, t->device));
  alias->version = t->version;
  set_sizes(*alias.impl(), t.sizes());
  alias->sparse = new SparseParts(*t->sparse);
  return alias;
}

void replace_sparse(const Tensor& target, const Tensor& source) {
  RL_ASSERT(target->sparse && source->sparse, "replace_sparse of a dense tensor");
  *target->sparse = *source->sparse;
  target->dtype = source->dtype;
  set_sizes(*target.impl(), source.sizes());
}

}  // namespace rushlight
