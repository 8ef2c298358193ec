#include "tutti/backend/conformance/device_run.h"

#include "tutti/device/mirrors.h"

namespace tutti::backend {

DeviceRun::DeviceRun(const Backend& backend, std::unique_ptr<Kernel> kernel,
                     const std::vector<GuardedOperand>& in, const std::vector<GuardedOperand>& out,
                     const OpRunOptions& options)
    : backend_(backend), kernel_(std::move(kernel)), step_(options.step),
      recorded_(options.recorded),
      workspace_(*backend.device(), kernel_->workspace_bytes() + 2 * kGuard),
      numbers_(*backend.device(), std::max<size_t>(kernel_->number_bytes(), 1)),
      stream_(backend.device()->make_stream("conformance")) {
  const auto add = [&](const std::vector<GuardedOperand>& operands, std::vector<void*>& at) {
    for (const GuardedOperand& operand : operands) {
      memory_.emplace_back(*backend.device(), operand.memory.bytes());
      at.push_back(memory_.back().data() + kGuard);
    }
  };
  add(in, in_);
  add(out, out_);
}

void DeviceRun::put_kernel() {
  kernel_->run({.in = in_.data(),
                .out = out_.data(),
                .workspace = workspace_.data() + kGuard,
                .stream = stream_.get(),
                .numbers = numbers_.data()});
}

void DeviceRun::run(const std::vector<GuardedOperand>& in, const std::vector<GuardedOperand>& out) {
  std::unique_ptr<device::Recording> recording;
  if (recorded_) {  // before there are operands and numbers, so that it keeps none of them
    stream_->begin_recording();
    put_kernel();
    recording = stream_->end_recording();
  }

  device::Mirrors& mirrors = *backend_.mirrors();
  std::vector<const GuardedOperand*> operands;
  for (const std::vector<GuardedOperand>* side : {&in, &out})
    for (const GuardedOperand& operand : *side) operands.push_back(&operand);
  for (size_t i = 0; i < operands.size(); ++i)
    mirrors.to_device(memory_[i].data(), operands[i]->memory.data(), memory_[i].bytes(), *stream_);
  const device::Buffer numbers(numbers_.bytes());
  kernel_->write_numbers(step_, numbers.data());
  mirrors.to_device(numbers_.data(), numbers.data(), numbers_.bytes(), *stream_);
  std::byte guard[kGuard];
  put_guard(guard);
  stream_->fill(workspace_.data() + kGuard, std::byte{0xFF}, workspace_.bytes() - 2 * kGuard);
  for (std::byte* const place : workspace_guards())
    mirrors.to_device(place, guard, kGuard, *stream_);

  if (recording)
    stream_->replay(*recording);
  else
    put_kernel();

  for (size_t i = 0; i < operands.size(); ++i)
    mirrors.to_host(operands[i]->memory.data(), memory_[i].data(), memory_[i].bytes(), *stream_);
  intact_ = true;
  for (std::byte* const place : workspace_guards()) {
    mirrors.to_host(guard, place, kGuard, *stream_);
    intact_ = intact_ && is_guard(guard);
  }
}

}  // namespace tutti::backend
