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
  const std::string line = "MLSL:" + process_environment().who() + " " + error.what() + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);  // one call keeps it apart from other ranks'
  std::fflush(stderr);
}

void end_job(const std::exception& error) noexcept {
  report(error);
  comm::MpiSession::end_job(1);
  std::_Exit(1);
}

}  // namespace tutti::mlsl
