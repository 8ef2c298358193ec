#include "tutti/mlsl/parameter_set.h"

namespace tutti::mlsl {

void ParameterSet::commit(Distribution& distribution, const Quantizer* quantizer,
                          Statistics& statistics) {
  statistics_ = &statistics;
  gradient_state_.tally = &statistics.tally(operation_, Entity::gradient);
  increment_state_.tally = &statistics.tally(operation_, Entity::increment);
  if (!share_.gradient) return;
  Group& group = distribution.group(layout::GroupKind::data);
  const auto ranks = static_cast<size_t>(group.size());
  job_ = &group.job();
  const bool distributed = share_.increment.has_value();
  comm::CollectiveSpec spec;
  spec.element = element_of(info_.type);
  if (distributed)
    owned_sum_ = group.allocate(share_.gradient->count * comm::size_of(spec.element));
  if (info_.compression == api::CT_QUANTIZATION) {
    demand(
        quantizer != nullptr,
        "parameters are to be quantised, but SetQuantizationParams was not called before Commit");
    demand(info_.type == api::DT_FLOAT, "only DT_FLOAT parameters can be quantised");
    const size_t count = local_kernels() * share_.kernel_size;
    const size_t part =
        distributed ? share_.gradient->count
                    : (quantizer->blocks(count) + ranks - 1) / ranks * quantizer->block_floats();
    quantized_ = std::make_unique<QuantizedSum>(
        group, *quantizer,
        QuantizedSum::Spec{.count = count, .part = part, .everywhere = !distributed});
  } else {
    spec.name = "gradient";
    spec.kind = share_.gradient->kind;
    spec.count = distributed ? share_.gradient->count * ranks : share_.gradient->count;
    gradient_ = std::make_unique<Planned>(group, spec);
  }
  if (!distributed) return;
  spec.name = "increment";
  spec.kind = share_.increment->kind;
  spec.count = share_.increment->count * ranks;
  increment_ = std::make_unique<Planned>(group, spec);
}

void ParameterSet::isolate() {
  std::vector<std::byte> zeros(local_kernels() * share_.kernel_size *
                               comm::size_of(element_of(info_.type)));
  if (exchanges_gradient())
    Statistics::isolate(*gradient_state_.tally,
                        [&] { start_gradient(zeros.data()), wait_gradient(); });
  if (increment_)
    Statistics::isolate(*increment_state_.tally,
                        [&] { start_increment(zeros.data()), wait_increment(); });
  gradient_state_.result = increment_state_.result = nullptr;
}

comm::Operation& ParameterSet::gradient_exchange() const {
  if (quantized_) return *quantized_;
  return gradient_->operation();
}

std::byte* ParameterSet::owned(void* buffer) const {
  return static_cast<std::byte*>(buffer) +
         share_.owned.begin * share_.kernel_size * comm::size_of(element_of(info_.type));
}

void ParameterSet::start_gradient(void* buffer) {
  demand(statistics_ != nullptr, "StartGradientComm before Commit");
  const Statistics::Call call(*statistics_, operation_, *gradient_state_.tally);
  if (!exchanges_gradient()) return;
  demand(buffer != nullptr, "StartGradientComm without a buffer");
  gradient_state_.buffer = buffer;
  gradient_state_.started = true;
  call.count_start(quantized_ ? quantized_->bytes() : gradient_->bytes());
  void* const sum = increment_ ? owned_sum_->data() : buffer;
  if (quantized_)
    quantized_->start(static_cast<const float*>(buffer), static_cast<float*>(sum));
  else
    gradient_->start({buffer, sum});
}

void ParameterSet::finish_gradient() {
  State& state = gradient_state_;
  state.started = false;
  state.result = increment_ ? owned_sum_->data() : state.buffer;
}

void* ParameterSet::wait_gradient() {
  if (!gradient_state_.started) return gradient_state_.result;
  const Statistics::Call call(*statistics_, operation_, *gradient_state_.tally);
  gradient_exchange().wait();
  finish_gradient();
  return gradient_state_.result;
}

void* ParameterSet::test_gradient(bool& complete) {
  complete = true;
  if (!gradient_state_.started) return gradient_state_.result;
  const Statistics::Call call(*statistics_, operation_, *gradient_state_.tally);
  complete = job_->test(gradient_exchange());
  if (!complete) return nullptr;
  finish_gradient();
  return gradient_state_.result;
}

void ParameterSet::start_increment(void* buffer) {
  demand(statistics_ != nullptr, "StartIncrementComm before Commit");
  const Statistics::Call call(*statistics_, operation_, *increment_state_.tally);
  if (!increment_) return;
  demand(buffer != nullptr, "StartIncrementComm without a buffer");
  increment_state_.buffer = buffer;
  increment_state_.started = true;
  call.count_start(increment_->bytes());
  increment_->start({owned(buffer), buffer});
}

void* ParameterSet::wait_increment() {
  if (!increment_state_.started) return increment_state_.result;
  const Statistics::Call call(*statistics_, operation_, *increment_state_.tally);
  increment_->operation().wait();
  increment_state_.started = false;
  return increment_state_.result = increment_state_.buffer;
}

void ParameterSet::complete() {
  if (exchanges_gradient()) gradient_exchange().wait();
  if (increment_) increment_->operation().wait();
}

}  // namespace tutti::mlsl
