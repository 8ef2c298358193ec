#include "tutti/backend/gpu/host_kernel.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/device/cpu/buffer.h"

namespace tutti::backend {
namespace {

/// The operands of a kernel, as far as they concern its calls.
struct Operands {
  std::vector<size_t> in, out;  ///< bytes
  std::vector<bool> changed;    ///< by input: the kernel writes it
  bool reduces = false;

  Operands(const KernelCandidate& c, const graph::Op& op) {
    std::vector<graph::ValueType> types;
    for (const TensorDesc& desc : c.in) {
      changed.push_back(op.mutates(static_cast<int>(in.size())));
      in.push_back(desc.bytes());
      types.push_back({desc, true});
    }
    for (const TensorDesc& desc : c.out) out.push_back(desc.bytes());
    reduces = op.walk(types) == graph::Walk::reduce;  // whether or not there is a batch
  }
};

/// A kernel of the host with the memory that a thread of a plan has for it.
class HostCall final : public Team {
 public:
  HostCall(std::unique_ptr<Kernel> kernel, bool reduces)
      : kernel_(std::move(kernel)), reduces_(reduces), workspace_(kernel_->workspace_bytes()),
        state_(kernel_->state_output() < 0 ? kernel_->state_bytes() : 0) {}
  void meet() override {}
  void* workspace(int) const override { return workspace_.data(); }

  void run(void* const* in, void* const* out, const std::byte* numbers, const Window& window) {
    StepInfo step;
    std::memcpy(&step, numbers, sizeof step);
    void* state = state_.data();
    if (kernel_->state_output() >= 0) state = out[kernel_->state_output()];
    kernel_->run({.in = in,
                  .out = out,
                  .workspace = workspace_.data(),
                  .state = state,
                  .step = &step,
                  .window = window,
                  .team = this});
    if (reduces_) kernel_->finish({.in = in, .out = out, .states = {&state, 1}, .step = &step});
  }

 private:
  std::unique_ptr<Kernel> kernel_;
  bool reduces_;
  device::Buffer workspace_, state_;
};

/// A call on operands of these addresses. It shares the call with the kernel and with recordings,
/// which may outlive the kernel.
class CallAt final : public device::HostWork {
 public:
  CallAt(std::shared_ptr<HostCall> call, std::vector<void*> in, std::vector<void*> out,
         const std::byte* numbers, const Window& window)
      : call_(std::move(call)), in_(std::move(in)), out_(std::move(out)), numbers_(numbers),
        window_(window) {}
  void run() override { call_->run(in_.data(), out_.data(), numbers_, window_); }
  bool is_for(const KernelArgs& args) const {
    return std::equal(in_.begin(), in_.end(), args.in) &&
           std::equal(out_.begin(), out_.end(), args.out) && numbers_ == args.numbers &&
           window_.begin == args.window.begin && window_.end == args.window.end;
  }

 private:
  std::shared_ptr<HostCall> call_;
  std::vector<void*> in_, out_;
  const std::byte* numbers_;
  Window window_;
};

class HostKernel : public Kernel {
 public:
  size_t number_bytes() const override { return sizeof(StepInfo); }
  void write_numbers(const StepInfo& step, std::byte* to) const override {
    std::memcpy(to, &step, sizeof step);
  }
};

/// The work uses memory of the device.
class DirectKernel final : public HostKernel {
 public:
  DirectKernel(std::unique_ptr<Kernel> kernel, Operands operands)
      : operands_(std::move(operands)),
        call_(std::make_shared<HostCall>(std::move(kernel), operands_.reduces)) {}

  void run(const KernelArgs& args) override {
    for (const auto& work : works_)
      if (work->is_for(args)) return args.stream->host(work);
    works_.push_back(std::make_shared<CallAt>(
        call_, std::vector<void*>(args.in, args.in + operands_.in.size()),
        std::vector<void*>(args.out, args.out + operands_.out.size()), args.numbers, args.window));
    args.stream->host(works_.back());
  }

 private:
  Operands operands_;
  std::shared_ptr<HostCall> call_;
  std::vector<std::shared_ptr<CallAt>> works_;  ///< one for each set of addresses that was met
};

/// The work uses pinned memory, between copies.
class StagedKernel final : public HostKernel {
 public:
  StagedKernel(std::unique_ptr<Kernel> kernel, Operands operands, device::Device& device)
      : operands_(std::move(operands)) {
    size_t bytes = workspace_part(sizeof(StepInfo));
    for (const std::vector<size_t>* side : {&operands_.in, &operands_.out})
      for (const size_t operand : *side) bytes += workspace_part(operand);
    staging_ = device::Memory(device, bytes, device::MemoryKind::pinned);
    std::byte* next = staging_.data() + workspace_part(sizeof(StepInfo));
    for (const size_t operand : operands_.in)
      in_.push_back(std::exchange(next, next + workspace_part(operand)));
    for (const size_t operand : operands_.out)
      out_.push_back(std::exchange(next, next + workspace_part(operand)));
    work_ =
        std::make_shared<CallAt>(std::make_shared<HostCall>(std::move(kernel), operands_.reduces),
                                 in_, out_, staging_.data(), Window{});
  }

  void run(const KernelArgs& args) override {
    CHECK(!args.window.end, "work on copies knows no window of the weights");
    args.stream->copy(staging_.data(), args.numbers, sizeof(StepInfo));
    for (size_t i = 0; i < in_.size(); ++i) args.stream->copy(in_[i], args.in[i], operands_.in[i]);
    args.stream->host(work_);
    for (size_t i = 0; i < in_.size(); ++i)
      if (operands_.changed[i]) args.stream->copy(args.in[i], in_[i], operands_.in[i]);
    for (size_t i = 0; i < out_.size(); ++i)
      args.stream->copy(args.out[i], out_[i], operands_.out[i]);
  }

 private:
  Operands operands_;
  device::Memory staging_;  ///< the step, then inputs, then outputs
  std::vector<void*> in_, out_;
  std::shared_ptr<CallAt> work_;
};

}  // namespace

KernelCandidate host_candidate(KernelCandidate of_host, const KernelRequest& request,
                               device::Device& device) {
  of_host.name = "host:" + of_host.name;
  if (!of_host.refusal.empty()) return of_host;
  of_host.make = [make = std::move(of_host.make), operands = Operands(of_host, *request.op),
                  &device]() -> std::unique_ptr<Kernel> {
    if (device.facts().host_work_reads_memory)
      return std::make_unique<DirectKernel>(make(), operands);
    return std::make_unique<StagedKernel>(make(), operands, device);
  };
  return of_host;
}

}  // namespace tutti::backend
