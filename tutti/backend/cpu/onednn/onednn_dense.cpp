// Dense layers by oneDNN: inner products forward and for dx, a matrix product that can add for dw.

#include <algorithm>
#include <memory>
#include <string>

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/kernel/plain_samples.h"
#include "tutti/backend/cpu/onednn/onednn_call.h"
#include "tutti/backend/cpu/simd/simd.h"
#include "tutti/base/error.h"
#include "tutti/ops/dense.h"

namespace tutti::backend {
namespace {

using onednn::Handle, onednn::MemoryDesc, onednn::Primitive;

enum class DenseKind { forward, backward_data, backward_weights };

/// x and dx, w and dw, y and dy share a field. x is taken as a matrix.
struct DenseProblem {
  DenseKind kind = DenseKind::forward;
  TensorDesc x, w, y;
  bool any_w = false, bias = false;
};

/// One implementation; backward weights have a second one, which adds to the existing values.
struct DenseImplementation {
  std::string name;
  Handle<dnnl_primitive_desc_t> desc, adding{};
};
using SharedDense = std::shared_ptr<const DenseImplementation>;

/// The caller provides the scratchpad.
Handle<dnnl_primitive_attr_t> attributes_of_dense(bool adds) {
  dnnl_primitive_attr_t raw = nullptr;
  TUTTI_DNNL(dnnl_primitive_attr_create(&raw));
  Handle<dnnl_primitive_attr_t> attr(raw);
  TUTTI_DNNL(dnnl_primitive_attr_set_scratchpad_mode(raw, dnnl_scratchpad_mode_user));
  if (!adds) return attr;
  dnnl_post_ops_t ops = nullptr;
  TUTTI_DNNL(dnnl_post_ops_create(&ops));
  const Handle<dnnl_post_ops_t> owned(ops);
#if DNNL_VERSION_MAJOR >= 3
  TUTTI_DNNL(dnnl_post_ops_append_sum(ops, 1.f, 0, dnnl_data_type_undef));
#else
  TUTTI_DNNL(dnnl_post_ops_append_sum(ops, 1.f));
#endif
  TUTTI_DNNL(dnnl_primitive_attr_set_post_ops(raw, ops));
  return attr;
}

struct DenseMemory {
  MemoryDesc x, w, bias, y;
};

/// Returns matrices of y = x w': dw [K, F] = dy' [K, N] * x [N, F], which only the strides
/// transpose.
DenseMemory memory_of(const DenseProblem& p) {
  DenseMemory memory;
  memory.x = MemoryDesc::of(p.x);
  memory.w = p.any_w ? MemoryDesc::any(p.w) : MemoryDesc::of(p.w);
  if (p.bias) memory.bias = MemoryDesc::of({DType::f32, {p.y.shape[1]}, {}});
  TensorDesc y = p.y;
  if (p.kind == DenseKind::backward_weights) {
    std::swap(y.shape[0], y.shape[1]);
    std::swap(y.layout.order[0], y.layout.order[1]);
  }
  memory.y = MemoryDesc::of(y);
  return memory;
}

/// Returns the preferred implementation; none if the problem is not supported.
Handle<dnnl_primitive_desc_t> describe_dense(const DenseProblem& p, bool adds) {
  const onednn::OneThread one_thread;
  const DenseMemory m = memory_of(p);
  const auto attr = attributes_of_dense(adds);
  dnnl_primitive_desc_t raw = nullptr;
  dnnl_status_t status = dnnl_unimplemented;
#if DNNL_VERSION_MAJOR >= 3
  switch (p.kind) {
    case DenseKind::forward:
      status = dnnl_inner_product_forward_primitive_desc_create(
          &raw, onednn::cpu(), dnnl_forward_training, m.x.view(), m.w.view(), m.bias.view(),
          m.y.view(), attr.get());
      break;
    case DenseKind::backward_data:
      status = dnnl_inner_product_backward_data_primitive_desc_create(
          &raw, onednn::cpu(), m.x.view(), m.w.view(), m.y.view(), nullptr, attr.get());
      break;
    case DenseKind::backward_weights:
      status = dnnl_matmul_primitive_desc_create(&raw, onednn::cpu(), m.y.view(), m.x.view(),
                                                 nullptr, m.w.view(), attr.get());
      break;
  }
#else
  dnnl_inner_product_desc_t product;
  dnnl_matmul_desc_t matmul;
  const void* desc = &product;
  switch (p.kind) {
    case DenseKind::forward:
      TUTTI_DNNL(dnnl_inner_product_forward_desc_init(&product, dnnl_forward_training, m.x.view(),
                                                      m.w.view(), m.bias.view(), m.y.view()));
      break;
    case DenseKind::backward_data:
      TUTTI_DNNL(
          dnnl_inner_product_backward_data_desc_init(&product, m.x.view(), m.w.view(), m.y.view()));
      break;
    case DenseKind::backward_weights:
      TUTTI_DNNL(dnnl_matmul_desc_init(&matmul, m.y.view(), m.x.view(), nullptr, m.w.view()));
      desc = &matmul;
      break;
  }
  status = dnnl_primitive_desc_create(&raw, desc, attr.get(), onednn::cpu(), nullptr);
#endif
  if (status == dnnl_unimplemented) return {};
  TUTTI_DNNL(status);
  return Handle<dnnl_primitive_desc_t>(raw);
}

template <class X>
class DenseProductKernel final : public Kernel {
 public:
  DenseProductKernel(const SharedDense& d, const TensorDesc& x, bool bias)
      : x_(x), bias_(bias), primitive_(make(d, bias)),
        scratchpad_(workspace_part(primitive_.scratchpad_bytes())) {}
  size_t workspace_bytes() const override { return scratchpad_ + x_.bytes(); }
  void run(const KernelArgs& args) override {
    void* const plain = static_cast<std::byte*>(args.workspace) + scratchpad_;
    void* const x = const_cast<X*>(x_.gather(static_cast<const X*>(args.in[0]), plain));
    if (bias_)
      primitive_.run({x, args.in[1], args.in[2], args.out[0]}, args.workspace);
    else
      primitive_.run({x, args.in[1], args.out[0]}, args.workspace);
  }

