#include "tutti/backend/cpu/sequence/channels_last.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "tutti/backend/cpu/kernel/box_copy.h"
#include "tutti/backend/cpu/kernel/sample.h"

namespace tutti::backend {
namespace {

/// An operand in another layout, and its copy with channels last.
struct TurnedOperand {
  size_t index = 0;
  TensorDesc given, last;
  BoxCopy to_last, from_last;

  TurnedOperand(size_t i, const TensorDesc& desc)
      : index(i), given(desc), last(with_channels_last(desc)),
        to_last(terms_of(given), terms_of(last)), from_last(terms_of(last), terms_of(given)) {}
  static TensorDesc with_channels_last(TensorDesc desc) {
    desc.layout = Layout::channels_last(desc.shape.rank());
    return desc;
  }
};

/// Returns the sequences of a request in another layout.
std::vector<TurnedOperand> turned(const KernelRequest& r, bool out, size_t sequences) {
  const std::vector<TensorDesc>& descs = out ? r.out : r.in;
  const std::vector<bool>& free = out ? r.out_free : r.in_free;
  std::vector<TurnedOperand> list;
  for (size_t i = 0; i < std::min(descs.size(), sequences); ++i)
    if (descs[i].shape.rank() > 2 && !(i < free.size() && free[i]) && is_dense(descs[i]) &&
        descs[i].layout != Layout::channels_last(descs[i].shape.rank()))
      list.emplace_back(i, descs[i]);
  return list;
}

class TurnedSequenceKernel final : public Kernel {
 public:
  /// `alone`: one part does all, where otherwise each would copy the others' results.
  TurnedSequenceKernel(std::unique_ptr<Kernel> inner, std::vector<TurnedOperand> in,
                       std::vector<TurnedOperand> out, const KernelRequest& r, bool alone)
      : inner_(std::move(inner)), in_(std::move(in)), out_(std::move(out)), ins_(r.in.size()),
        outs_(r.out.size()), alone_(alone) {}

  size_t workspace_bytes() const override {
    size_t bytes = workspace_part(inner_->workspace_bytes());
    for (const auto* side : {&in_, &out_})
      for (const TurnedOperand& each : *side) bytes += workspace_part(each.last.bytes());
    return bytes;
  }
  size_t state_bytes() const override { return inner_->state_bytes(); }
  int state_output() const override { return inner_->state_output(); }

  void run(const KernelArgs& args) override {
    if (alone_ && args.thread != 0) return;
    auto* memory =
        static_cast<std::byte*>(args.workspace) + workspace_part(inner_->workspace_bytes());
    const auto take = [&](const TurnedOperand& each) {
      return std::exchange(memory, memory + workspace_part(each.last.bytes()));
    };
    std::copy_n(args.in, ins_.size(), ins_.begin());
    std::copy_n(args.out, outs_.size(), outs_.begin());
    for (const TurnedOperand& each : in_) {
      ins_[each.index] = take(each);
      each.to_last.run(args.in[each.index], ins_[each.index], size_of(each.last.dtype));
    }
    for (const TurnedOperand& each : out_) outs_[each.index] = take(each);
    KernelArgs inner = args;
    inner.in = ins_.data();
    inner.out = outs_.data();
    if (alone_) {
      inner.threads = 1;
      inner.team = nullptr;
    }
    inner_->run(inner);
    for (const TurnedOperand& each : out_)
      each.from_last.run(outs_[each.index], args.out[each.index], size_of(each.last.dtype));
  }
  void finish(const FinishArgs& args) override { inner_->finish(args); }

 private:
  std::unique_ptr<Kernel> inner_;
  std::vector<TurnedOperand> in_, out_;
  std::vector<void*> ins_, outs_;
  bool alone_;
};

}  // namespace

KernelCandidates with_turned(const KernelRequest& r, const MakeCandidate& make,
                             const SequenceForm& form) {
  KernelCandidates found{make(r)};
  if (found[0].refusal.empty()) return found;
  const std::vector<TurnedOperand> in = turned(r, false, form.inputs),
                                   out = turned(r, true, form.outputs);
  if (in.empty() && out.empty()) return found;
  KernelRequest last = r;
  if (form.shared) last.team = 1;
  for (const TurnedOperand& each : in) last.in[each.index] = each.last;
  for (const TurnedOperand& each : out) last.out[each.index] = each.last;
  KernelCandidate c = make(last);
  c.name += ", turned";
  for (const TurnedOperand& each : in) c.in[each.index] = each.given;
  for (const TurnedOperand& each : out) c.out[each.index] = each.given;
  if (c.make)
    c.make = [make = std::move(c.make), in, out, r,
              alone = form.shared]() -> std::unique_ptr<Kernel> {
      return std::make_unique<TurnedSequenceKernel>(make(), in, out, r, alone);
    };
  found.push_back(std::move(c));
  return found;
}

}  // namespace tutti::backend
