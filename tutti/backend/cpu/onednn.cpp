#include "tutti/backend/cpu/onednn.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl_debug.h>

#include <algorithm>
#include <numeric>

#include "tutti/base/error.h"

namespace tutti::onednn {
namespace {

void check(dnnl_status_t status, const char* call) {
  if (status != dnnl_success)
    throw DeviceError(fmt::format("oneDNN: {} failed: {}", call, dnnl_status2str(status)));
}
#define TUTTI_DNNL(call) check(call, #call)

// oneDNN fixes the thread count of a primitive when it is created, and some loops ask again when
// they run.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;

 private:
  int before_;
};

dnnl_engine_t cpu() {
  static const dnnl_engine_t the_cpu =
      [] {  // lives as long as the process: oneDNN's primitive cache refers to it
        dnnl_engine_t made = nullptr;
        TUTTI_DNNL(dnnl_engine_create(&made, dnnl_cpu, 0));
        return made;
      }();
  return the_cpu;
}

dnnl_data_type_t type_of(DType type) {
  switch (type) {
    case DType::f32: return dnnl_f32;
    case DType::bf16: return dnnl_bf16;
    case DType::i32: return dnnl_s32;
    case DType::u8: return dnnl_u8;
  }
  return dnnl_data_type_undef;
}

struct Blocking {
  int rank = 0, blocks = 0;
  const dnnl_dim_t *dims = nullptr, *padded = nullptr, *strides = nullptr, *block_size = nullptr,
                   *block_dim = nullptr;
};

#if DNNL_VERSION_MAJOR >= 3
Blocking blocking_of(MemoryDesc::View view) {
  Blocking b;
  const auto list = [&](dnnl_query_t what) {
    const dnnl_dims_t* values = nullptr;
    TUTTI_DNNL(dnnl_memory_desc_query(view, what, &values));
    return *values;
  };
  TUTTI_DNNL(dnnl_memory_desc_query(view, dnnl_query_ndims_s32, &b.rank));
  TUTTI_DNNL(dnnl_memory_desc_query(view, dnnl_query_inner_nblks_s32, &b.blocks));
  b.dims = list(dnnl_query_dims);
  b.padded = list(dnnl_query_padded_dims);
  b.strides = list(dnnl_query_strides);
  b.block_size = list(dnnl_query_inner_blks);
  b.block_dim = list(dnnl_query_inner_idxs);
  return b;
}

bool is_blocked(MemoryDesc::View view) {
  dnnl_format_kind_t kind = dnnl_format_kind_undef;
  return dnnl_memory_desc_query(view, dnnl_query_format_kind, &kind) == dnnl_success &&
         kind == dnnl_blocked;
}
#else
Blocking blocking_of(MemoryDesc::View view) {
  const dnnl_blocking_desc_t& form = view->format_desc.blocking;
  return {view->ndims,  form.inner_nblks, view->dims,     view->padded_dims,
          form.strides, form.inner_blks,  form.inner_idxs};
}

bool is_blocked(MemoryDesc::View view) {
  return view->format_kind == dnnl_blocked && view->extra.flags == 0;
}
#endif

/// oneDNN's name for an activation; its parameter is the slope of leaky_relu, of which ReLU is the
/// case 0.
dnnl_alg_kind_t algorithm_of(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::relu:
    case ActivationKind::leaky_relu: return dnnl_eltwise_relu;
    case ActivationKind::sigmoid: return dnnl_eltwise_logistic;
    case ActivationKind::tanh: return dnnl_eltwise_tanh;
    case ActivationKind::gelu: return dnnl_eltwise_gelu_erf;
  }
  return dnnl_alg_kind_undef;
}

// What all primitives of this library ask for: the caller brings the scratchpad; optionally an
// activation of the result.
Handle<dnnl_primitive_attr_t> attributes_of(const std::optional<ActivationAttributes>& f) {
  dnnl_primitive_attr_t raw = nullptr;
  TUTTI_DNNL(dnnl_primitive_attr_create(&raw));
  Handle<dnnl_primitive_attr_t> attr(raw);
  TUTTI_DNNL(dnnl_primitive_attr_set_scratchpad_mode(raw, dnnl_scratchpad_mode_user));
  if (f) {
    const dnnl_alg_kind_t algorithm = algorithm_of(f->kind);
    const float slope = f->kind == ActivationKind::leaky_relu ? f->slope : 0.f;
    dnnl_post_ops_t ops = nullptr;
    TUTTI_DNNL(dnnl_post_ops_create(&ops));
    const Handle<dnnl_post_ops_t> owned(ops);
#if DNNL_VERSION_MAJOR >= 3
    TUTTI_DNNL(dnnl_post_ops_append_eltwise(ops, algorithm, slope, 0.f));
#else
    TUTTI_DNNL(dnnl_post_ops_append_eltwise(ops, 1.f, algorithm, slope, 0.f));
#endif
    TUTTI_DNNL(dnnl_primitive_attr_set_post_ops(raw, ops));
  }
  return attr;
}

