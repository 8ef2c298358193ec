#include "tutti/cli/bench/bench_watch.h"

#include <chrono>
#include <thread>
#include <utility>

#include "tutti/base/log.h"
#include "tutti/train/loop/job_time.h"

namespace tutti::cli {
namespace {

device::MachineWatch after_a_look(comm::Communicator& communicator, const BenchWatch::Say& say) {
  constexpr auto kLook = std::chrono::milliseconds(250);
  communicator.barrier();
  const device::MachineWatch look;
  std::this_thread::sleep_for(kLook);
  const std::string found =
      trace::disturbance(train::processor_time_of_job(communicator, look).shares());
  if (communicator.rank() == 0 && !found.empty())
    say(found + " before anything was measured: the times that follow say little");
  return device::MachineWatch();
}

}  // namespace

BenchWatch::BenchWatch(comm::Communicator& communicator, Say say)
    : communicator_(communicator), say_(std::move(say)), watch_(after_a_look(communicator, say_)) {}

void BenchWatch::log_warning(const std::string& text) { log::warn("{}", text); }

void BenchWatch::end() {
  const std::string found =
      trace::disturbance(train::processor_time_of_job(communicator_, watch_).shares());
  if (communicator_.rank() == 0 && !found.empty())
    say_(found + " while these times were measured: they say little");
}

}  // namespace tutti::cli
