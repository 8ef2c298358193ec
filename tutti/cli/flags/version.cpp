#include "tutti/cli/flags/version.h"

#include <fmt/format.h>

#include "tutti/backend/cpu/onednn/version.h"
#include "tutti/base/json.h"
#include "tutti/cli/flags/git_hash.h"
#include "tutti/comm/transport/mpi/session.h"

namespace tutti::cli {

std::string version_short() { return fmt::format("{} ({})", TUTTI_VERSION, kGitHash); }

BuildFacts build_facts() {
  return {
      .git = kGitHash,
      .compiler = fmt::format("{}, -march={}", TUTTI_COMPILER, TUTTI_MARCH),
      .mpi = comm::MpiSession::library_version(),
      .onednn = fmt::format("{} ({})", backend::onednn_version(), backend::onednn_effective_isa())};
}

std::string device_text() {
  return "CPU (fp32, bf16); NVIDIA GPUs by libtutti_cuda.so, where that was built; emulated";
}

std::string version_text() {
  const BuildFacts facts = build_facts();
  return fmt::format(
      "tutti {}\n"
      "compiler   {}\n"
      "MPI        {}\n"
      "oneDNN     {}\n"
      "devices    {}",
      version_short(), facts.compiler, facts.mpi, facts.onednn, device_text());
}

std::string version_json() {
  const BuildFacts facts = build_facts();
  return print_json({{"version", TUTTI_VERSION},
                     {"git", facts.git},
                     {"compiler", facts.compiler},
                     {"mpi", facts.mpi},
                     {"onednn", facts.onednn},
                     {"devices", device_text()}},
                    2);
}

}  // namespace tutti::cli
