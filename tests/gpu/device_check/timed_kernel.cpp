#include "tests/gpu/device_check/timed_kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/base/error.h"

namespace tutti::device_check {
namespace {

TensorDesc desc_of(const graph::ValueType& type, const backend::Backend& backend) {
  TensorDesc desc = type.desc;
  if (type.batched && desc.shape.rank() >= 3)
    desc.layout = backend.activation_layouts(desc.shape, desc.dtype).front();
  return desc;
}

}  // namespace

backend::KernelRequest request_for(const backend::OpProblem& problem,
                                   const backend::Backend& backend) {
  backend::KernelRequest request{.op = problem.op.get(),
                                 .in = {},
                                 .out = {},
                                 .in_free = problem.in_free,
                                 .out_free = problem.out_free};
  for (const graph::ValueType& type : problem.in) request.in.push_back(desc_of(type, backend));
  for (const graph::ValueType& type : problem.out()) request.out.push_back(desc_of(type, backend));
  request.in_free.resize(request.in.size());
  request.out_free.resize(request.out.size());
  return request;
}

std::vector<std::string> kernels_for(const std::string& line, const backend::Backend& backend) {
  const backend::OpCase c = backend::parse_op_case(line);
  std::vector<std::string> names;
  for (const auto& candidate : backend.candidates(request_for(c.problem, backend)))
    if (candidate.refusal.empty()) names.push_back(candidate.name);
  return names;
}

TimedKernel::TimedKernel(const std::string& line, const backend::Backend& backend,
                         const std::string& kernel)
    : backend_(backend), case_(backend::parse_op_case(line)),
      stream_(backend.device()->make_stream("rates")) {
  backend::KernelRequest request = request_for(case_.problem, backend);
  for (const backend::KernelCandidate& c : backend.candidates(request)) {
    if (kernel_ || !c.refusal.empty() || c.name != kernel) continue;
    for (size_t i = 0; i < request.in.size(); ++i)
      if (request.in_free[i]) request.in[i] = c.in[i];
    for (size_t i = 0; i < request.out.size(); ++i)
      if (request.out_free[i]) request.out[i].layout = c.out[i].layout;
    kernel_ = c.make();
  }
  if (!kernel_) throw DeviceError(fmt::format("there is no kernel {} for {}", kernel, line));
  for (const TensorDesc& desc : request.in)
    in_.push_back(memory_.emplace_back(filled(desc)).data());
  for (const TensorDesc& desc : request.out)
    out_.push_back(memory_.emplace_back(filled(desc)).data());
  flop_ = case_.problem.op->flop(case_.problem.in, case_.problem.out());
  workspace_ = device::Memory(*backend.device(), kernel_->workspace_bytes());
  numbers_ = device::Memory(*backend.device(), std::max<size_t>(kernel_->number_bytes(), 1));
  std::vector<std::byte> numbers(kernel_->number_bytes() + 16);
  kernel_->write_numbers({.seed = 7, .step = 3, .replica = 0, .batch = 1}, numbers.data());
  backend.mirrors()->to_device(numbers_.data(), numbers.data(), kernel_->number_bytes(), *stream_);
}

device::Memory TimedKernel::filled(const TensorDesc& desc) {
  const bool real = desc.dtype == DType::f32 || desc.dtype == DType::bf16;
  device::Memory memory(*backend_.device(), desc.bytes());
  stream_->fill(memory.data(), real ? std::byte{0x3C} : std::byte{0}, desc.bytes());  // 0.0115
  device::settle(*backend_.device(), *stream_, "filling memory");
  bytes_ += desc.bytes();
  return memory;
}

void TimedKernel::put(device::Stream& stream) {
  kernel_->run({.in = in_.data(),
                .out = out_.data(),
                .workspace = workspace_.data(),
                .stream = &stream,
                .numbers = numbers_.data()});
}

}  // namespace tutti::device_check