 private:
  static Primitive make(const SharedDense& d, bool bias) {
    const Primitive::Operand x{DNNL_ARG_SRC, dnnl_query_src_md},
        w{DNNL_ARG_WEIGHTS, dnnl_query_weights_md, 0}, b{DNNL_ARG_BIAS, dnnl_query_weights_md, 1},
        y{DNNL_ARG_DST, dnnl_query_dst_md};
    return bias ? Primitive(d->desc.get(), {x, w, b, y}) : Primitive(d->desc.get(), {x, w, y});
  }
  PlainSamples<X> x_;
  bool bias_;
  Primitive primitive_;
  size_t scratchpad_;
};

template <class X>
class DenseProductBackwardDataKernel final : public Kernel {
 public:
  DenseProductBackwardDataKernel(const SharedDense& d, const TensorDesc& x)
      : x_(x), primitive_(d->desc.get(), {{DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md},
                                          {DNNL_ARG_WEIGHTS, dnnl_query_weights_md},
                                          {DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md}}),
        scratchpad_(workspace_part(primitive_.scratchpad_bytes())) {}
  size_t workspace_bytes() const override { return scratchpad_ + x_.bytes(); }
  void run(const KernelArgs& args) override {
    auto* const dx = static_cast<X*>(args.out[0]);
    auto* const plain =
        x_.in_place() ? dx
                      : reinterpret_cast<X*>(static_cast<std::byte*>(args.workspace) + scratchpad_);
    primitive_.run({args.in[0], args.in[1], plain}, args.workspace);
    if (!x_.in_place()) x_.scatter(plain, dx);
  }

 private:
  PlainSamples<X> x_;
  Primitive primitive_;
  size_t scratchpad_;
};

template <class X>
class DenseProductBackwardWeightsKernel final : public Kernel {
 public:
  DenseProductBackwardWeightsKernel(const SharedDense& d, const TensorDesc& x, int64_t outputs)
      : x_(x), elements_(outputs * x_.size()), first_(make(d->desc)), next_(make(d->adding)),
        scratchpad_(workspace_part(std::max(first_.scratchpad_bytes(), next_.scratchpad_bytes()))) {
  }
  size_t workspace_bytes() const override { return scratchpad_ + x_.bytes(); }
  size_t state_bytes() const override { return static_cast<size_t>(elements_) * sizeof(float); }
  int state_output() const override { return 0; }
  void run(const KernelArgs& args) override {
    void* const plain = static_cast<std::byte*>(args.workspace) + scratchpad_;
    void* const x = const_cast<X*>(x_.gather(static_cast<const X*>(args.in[0]), plain));
    (args.first ? first_ : next_).run({args.in[1], x, args.state}, args.workspace);
  }
  void finish(const FinishArgs& args) override {
    simd::add_states(args, static_cast<float*>(args.out[0]), elements_);
  }

