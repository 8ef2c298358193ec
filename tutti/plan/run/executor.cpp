#include "tutti/plan/run/executor.h"

#include "tutti/plan/run/stream_executor.h"
#include "tutti/plan/run/team_executor.h"

namespace tutti::plan {

void Executor::run(const backend::StepInfo& step) {
  begin();
  run_bands(step, 0, plan_.bands.size());
  end();
}

std::unique_ptr<Executor> make_executor(const Plan& plan, const backend::Backend& backend,
                                        int arenas) {
  if (backend.device()) return std::make_unique<StreamExecutor>(plan, backend, arenas);
  return std::make_unique<TeamExecutor>(plan, backend, arenas);
}

}  // namespace tutti::plan
