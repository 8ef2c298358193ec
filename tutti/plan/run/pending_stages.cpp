#include "tutti/plan/run/pending_stages.h"

namespace tutti::plan {

int PendingStages::next(Exchanges* exchanges, bool may_wait) const {
  int first = -1;
  for (int s = 0; s < static_cast<int>(plan_.stages.size()); ++s) {
    if (!contains(s)) continue;
    const PlanStage& stage = plan_.stages[static_cast<size_t>(s)];
    if (first < 0) first = s;
    if (std::ranges::none_of(stage.after, [this](int before) { return contains(before); }) &&
        (!exchanges || std::ranges::all_of(stage.waits, [&](int e) { return exchanges->done(e); })))
      return s;
  }
  return may_wait ? first : -1;
}

}  // namespace tutti::plan