 private:
  static Primitive make(const Handle<dnnl_primitive_desc_t>& desc) {
    return Primitive(desc.get(), {{DNNL_ARG_SRC, dnnl_query_src_md},
                                  {DNNL_ARG_WEIGHTS, dnnl_query_weights_md},
                                  {DNNL_ARG_DST, dnnl_query_dst_md}});
  }
  PlainSamples<X> x_;
  int64_t elements_;
  Primitive first_, next_;
  size_t scratchpad_;
};

/// The problem of a request; the refusal tells why it does not match.
struct MatchedDense {
  DenseProblem problem;
  TensorDesc x;  ///< in its own layout
  std::string refusal;
};

DenseProblem dense_problem(const KernelRequest& r, const ops::Dense&) {
  return {DenseKind::forward, r.in[0], r.in[1], r.out[0], r.in_free[1], r.in.size() > 2};
}
DenseProblem dense_problem(const KernelRequest& r, const ops::DenseBackwardData&) {
  return {DenseKind::backward_data, r.out[0], r.in[1], r.in[0], r.in_free[1]};
}
DenseProblem dense_problem(const KernelRequest& r, const ops::DenseBackwardWeights&) {
  return {DenseKind::backward_weights, r.in[0], r.out[0], r.in[1]};
}

MatchedDense match_dense(const KernelRequest& r, DenseProblem p) {
  MatchedDense m{.problem = {}, .x = p.x, .refusal = {}};
  m.refusal = refusal_of_layouts({r.op, {p.x, p.y}, {}, {}, {}});
  const bool gradient = p.kind == DenseKind::backward_weights;
  if (p.any_w) p.w = {p.x.dtype, p.w.shape, {}};
  if (gradient && r.out_free[0]) p.w.layout = Layout::plain();
  if (gradient && !p.w.layout.is_plain())
    m.refusal = fmt::format("gradients are {}, plain is needed", p.w);
  if (!gradient && p.w.dtype != p.x.dtype)
    m.refusal = fmt::format("weights are {}, this product needs {}", name_of(p.w.dtype),
                            name_of(p.x.dtype));
  if (p.kind != DenseKind::forward && p.x.dtype != p.y.dtype)
    m.refusal = fmt::format("x is {}, dy {}", name_of(p.x.dtype), name_of(p.y.dtype));
  if (p.x.dtype != DType::f32 && p.x.dtype != DType::bf16)
    m.refusal = fmt::format("no dense layer of {}", name_of(p.x.dtype));
  p.x = {p.x.dtype, {p.x.shape[0], p.x.shape.elements_from(1)}, {}};
  m.problem = std::move(p);
  return m;
}

template <class X>
std::unique_ptr<Kernel> make_product(const SharedDense& d, const MatchedDense& m) {
  switch (m.problem.kind) {
    case DenseKind::forward: return std::make_unique<DenseProductKernel<X>>(d, m.x, m.problem.bias);
    case DenseKind::backward_data:
      return std::make_unique<DenseProductBackwardDataKernel<X>>(d, m.x);
    case DenseKind::backward_weights:
      return std::make_unique<DenseProductBackwardWeightsKernel<X>>(d, m.x, m.problem.w.shape[0]);
  }
  return {};
}

/// Returns the implementation with the layout that it wants for w; refuses through `c`.
SharedDense find_product(const DenseProblem& p, KernelCandidate& c, TensorDesc& w) {
  auto made = std::make_shared<DenseImplementation>();
  made->desc = describe_dense(p, false);
  if (p.kind == DenseKind::backward_weights) made->adding = describe_dense(p, true);
  if (!made->desc || (p.kind == DenseKind::backward_weights && !made->adding)) {
    c.refusal = fmt::format("oneDNN has no implementation for x {}, w {}, y {}", p.x, p.w, p.y);
    return {};
  }
  const char* name = "";
  TUTTI_DNNL(dnnl_primitive_desc_query(made->desc.get(), dnnl_query_impl_info_str, 0, &name));
  made->name = name;
  c.name = "onednn:" + made->name;
  if (made->name.starts_with("ref")) c.refusal = "reference loops";
  w = p.w;
  if (p.any_w) {
    const auto layout =
        MemoryDesc(dnnl_primitive_desc_query_md(made->desc.get(), dnnl_query_weights_md, 0))
            .layout();
    if (layout)
      w.layout = *layout;
    else
      c.refusal = "its weight layout has no form in Layout";
  }
  if (p.kind != DenseKind::backward_weights && w.layout.is_plain()) c.name += ", plain";
  return made;
}

KernelCandidate product_kernel(const KernelRequest& r, const MatchedDense& m) {
  KernelCandidate c = candidate_for(r, "onednn");
  c.refusal = m.refusal;
  SharedDense found;
  if (c.refusal.empty()) {
    try {
      const bool gradient = m.problem.kind == DenseKind::backward_weights;
      found = find_product(m.problem, c, gradient ? c.out[0] : c.in[1]);
    } catch (const DeviceError& e) {  // a refusal: there are other kernels
      c.refusal = e.what();
    }
  }
  if (c.refusal.empty())
    with_float_type(m.x.dtype, [&](auto x) {
      c.make = [found, m] { return make_product<decltype(x)>(found, m); };
    });
  return c;
}

KernelCandidates product_kernels(const KernelRequest& r, MatchedDense m) {
  KernelCandidates found{product_kernel(r, m)};
  // Also offers weights in their own layout: packing them may take longer than a small batch.
  if (!m.problem.any_w || m.x.dtype != DType::f32) return found;
  m.problem.any_w = false;
  found.push_back(product_kernel(r, m));
  if (found[0].name == found[1].name) found.pop_back();
  return found;
}

}  // namespace

void register_onednn_dense(KernelTable& table) {
  table.add<ops::Dense, ops::DenseBackwardData, ops::DenseBackwardWeights>(
      [](const KernelRequest& r, const auto& op) {
        return product_kernels(r, match_dense(r, dense_problem(r, op)));
      });
}

}  // namespace tutti::backend