struct ConvArguments {
  MemoryDesc x, w, bias, y;
  dnnl_dims_t stride{}, dilation{}, pad_low{}, pad_high{};
};

ConvArguments arguments_of(const ConvProblem& p) {
  const ConvAttributes& a = p.attributes;
  ConvArguments args;
  args.x = MemoryDesc::of(p.x);
  args.y = MemoryDesc::of(p.y);
  args.w = p.any_w && a.groups == 1 ? MemoryDesc::any(p.w) : MemoryDesc::of(p.w, a.groups);
  if (p.bias) args.bias = MemoryDesc::of({DType::f32, {p.y.shape[1]}, {}});
  for (size_t i = 0; i < static_cast<size_t>(a.spatial); ++i) {
    args.stride[i] = a.stride[i];
    args.dilation[i] = a.dilation[i] - 1;  // oneDNN counts the gaps
    args.pad_low[i] = a.pad_low[i];
    args.pad_high[i] = a.pad_high[i];
  }
  return args;
}

// Calls visit(primitive desc) for each implementation; visit takes ownership.
#if DNNL_VERSION_MAJOR >= 3
template <class Visit>
void for_each_implementation(const ConvProblem& p, const ConvArguments& a,
                             dnnl_primitive_attr_t attr, Visit visit) {
  dnnl_primitive_desc_t raw = nullptr;
  dnnl_status_t status = dnnl_unimplemented;
  switch (p.kind) {
    case ConvKind::forward:
      status = dnnl_convolution_forward_primitive_desc_create(
          &raw, cpu(), dnnl_forward_training, dnnl_convolution_direct, a.x.view(), a.w.view(),
          a.bias.view(), a.y.view(), a.stride, a.dilation, a.pad_low, a.pad_high, attr);
      break;
    case ConvKind::backward_data:
      status = dnnl_convolution_backward_data_primitive_desc_create(
          &raw, cpu(), dnnl_convolution_direct, a.x.view(), a.w.view(), a.y.view(), a.stride,
          a.dilation, a.pad_low, a.pad_high, nullptr, attr);
      break;
    case ConvKind::backward_weights:
      status = dnnl_convolution_backward_weights_primitive_desc_create(
          &raw, cpu(), dnnl_convolution_direct, a.x.view(), a.w.view(), nullptr, a.y.view(),
          a.stride, a.dilation, a.pad_low, a.pad_high, nullptr, attr);
      break;
  }
  if (status == dnnl_unimplemented) return;
  TUTTI_DNNL(status);
  const Handle<dnnl_primitive_desc_t> walker(raw);
  do {
    dnnl_primitive_desc_t copy = nullptr;
    TUTTI_DNNL(dnnl_primitive_desc_clone(&copy, raw));
    visit(Handle<dnnl_primitive_desc_t>(copy));
  } while (dnnl_primitive_desc_next_impl(raw) == dnnl_success);
}
#else
template <class Visit>
void for_each_implementation(const ConvProblem& p, const ConvArguments& a,
                             dnnl_primitive_attr_t attr, Visit visit) {
  dnnl_convolution_desc_t conv;
  switch (p.kind) {
    case ConvKind::forward:
      TUTTI_DNNL(dnnl_dilated_convolution_forward_desc_init(
          &conv, dnnl_forward_training, dnnl_convolution_direct, a.x.view(), a.w.view(),
          a.bias.view(), a.y.view(), a.stride, a.dilation, a.pad_low, a.pad_high));
      break;
    case ConvKind::backward_data:
      TUTTI_DNNL(dnnl_dilated_convolution_backward_data_desc_init(
          &conv, dnnl_convolution_direct, a.x.view(), a.w.view(), a.y.view(), a.stride, a.dilation,
          a.pad_low, a.pad_high));
      break;
    case ConvKind::backward_weights:
      TUTTI_DNNL(dnnl_dilated_convolution_backward_weights_desc_init(
          &conv, dnnl_convolution_direct, a.x.view(), a.w.view(), nullptr, a.y.view(), a.stride,
          a.dilation, a.pad_low, a.pad_high));
      break;
  }
  dnnl_primitive_desc_iterator_t raw = nullptr;
  const dnnl_status_t status =
      dnnl_primitive_desc_iterator_create(&raw, &conv, attr, cpu(), nullptr);
  if (status == dnnl_unimplemented) return;
  TUTTI_DNNL(status);
  struct Free {
    void operator()(dnnl_primitive_desc_iterator_t h) const {
      dnnl_primitive_desc_iterator_destroy(h);
    }
  };
  const std::unique_ptr<std::remove_pointer_t<dnnl_primitive_desc_iterator_t>, Free> walker(raw);
  do {
    visit(Handle<dnnl_primitive_desc_t>(dnnl_primitive_desc_iterator_fetch(raw)));
  } while (dnnl_primitive_desc_iterator_next(raw) == dnnl_success);
}
#endif

}  // namespace

