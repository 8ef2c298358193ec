#include "tutti/comm/run/staged_operation.h"

#include <fmt/format.h>

namespace tutti::comm {

void StagedOperation::begin() {
  stage_ = 0;
  begin_stage();
}

void StagedOperation::begin_stage() {
  current_ = next(stage_);
  if (current_ == nullptr) return;
  current_->operation->set_priority(priority());
  current_->operation->begin();
}

// A collective may be complete as soon as it has begun; then the next stage follows at once.
bool StagedOperation::advance() {
  while (current_ != nullptr) {
    if (!current_->operation->advance()) return false;
    ++stage_;
    begin_stage();
  }
  return true;
}

Pending StagedOperation::describe() const {
  Pending what{.operation = description(), .sequence = sequence(), .arrived = {}, .missing = {}};
  if (current_ == nullptr) return what;
  const Pending inner = current_->operation->describe();
  what.passed = inner.passed;
  what.operation += fmt::format(", stage {}: {}", stage_ + 1, inner.operation);
  const auto ranks_of = [&](const std::vector<int>& members) {
    std::vector<int> ranks;
    for (const int member : members)
      ranks.push_back(current_->members.empty() ? member
                                                : current_->members[static_cast<size_t>(member)]);
    return ranks;
  };
  what.arrived = ranks_of(inner.arrived);
  what.missing = ranks_of(inner.missing);
  return what;
}

}  // namespace tutti::comm
