#include <fstream>

#include "tutti/base/log.h"
#include "tutti/train/loop/job_time.h"
#include "tutti/train/loop/trainer_run.h"

namespace tutti {

void TrainerRun::report_machine(bool ends) {
  constexpr double kLeastSeconds = 1;  // of epochs that are shorter several share a line
  ProcessorTime time = processor_time_of_job(comm_, *watch_);
  if (!first()) return;
  const ProcessorTime now = time;
  time -= machine_told_;
  if (time.seconds < kLeastSeconds && !ends) return;
  machine_told_ = now;
  const MachineUse use = time.shares();
  double load = kNotMeasured;
  std::ifstream("/proc/loadavg") >> load;
  reporter_->record().append(MachineRecord{.epoch = (step_ - 1) / sampler_.steps_per_epoch() + 1,
                                           .step = step_,
                                           .seconds = use.seconds,
                                           .other_work = use.other_work,
                                           .steal = use.steal,
                                           .throttled = use.throttled,
                                           .load = load});
  if (!ends) return;
  for (const auto share : {&MachineUse::other_work, &MachineUse::steal, &MachineUse::throttled}) {
    MachineUse one;  // a line each, so that none is long
    one.*share = now.shares().*share;
    if (const std::string said = disturbance_sentence(one); !said.empty()) log::info("{}", said);
  }
}

}  // namespace tutti
