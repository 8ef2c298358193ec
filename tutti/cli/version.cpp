#include "tutti/cli/version.h"

#include <fmt/format.h>

#include "tutti/backend/cpu/version.h"
#include "tutti/cli/git_hash.h"
#include "tutti/comm/mpi/session.h"

namespace tutti {

std::string version_short() { return fmt::format("{} ({})", TUTTI_VERSION, kGitHash); }

std::string version_text() {
  return fmt::format(
      "tutti {}\n"
      "compiler   {}, -march={}\n"
      "MPI        {}\n"
      "oneDNN     {} ({})\n"
      "enabled    CPU (fp32, bf16), OpenMP, MPI\n"
      "not built  CUDA, NCCL",
      version_short(), TUTTI_COMPILER, TUTTI_MARCH, comm::MpiSession::library_version(),
      onednn_version(), onednn_effective_isa());
}

}  // namespace tutti
