#include "tutti/mlsl/entry.h"

#include <cstdio>
#include <cstdlib>

namespace tutti::mlsl {

Environment& process_environment() {
  static Environment& environment =
      *std::make_unique<Environment>([](const char* name) -> const char* {
         return std::getenv(name);
       }).release();
  return environment;
}

void report(const std::exception& error) noexcept {
  std::fprintf(stderr, "MLSL:%s %s\n", process_environment().who().c_str(), error.what());
  std::fflush(stderr);
}

void end_job(const std::exception& error) noexcept {
  report(error);
  comm::MpiSession::end_job(1);
  std::_Exit(1);
}

}  // namespace tutti::mlsl