dnnl_format_tag_t tag_of(const Layout& layout, int rank) {
  std::string name;
  for (int i = 0; i < rank; ++i) {
    const int dim = layout.order[static_cast<size_t>(i)];
    const bool blocked =
        std::any_of(layout.blocks.begin(), layout.blocks.begin() + layout.num_blocks,
                    [&](auto b) { return b.dim == dim; });
    name += static_cast<char>((blocked ? 'A' : 'a') + dim);
  }
  for (int b = 0; b < layout.num_blocks; ++b) {
    const auto [dim, size] = layout.blocks[static_cast<size_t>(b)];
    name += std::to_string(size) + static_cast<char>('a' + dim);
  }
  for (int tag = dnnl_format_tag_any + 1; tag < dnnl_format_tag_last; ++tag)
    if (name == dnnl_fmt_tag2str(static_cast<dnnl_format_tag_t>(tag)))
      return static_cast<dnnl_format_tag_t>(tag);
  return dnnl_format_tag_undef;
}

MemoryDesc MemoryDesc::make(const TensorDesc& desc, int64_t groups, dnnl_format_tag_t tag) {
  dnnl_dims_t dims{};
  int rank = 0;
  if (groups > 1) dims[rank++] = groups;
  for (int i = 0; i < desc.shape.rank(); ++i) dims[rank++] = desc.shape[i] / (i == 0 ? groups : 1);
  MemoryDesc made;
#if DNNL_VERSION_MAJOR >= 3
  dnnl_memory_desc_t raw = nullptr;
  TUTTI_DNNL(dnnl_memory_desc_create_with_tag(&raw, rank, dims, type_of(desc.dtype), tag));
  made.desc_.reset(raw);
#else
  TUTTI_DNNL(
      dnnl_memory_desc_init_by_tag(&made.desc_.emplace(), rank, dims, type_of(desc.dtype), tag));
#endif
  return made;
}

MemoryDesc MemoryDesc::of(const TensorDesc& desc, int64_t groups) {
  const int rank = desc.shape.rank() + (groups > 1 ? 1 : 0);
  const bool representable =
      groups == 1 ||
      desc.layout.is_plain();  // a plain tensor stays plain when dimension 0 is split
  const dnnl_format_tag_t tag = representable ? tag_of(desc.layout, rank) : dnnl_format_tag_undef;
  if (tag == dnnl_format_tag_undef)
    throw DeviceError(
        fmt::format("oneDNN has no name for the layout of {} with {} groups: choose another layout",
                    desc.to_string(), groups));
  return make(desc, groups, tag);
}

MemoryDesc MemoryDesc::any(const TensorDesc& desc, int64_t groups) {
  return make(desc, groups, dnnl_format_tag_any);
}

#if DNNL_VERSION_MAJOR >= 3
MemoryDesc::MemoryDesc(View view) {
  dnnl_memory_desc_t copy = nullptr;
  TUTTI_DNNL(dnnl_memory_desc_clone(&copy, view));
  desc_.reset(copy);
}
MemoryDesc::View MemoryDesc::view() const { return desc_.get(); }
#else
MemoryDesc::MemoryDesc(View view) : desc_(*view) {}
MemoryDesc::View MemoryDesc::view() const { return desc_ ? &*desc_ : nullptr; }
#endif

