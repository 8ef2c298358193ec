#include "tutti/mlsl/operation.h"

#include <limits>

#include "tutti/mlsl/session.h"

namespace tutti::mlsl {

OperationRegInfo::OperationRegInfo(api::OpType type) {
  demand(type >= api::OT_CC && type <= api::OT_EVAL, "{} is no operation type",
         static_cast<int>(type));
  description_.type = type;
}

size_t OperationRegInfo::add(std::vector<ActivationInfo>& list, const ActivationInfo& info) {
  demand(info.maps > 0 && info.map_size > 0 &&
             info.maps <= std::numeric_limits<size_t>::max() / info.map_size,
         "an activation of {} maps of {} elements", info.maps, info.map_size);
  element_of(info.type);  // throws for an invalid type
  list.push_back(info);
  return list.size() - 1;
}

size_t OperationRegInfo::add_parameters(const ParameterInfo& info) {
  demand(info.all.kernels > 0 && info.all.kernel_size > 0,
         "a parameter set of {} kernels of {} elements", info.all.kernels, info.all.kernel_size);
  demand(comm::has_arithmetic(element_of(info.type)), "parameters of DT_BYTE have no sum");
  demand(info.compression == api::CT_NONE || info.compression == api::CT_QUANTIZATION,
         "{} is no compression type", static_cast<int>(info.compression));
  description_.parameters.push_back(info);
  return description_.parameters.size() - 1;
}

void OperationRegInfo::validate(const Distribution* distribution) const {
  const Description& d = description_;
  demand(d.type != api::OT_SPLIT && d.type != api::OT_REDUCE,
         "operation '{}': OT_SPLIT and OT_REDUCE are not supported", d.name);
  demand(d.type != api::OT_DATA || d.inputs.empty(), "operation '{}': OT_DATA has no input",
         d.name);
  demand(d.type != api::OT_EVAL || d.outputs.empty(), "operation '{}': OT_EVAL has no output",
         d.name);
  if (distribution == nullptr) return;
  const auto parts = static_cast<size_t>(distribution->layout().parts(layout::GroupKind::model));
  const auto check = [&](size_t count, const char* what) {
    demand(count % parts == 0, "operation '{}': {} {} cannot be cut into {} equal model parts",
           d.name, count, what, parts);
  };
  for (const ActivationInfo& info : d.inputs) check(info.maps, "feature maps");
  if (d.type != api::OT_CC)
    for (const ActivationInfo& info : d.outputs) check(info.maps, "feature maps");
  for (const ParameterInfo& info : d.parameters) check(info.all.kernels, "kernels");
}

Operation::Operation(Session& session, size_t index, OperationRegInfo::Description description)
    : session_(session), index_(index), description_(std::move(description)) {
  if (description_.name.empty()) description_.name = fmt::format("operation {}", index);
  for (const ActivationInfo& info : description_.inputs)
    inputs_.emplace_back(info, Side::consumer, false, index);
  for (const ActivationInfo& info : description_.outputs)
    outputs_.emplace_back(info, Side::producer, description_.type == api::OT_CC, index);
  for (const ParameterInfo& info : description_.parameters) parameters_.emplace_back(info, index);
}

void Operation::set_distribution(std::shared_ptr<Distribution> distribution) {
  demand(distribution != nullptr, "operation '{}': no distribution", description_.name);
  demand(distribution_ == nullptr, "operation '{}' has a distribution already", description_.name);
  for (auto* list : {&inputs_, &outputs_})
    for (Activation& activation : *list) activation.set_distribution(distribution);
  for (ParameterSet& parameters : parameters_) parameters.set_distribution(*distribution);
  distribution_ = std::move(distribution);
}

void Operation::check_distribution(const char* why) const {
  demand(distribution_ != nullptr, "operation '{}' has no distribution yet, which {} needs",
         description_.name, why);
}

comm::Slice Operation::samples() const {
  check_distribution("its local minibatch");
  return layout::local_samples(session_.minibatch(), distribution_->layout(),
                               distribution_->rank());
}

void Operation::set_previous(Operation* previous, size_t mine, size_t theirs) {
  demand(!session_.committed(), "operations are connected before Commit");
  Activation& here = input(mine);
  if (previous == nullptr) return;
  demand(&previous->session_ == &session_, "connected operations belong to one session");
  Activation::connect(previous->output(theirs), here);
}

void Operation::set_next(Operation* next, size_t mine, size_t theirs) {
  demand(!session_.committed(), "operations are connected before Commit");
  Activation& here = output(mine);
  if (next == nullptr) return;
  demand(&next->session_ == &session_, "connected operations belong to one session");
  Activation::connect(here, next->input(theirs));
}

void Operation::commit(const Quantizer* quantizer, Statistics& statistics) {
  for (Activation& activation : inputs_) activation.count_in(statistics);
  for (Activation& activation : outputs_) {
    activation.count_in(statistics);
    activation.commit(session_.minibatch());
  }
  for (ParameterSet& parameters : parameters_)
    parameters.commit(*distribution_, quantizer, statistics);
}

void Operation::complete() {
  for (Activation& activation : outputs_) activation.complete();
  for (ParameterSet& parameters : parameters_) parameters.complete();
}

void Operation::isolate() {
  for (Activation& activation : inputs_) activation.isolate();
  for (Activation& activation : outputs_) activation.isolate();
  for (ParameterSet& parameters : parameters_) parameters.isolate();
}

}  // namespace tutti::mlsl
