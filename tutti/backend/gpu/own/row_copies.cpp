// GatherRows and AddRows: rows go from slabs to windows and back.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tutti/backend/gpu/kernels/copies.h"
#include "tutti/backend/gpu/own/box_move.h"
#include "tutti/backend/gpu/own/own_kernels.h"
#include "tutti/backend/gpu/own/strides.h"
#include "tutti/device/launch.h"
#include "tutti/ops/rank_rows.h"
#include "tutti/ops/rows.h"

namespace tutti::backend {
namespace {

/// The dimensions of samples with rows as kernels take them: the batch first, the others in the
/// order of the result's memory.
struct RowDimensions {
  RowDimensions(const TensorDesc& result, int row_dim) {
    for (int d = 0; d < result.shape.rank(); ++d) order.push_back(d);
    const Strides strides = strides_of(result);
    std::ranges::stable_sort(order.begin() + 1, order.end(), [&](int a, int b) {
      return strides[static_cast<size_t>(a)] > strides[static_cast<size_t>(b)];
    });
    dim = static_cast<int32_t>(std::ranges::find(order, row_dim) - order.begin());
  }
  void set_steps(const TensorDesc& d, int64_t (&step)[kMostLoops]) const {
    const Strides strides = strides_of(d);
    for (size_t i = 0; i < order.size(); ++i) step[i] = strides[static_cast<size_t>(order[i])];
  }
  /// Sets what both kernels of rows know of their result.
  template <class Args>
  void set(Args& args, const TensorDesc& result, int64_t (&step)[kMostLoops]) const {
    args.elements = result.elements();
    args.rank = static_cast<int32_t>(order.size());
    args.dim = dim;
    for (size_t i = 0; i < order.size(); ++i) args.extent[i] = divisor(result.shape[order[i]]);
    set_steps(result, step);
  }
  std::vector<int> order;  ///< dimensions of the operands
  int32_t dim;             ///< the place in it of the rows
};

class GatherRowsOnDevice final : public Kernel {
 public:
  GatherRowsOnDevice(const KernelRequest& r, const ops::GatherRows& op,
                     const device::Device& device)
      : function_(&device::function_named(device,
                                          fmt::format("gather_rows.{}", size_of(r.out[0].dtype)))) {
    const ops::RowCut& cut = op.cut();
    const RowDimensions dimensions(r.out[0], cut.dim);
    dimensions.set(args_, r.out[0], args_.y_step);
    args_.inputs = static_cast<int32_t>(r.in.size());
    args_.fill = repeated_bits(r.out[0].dtype, op.fill());
    for (size_t i = 0; i < r.in.size(); ++i) {
      dimensions.set_steps(r.in[i], args_.in[i].step);
      args_.in[i].parts = i == 0 ? cut.slabs : 1;
      const graph::Rows rows =
          i == 0 ? graph::Rows{0, r.in[0].shape[cut.dim] * cut.slabs} : cut.others[i - 1];
      args_.in[i].height = divisor(rows.count() / args_.in[i].parts);
      args_.first[i] = rows.first;
      args_.last[i] = rows.last;
    }
    args_.windows = divisor(std::ssize(cut.windows));
    std::ranges::transform(cut.windows, args_.window, &graph::Rows::first);
  }
  void run(const KernelArgs& args) override {
    GatherRowsArgs a = args_;
    a.y = args.out[0];
    for (int32_t i = 0; i < a.inputs; ++i) a.in[i].data = args.in[i];
    device::launch(*args.stream, *function_, {blocks_for(a.elements, function_->threads)}, a);
  }

 private:
  const device::DeviceFunction* function_;
  GatherRowsArgs args_{};
};

class AddRowsOnDevice final : public Kernel {
 public:
  AddRowsOnDevice(const KernelRequest& r, const ops::AddRows& op, const device::Device& device)
      : function_(
            &device::function_named(device, fmt::format("add_rows.{}", name_of(r.out[0].dtype)))) {
    const ops::AddRows::Sum& sum = op.sum();
    const RowDimensions dimensions(r.out[0], sum.dim);
    dimensions.set(args_, r.out[0], args_.dx_step);
    args_.inputs = static_cast<int32_t>(r.in.size());
    args_.slabs = divisor(sum.slabs);
    args_.height = sum.rows.count() / sum.slabs;
    args_.first_row = sum.rows.first;
    int64_t* window = args_.window;
    for (size_t i = 0; i < r.in.size(); ++i) {
      dimensions.set_steps(r.in[i], args_.in[i].step);
      args_.in[i].parts = std::ssize(sum.windows[i]);
      args_.in[i].height = divisor(sum.windows[i].front().count());
      for (const graph::Rows rows : sum.windows[i]) *window++ = rows.first;
    }
  }
  void run(const KernelArgs& args) override {
    AddRowsArgs a = args_;
    a.dx = args.out[0];
    for (int32_t i = 0; i < a.inputs; ++i) a.in[i].data = args.in[i];
    device::launch(*args.stream, *function_, {blocks_for(a.elements, function_->threads)}, a);
  }

 private:
  const device::DeviceFunction* function_;
  AddRowsArgs args_{};
};

/// `windows`: of all inputs together.
template <class K, class O>
KernelCandidate own_rows(const KernelRequest& r, const O& op, size_t windows,
                         const device::Device& device) {
  KernelCandidate c = own_candidate(r, "copies");
  c.refusal = refusal_of_blocks(c);
  if (r.in.size() > kMostRowInputs || windows > kMostWindows)
    c.refusal = fmt::format("{} inputs and {} windows, {} and {} at most", r.in.size(), windows,
                            +kMostRowInputs, +kMostWindows);
  if (c.refusal.empty()) c.make = [r, op, &device] { return std::make_unique<K>(r, op, device); };
  return c;
}

}  // namespace

void register_row_copies(OwnKernels& table) {
  table.add<ops::GatherRows, ops::TakeRows>(
      [](const KernelRequest& r, const ops::GatherRows& op, const device::Device& device) {
        return own_rows<GatherRowsOnDevice>(r, op, op.cut().windows.size(), device);
      });
  table.add<ops::AddRows>(
      [](const KernelRequest& r, const ops::AddRows& op, const device::Device& device) {
        size_t windows = 0;
        for (const std::vector<graph::Rows>& list : op.sum().windows) windows += list.size();
        return own_rows<AddRowsOnDevice>(r, op, windows, device);
      });
}

}  // namespace tutti::backend
