// Inside class Tensor: the methods that are no operators of the table. Note [Methods] in core/tensor.h
// clang-format off
  // x.index({..}) = y and x[0] = y write into the view; a named tensor is bound anew.
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(const Tensor& other) & { impl_ = other.impl_; return *this; }
  Tensor& operator=(Tensor&& other) & noexcept { impl_ = std::move(other.impl_); return *this; }
  Tensor& operator=(const Tensor& value) &&;
  Tensor& operator=(Tensor&& value) &&;
  Tensor& operator=(const Scalar& value) &&;

  ScalarType scalar_type() const { return dtype(); }
  TensorOptions options() const;
  Layout layout() const;
  int64_t ndimension() const { return dim(); }
  int64_t element_size() const { return static_cast<int64_t>(itemsize()); }
  int64_t get_device() const { return device().index(); }
  bool is_cuda() const { return device().is_cuda(); }
  bool is_meta() const { return device().is_meta(); }
  bool is_sparse() const { return layout() == Layout::SparseCoo; }
  bool is_floating_point() const { return rushlight::is_floating(dtype()); }
  bool is_complex() const { return rushlight::is_complex(dtype()); }
  bool is_signed() const { return rushlight::is_signed(dtype()); }
  bool is_non_overlapping_and_dense() const;
  bool is_inference() const { return impl_->flags & kInference; }
  bool has_storage() const { return static_cast<bool>(impl_->storage); }
  std::string toString() const;  // "CPUFloatType"
  void print() const;
  uint64_t use_count() const;
  TensorImpl* unsafeGetTensorImpl() const { return impl_.get(); }
  TensorStorage storage() const;

  // The value of a tensor with one element.
  Scalar item() const;
  template <class T> T item() const { return item().to<T>(); }
  // The first element's address; the type must be the tensor's.
  template <class T> T* data_ptr() const {
    if constexpr (!std::is_const_v<T>)
      if (impl_->storage) impl_->storage->note_unversioned_write();
    check_type(dtype_of<std::remove_const_t<T>>);
    return static_cast<T*>(impl_->data());
  }
  template <class T> T* mutable_data_ptr() const { return data_ptr<T>(); }
  template <class T> const T* const_data_ptr() const { return data_ptr<const std::remove_const_t<T>>(); }
  void* mutable_data_ptr() const { return data_ptr(); }
  const void* const_data_ptr() const { return data_ptr(); }
  // Elements by index, unchecked: auto a = x.accessor<float, 2>(); a[i][j]
  template <class T, size_t N> TensorAccessor<T, N> accessor() const& {
    static_assert(N > 0, "accessor is used for indexing tensor, for scalars use *data_ptr<T>()");
    check_dim(N);
    return TensorAccessor<T, N>(data_ptr<T>(), impl_->sizes.data(), impl_->strides.data());
  }
  template <class T, size_t N> TensorAccessor<T, N> accessor() && = delete;  // it would outlive the tensor

  // x.index({Slice(), None, "...", 1, mask})
  Tensor index(ArrayRef<TensorIndex> indices) const;
  Tensor index(std::initializer_list<TensorIndex> indices) const;
  Tensor& index_put_(ArrayRef<TensorIndex> indices, const Tensor& value);
  Tensor& index_put_(ArrayRef<TensorIndex> indices, const Scalar& value);
  Tensor& index_put_(std::initializer_list<TensorIndex> indices, const Tensor& value);
  Tensor& index_put_(std::initializer_list<TensorIndex> indices, const Scalar& value);
  Tensor& index_put_(TensorList indices, const Tensor& values, bool accumulate = false) const;
  Tensor operator[](int64_t index) const;
  Tensor operator[](const Tensor& index) const;
  Tensor operator[](const Scalar& index) const;

  Tensor& operator+=(const Tensor& o) { return add_(o); }
  Tensor& operator+=(const Scalar& o) { return add_(o); }
  Tensor& operator-=(const Tensor& o) { return sub_(o); }
  Tensor& operator-=(const Scalar& o) { return sub_(o); }
  Tensor& operator*=(const Tensor& o) { return mul_(o); }
  Tensor& operator*=(const Scalar& o) { return mul_(o); }
  Tensor& operator/=(const Tensor& o) { return div_(o); }
  Tensor& operator/=(const Scalar& o) { return div_(o); }
  Tensor& operator&=(const Tensor& o) { return bitwise_and_(o); }
  Tensor& operator|=(const Tensor& o) { return bitwise_or_(o); }
  Tensor& operator^=(const Tensor& o) { return bitwise_xor_(o); }

  // A dimension, where a lone number would be taken for `unbiased`.
  Tensor var(int64_t dim) const { return var(IntArrayRef(dim)); }
  Tensor var(int dim) const { return var(static_cast<int64_t>(dim)); }
  Tensor std(int64_t dim) const { return std(IntArrayRef(dim)); }
  Tensor std(int dim) const { return std(static_cast<int64_t>(dim)); }
  // self[start:end:step] along a dimension; what is left out is as in Python.
  Tensor slice(int64_t dim = 0, std::optional<int64_t> start = std::nullopt, std::optional<int64_t> end = std::nullopt, int64_t step = 1) const;
  Tensor contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
  Tensor where(const Tensor& condition, const Tensor& other) const;
  Tensor where(const Tensor& condition, const Scalar& other) const;
  Tensor to(ScalarType dtype, bool non_blocking = false, bool copy = false, std::optional<MemoryFormat> format = {}) const;
  Tensor to(const Device& device, ScalarType dtype, bool non_blocking = false, bool copy = false, std::optional<MemoryFormat> format = {}) const;
  Tensor to(const Device& device, bool non_blocking = false, bool copy = false) const;
  Tensor to(DeviceType device, bool non_blocking = false, bool copy = false) const { return to(Device(device), non_blocking, copy); }
  Tensor to(TensorOptions options, bool non_blocking = false, bool copy = false, std::optional<MemoryFormat> format = {}) const;
  Tensor to(const Tensor& other, bool non_blocking = false, bool copy = false) const;
  Tensor toType(ScalarType dtype) const { return to(dtype); }
  Tensor cpu() const;
  Tensor cuda() const;
  Tensor T() const { return numpy_T(); }
  Tensor numpy_T() const;
  Tensor real() const;
  Tensor imag() const;

  // Gradients.
  bool requires_grad() const;
  const Tensor& set_requires_grad(bool on) const;
  Tensor& requires_grad_(bool on = true) const;
  bool is_leaf() const;
  void backward(const Tensor& gradient = {}, std::optional<bool> retain_graph = std::nullopt, bool create_graph = false) const;
  void backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph, TensorList inputs) const;
  const Tensor& grad() const;
  Tensor& mutable_grad() const;
  std::shared_ptr<autograd::Node> grad_fn() const;
  void retain_grad() const;
  bool retains_grad() const;
  // A function of the gradient that gives nothing, or another gradient. The answer is for remove_hook.
  template <class F> unsigned register_hook(F&& hook) const {
    if constexpr (std::is_void_v<std::invoke_result_t<F&, Tensor>>)
      return add_hook([hook = std::forward<F>(hook)](const Tensor& grad) mutable { hook(grad); return Tensor(); });
    else
      return add_hook([hook = std::forward<F>(hook)](const Tensor& grad) mutable { return Tensor(hook(grad)); });
  }
  void remove_hook(unsigned position) const;
  Tensor& detach_() const;
  Tensor data() const;
  Tensor variable_data() const { return data(); }
  Tensor tensor_data() const { return data(); }
  void set_data(const Tensor& source) const;
  int64_t output_nr() const;
  int64_t _version() const { return version(); }
  bool is_view() const { return static_cast<bool>(impl_->view_base); }

  Tensor alias() const;

 private:
  unsigned add_hook(std::function<Tensor(const Tensor&)> hook) const;
  void check_type(ScalarType wanted) const;
  void check_dim(size_t wanted) const;
 public:
