#include "tutti/backend/cpu/onednn/onednn.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include "tutti/backend/cpu/onednn/onednn_call.h"

namespace tutti::backend::onednn {
namespace {

/// Returns oneDNN's name for an activation; its parameter is the slope of leaky_relu; ReLU has
/// slope 0.
dnnl_alg_kind_t algorithm_of(ops::ActivationKind kind) {
  switch (kind) {
    case ops::ActivationKind::relu:
    case ops::ActivationKind::leaky_relu: return dnnl_eltwise_relu;
    case ops::ActivationKind::sigmoid: return dnnl_eltwise_logistic;
    case ops::ActivationKind::tanh: return dnnl_eltwise_tanh;
    case ops::ActivationKind::gelu: return dnnl_eltwise_gelu_erf;
    case ops::ActivationKind::gelu_tanh: return dnnl_eltwise_gelu_tanh;
    case ops::ActivationKind::silu: return dnnl_eltwise_swish;
    case ops::ActivationKind::mish: break;  // not in every version
  }
  return dnnl_alg_kind_undef;
}

// Attributes of all primitives of this library: the caller provides the scratchpad; optionally an
// activation of the result.
Handle<dnnl_primitive_attr_t> attributes_of(const std::optional<ops::ActivationAttributes>& f) {
  dnnl_primitive_attr_t raw = nullptr;
  TUTTI_DNNL(dnnl_primitive_attr_create(&raw));
  Handle<dnnl_primitive_attr_t> attr(raw);
  TUTTI_DNNL(dnnl_primitive_attr_set_scratchpad_mode(raw, dnnl_scratchpad_mode_user));
  if (f) {
    const dnnl_alg_kind_t algorithm = algorithm_of(f->kind);
    const float slope = f->kind == ops::ActivationKind::leaky_relu ? f->slope : 0.f;
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
  const ops::ConvAttributes& a = p.attributes;
  ConvArguments args;
  args.x = MemoryDesc::of(p.x);
  args.y = MemoryDesc::of(p.y);
  args.w = p.any_w ? MemoryDesc::any(p.w, a.groups) : MemoryDesc::of(p.w, a.groups);
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

bool ConvImplementation::is_slow() const {
  return name.find("ref") != std::string::npos || name.find("gemm:") == 0 ||
         name.find(":gemm") != std::string::npos;
}

namespace {

/// oneDNN lists its best guess first, by instruction set and family. Implementations from its
/// cache, made earlier for such a problem, also with other layouts, come before all others: two
/// processes would get two orders. So the list is sorted again.
std::tuple<bool, size_t, size_t, std::string> place_in_list(const ConvImplementation& f) {
  static constexpr std::array<std::string_view, 7> kSets{
      "avx512_core_amx", "avx512_core_bf16", "avx512_core", "avx512", "avx2", "avx", "sse41"};
  static constexpr std::array<std::string_view, 6> kFamilies{"brdgmm_dw", "brgconv_1x1", "brgconv",
                                                             "jit_dw",    "jit_1x1",     "jit"};
  const auto first_in = [](const auto& names, const auto& fits) {
    return static_cast<size_t>(std::ranges::find_if(names, fits) - names.begin());
  };
  const std::string family = f.name.substr(0, f.name.find(':'));
  return {f.is_slow(),
          first_in(kSets, [&](auto set) { return f.name.find(set) != std::string::npos; }),
          first_in(kFamilies, [&](auto name) { return family == name; }), f.name};
}

}  // namespace

std::vector<ConvImplementation> conv_implementations(const ConvProblem& problem) {
  const OneThread one_thread;
  const ConvArguments args = arguments_of(problem);
  const auto attr = attributes_of(problem.activation);
  std::vector<ConvImplementation> found;
  for_each_implementation(problem, args, attr.get(), [&](Handle<dnnl_primitive_desc_t> desc) {
    const char* name = "";
    TUTTI_DNNL(dnnl_primitive_desc_query(desc.get(), dnnl_query_impl_info_str, 0, &name));
    ConvImplementation made{name, std::move(desc), problem.w, true};
    if (problem.any_w) {
      const auto which = problem.kind == ConvKind::backward_weights ? dnnl_query_diff_weights_md
                                                                    : dnnl_query_weights_md;
      const auto layout = MemoryDesc(dnnl_primitive_desc_query_md(made.desc.get(), which, 0))
                              .layout(problem.attributes.groups);
      made.usable = layout.has_value();
      if (layout) made.w.layout = *layout;
    }
    const bool known = std::any_of(found.begin(), found.end(), [&](const auto& f) {
      return f.name == made.name && f.w == made.w;
    });
    if (!known) found.push_back(std::move(made));
  });
  std::ranges::stable_sort(found, {}, [](const ConvImplementation& f) { return place_in_list(f); });
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

}  // namespace tutti::backend::onednn
