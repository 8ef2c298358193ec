#include "tutti/train/loop/job_time.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "tutti/base/numeric/hash.h"

namespace tutti::train {

device::ProcessorTime processor_time_of_job(comm::Communicator& communicator,
                                            const device::MachineWatch& watch) {
  struct Place {
    uint64_t processors, process;
  };
  const std::string host = communicator.host();
  const Place own{fnv1a(fmt::format("{} {}", host, fmt::join(watch.processors(), ","))),
                  fnv1a(fmt::format("{} {}", host, getpid()))};
  const std::vector<Place> all = communicator.allgather_value(own);
  device::ProcessorTime time = watch.so_far().shared_by(
      static_cast<double>(std::ranges::count(all, own.processors, &Place::processors)));
  time.own /= static_cast<double>(std::ranges::count(all, own.process, &Place::process));
  std::array<double, 7> sums{time.there,
                             time.busy,
                             time.steal,
                             time.own,
                             time.periods,
                             time.throttled_periods,
                             time.seconds / communicator.size()};
  communicator.sum(sums);
  return {.there = sums[0],
          .busy = sums[1],
          .steal = sums[2],
          .own = sums[3],
          .periods = sums[4],
          .throttled_periods = sums[5],
          .seconds = sums[6]};
}

}  // namespace tutti::train