std::optional<Layout> MemoryDesc::layout() const {
  if (!is_blocked(view())) return std::nullopt;
  const Blocking b = blocking_of(view());
  if (b.rank > Shape::kMaxRank || b.blocks > Layout::kMaxBlocks) return std::nullopt;
  Layout layout;
  std::array<int64_t, Shape::kMaxRank> outer{};
  for (int i = 0; i < b.rank; ++i) outer[static_cast<size_t>(i)] = b.padded[i];
  int64_t stride = 1;
  for (int i = 0; i < b.blocks; ++i) {
    layout.blocks[static_cast<size_t>(i)] = {static_cast<int8_t>(b.block_dim[i]),
                                             static_cast<int16_t>(b.block_size[i])};
    outer[static_cast<size_t>(b.block_dim[i])] /= b.block_size[i];
    stride *= b.block_size[i];
  }
  layout.num_blocks = b.blocks;
  // Equal strides mean that one of the dimensions has one block only, and lies inside the other;
  // oneDNN's kernels compare strides, so the order must give back exactly these.
  const auto outside = [&](int i, int j) {
    if (b.strides[i] != b.strides[j]) return b.strides[i] > b.strides[j];
    return outer[static_cast<size_t>(i)] > 1 && outer[static_cast<size_t>(j)] == 1;
  };
  std::stable_sort(layout.order.begin(), layout.order.begin() + b.rank, outside);
  for (int i = b.rank - 1; i >= 0; --i) {
    const auto dim = static_cast<size_t>(layout.order[static_cast<size_t>(i)]);
    if (outer[dim] > 1 && b.strides[dim] != stride) return std::nullopt;
    stride *= outer[dim];
  }
  return layout;
}

bool ConvImplementation::is_slow() const {
  return name.find("ref") != std::string::npos || name.find("gemm:") == 0 ||
         name.find(":gemm") != std::string::npos;
}

std::vector<ConvImplementation> conv_implementations(const ConvProblem& problem) {
  const OneThread one_thread;
  const ConvArguments args = arguments_of(problem);
  const auto attr = attributes_of(problem.activation);
  std::vector<ConvImplementation> found;
  for_each_implementation(problem, args, attr.get(), [&](Handle<dnnl_primitive_desc_t> desc) {
    const char* name = "";
    TUTTI_DNNL(dnnl_primitive_desc_query(desc.get(), dnnl_query_impl_info_str, 0, &name));
    ConvImplementation made{name, std::move(desc), problem.w, true};
    if (problem.any_w && problem.attributes.groups == 1) {
      const auto which = problem.kind == ConvKind::backward_weights ? dnnl_query_diff_weights_md
                                                                    : dnnl_query_weights_md;
      const auto layout =
          MemoryDesc(dnnl_primitive_desc_query_md(made.desc.get(), which, 0)).layout();
      made.usable = layout.has_value();
      if (layout) made.w.layout = *layout;
    }
    const bool known = std::any_of(found.begin(), found.end(), [&](const auto& f) {
      return f.name == made.name && f.w == made.w;
    });
    if (!known) found.push_back(std::move(made));
  });
  return found;
}

Primitive::Primitive(dnnl_primitive_desc_t desc, std::initializer_list<Operand> operands) {
  const OneThread one_thread;
  CHECK(operands.size() < kMaxOperands);
  dnnl_primitive_t primitive = nullptr;
  TUTTI_DNNL(dnnl_primitive_create(&primitive, desc));
  primitive_.reset(primitive);
  dnnl_stream_t stream = nullptr;
  TUTTI_DNNL(dnnl_stream_create(&stream, cpu(), dnnl_stream_default_flags));
  stream_.reset(stream);
  const auto add = [&](const Operand& operand) {
    const auto* md = dnnl_primitive_desc_query_md(desc, operand.which, operand.index);
    CHECK(md != nullptr, "oneDNN primitive without operand {}", operand.argument);
    dnnl_memory_t memory = nullptr;
    TUTTI_DNNL(dnnl_memory_create(&memory, md, cpu(), DNNL_MEMORY_NONE));
    memory_[count_].reset(memory);
    bytes_[count_] = dnnl_memory_desc_get_size(md);
    arguments_[count_] = {operand.argument, memory};
    ++count_;
  };
  for (const Operand& operand : operands) add(operand);
  add({DNNL_ARG_SCRATCHPAD, dnnl_query_scratchpad_md});
  scratchpad_bytes_ = bytes_[count_ - 1];
}

void Primitive::set(size_t slot, void* data) {
  if (data_[slot] == data) return;
  TUTTI_DNNL(dnnl_memory_set_data_handle(memory_[slot].get(), data));
  data_[slot] = data;
}

void Primitive::run(std::initializer_list<void*> operands, void* scratchpad) {
  const OneThread one_thread;
  size_t slot = 0;
  for (void* const data : operands) set(slot++, data);
  if (scratchpad_bytes_ > 0) set(slot, scratchpad);
  TUTTI_DNNL(dnnl_primitive_execute(primitive_.get(), stream_.get(), static_cast<int>(count_),
                                    arguments_.data()));
}

}  // namespace tutti::onednn
