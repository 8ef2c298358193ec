#pragma once
// Environments for tests: ranks are threads, each with an environment of its own.

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/mlsl/environment.h"

namespace tutti::mlsl {

using Variables = std::map<std::string, std::string>;
using Floats = std::vector<float>;

inline comm::Environment given(Variables variables) {
  return [variables = std::move(variables)](const char* name) {
    const auto at = variables.find(name);
    return at == variables.end() ? nullptr : at->second.c_str();
  };
}

// Calls body(environment, rank) on so many ranks, each with an environment of its own.
inline void run_environments(int ranks, const Variables& variables,
                             const std::function<void(Environment&, int)>& body) {
  comm::run_ranks(ranks, [&](comm::Communicator& communicator) {
    communicator.set_timeout(20);
    Variables all = variables;
    all.try_emplace("MLSL_TIMEOUT", "20");
    all.try_emplace("MLSL_HEAP_SIZE_GB", "0.001");
    Environment environment(given(all));
    environment.init(communicator);
    body(environment, communicator.rank());
    environment.finalize();
  });
}

inline float value(int rank, size_t i, int round) {
  return static_cast<float>((rank + 1) * 1000 + static_cast<int>(i) * 7 + round);
}

inline Floats values(int rank, size_t count, int round) {
  Floats all;
  for (size_t i = 0; i < count; ++i) all.push_back(value(rank, i, round));
  return all;
}

}  // namespace tutti::mlsl
