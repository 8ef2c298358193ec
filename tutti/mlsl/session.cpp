#include "tutti/mlsl/session.h"

#include <algorithm>

namespace tutti::mlsl {

Session::Session(Job& job, std::function<const Quantizer*()> quantizer, api::PhaseType phase)
    : job_(job), quantizer_(std::move(quantizer)), phase_(phase),
      statistics_(job.settings().statistics) {}

void Session::set_minibatch(size_t samples) {
  demand(minibatch_ == 0, "SetGlobalMinibatchSize: it is {} already, and may be set once",
         minibatch_);
  demand(samples > 0, "SetGlobalMinibatchSize: a minibatch of no samples");
  minibatch_ = samples;
}

size_t Session::minibatch() const {
  demand(minibatch_ > 0, "the minibatch is not known yet: SetGlobalMinibatchSize comes first");
  return minibatch_;
}

OperationRegInfo& Session::create_description(api::OpType type) {
  return *descriptions_.emplace_back(std::make_unique<OperationRegInfo>(type));
}

void Session::remove_description(const OperationRegInfo* description) {
  const auto at =
      std::ranges::find(descriptions_, description, [](const auto& own) { return own.get(); });
  demand(at != descriptions_.end(),
         "DeleteOperationRegInfo: not of this session, or deleted before");
  descriptions_.erase(at);
}

size_t Session::add(const OperationRegInfo& description,
                    std::shared_ptr<Distribution> distribution) {
  demand(!committed_, "AddOperation after Commit");
  description.validate(distribution.get());
  Operation& operation =
      operations_.emplace_back(*this, operations_.size(), description.description());
  if (distribution != nullptr) operation.set_distribution(std::move(distribution));
  return operations_.size() - 1;
}

void Session::remove_operations() {
  complete();
  operations_.clear();
}

void Session::complete() {
  for (Operation& operation : operations_) operation.complete();
}

Operation& Session::operation(size_t index) {
  demand(index < operations_.size(), "GetOperation: there is no operation {} of {}", index,
         operations_.size());
  return operations_[index];
}

void Session::commit() {
  demand(!committed_, "Commit may be called once");
  std::vector<Statistics::Line> lines;
  for (Operation& operation : operations_)
    lines.push_back({operation.description().name, operation.samples().count});
  for (Operation& operation : operations_) operation.commit(quantizer_(), statistics_);
  committed_ = true;
  statistics_.describe(std::move(lines), job_.world().rank() == 0 ? "mlsl_stats.log" : "");
  if (!statistics_.enabled()) return;
  for (Operation& operation : operations_) operation.isolate();
  statistics_.start();
}

}  // namespace tutti::mlsl
