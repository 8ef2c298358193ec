#include "tutti/comm/transport/mpi/wire_choice.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "tutti/base/error.h"
#include "tutti/base/process_state.h"
#include "tutti/comm/transport/mpi/mpi_call.h"
#include "tutti/comm/transport/mpi/timed_call.h"

namespace tutti::comm {
namespace {

// Returns "tcp" of "btl_tcp_latency" for "btl_"; empty for other variables.
std::string_view component(std::string_view variable, std::string_view framework) {
  if (!variable.starts_with(framework)) return {};
  variable.remove_prefix(framework.size());
  return variable.substr(0, variable.find('_'));
}

}  // namespace

bool sends_over_tcp(const std::vector<std::string>& variables) {
  bool ob1 = false, tcp = false;
  for (const std::string& variable : variables) {
    const std::string_view pml = component(variable, "pml_"), btl = component(variable, "btl_");
    if (!pml.empty() && pml != "base" && pml != "ob1") return false;
    constexpr std::array kInsideAHost{"base", "self", "vader", "sm", "smcuda"};
    if (!btl.empty() && btl != "tcp" && std::ranges::find(kInsideAHost, btl) == kInsideAHost.end())
      return false;
    ob1 |= pml == "ob1";
    tcp |= btl == "tcp";
  }
  return ob1 && tcp;
}

std::optional<std::vector<std::string>> variable_names(int thread_level) {
  int provided = 0, count = 0;
  if (MPI_T_init_thread(thread_level, &provided) != MPI_SUCCESS) return std::nullopt;
  std::vector<std::string> names;
  MPI_T_cvar_get_num(&count);
  for (int i = 0; i < count; ++i) {
    std::array<char, 256> name{};
    int length = static_cast<int>(name.size()), verbosity = 0, about = 0, bind = 0, scope = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_T_enum values = MPI_T_ENUM_NULL;
    // An error means that the variable's component is not in use.
    if (MPI_T_cvar_get_info(i, name.data(), &length, &verbosity, &type, &values, nullptr, &about,
                            &bind, &scope) == MPI_SUCCESS)
      names.emplace_back(name.data());
  }
  MPI_T_finalize();
  return names;
}

WireKind choose_wire(WireKind asked, MPI_Comm comm, const std::string& who, double timeout) {
  const std::string mine = fmt::format("{}{}", static_cast<int>(asked), host_name());
  const std::vector<std::string> all = gather_texts(mine, comm, who, timeout);
  bool one_host = true;
  for (size_t p = 0; p < all.size(); ++p) {
    if (all[p][0] != all[0][0])
      throw CommError(fmt::format(
          "{}: ranks 0 and {} ask for different wires (comm.wire, TUTTI_COMM_WIRE)", who, p));
    one_host &= all[p] == all[0];
  }
  if (asked != WireKind::automatic) return asked;
  if (one_host) return WireKind::mpi;
  // Open MPI needs 0.2 s to report its transport, so it is asked only where the answer counts.
  // Open MPI 4.1 takes the level requested here for the level of MPI itself.
  int level = MPI_THREAD_SINGLE;
  MPI_CALL(MPI_Query_thread(&level));
  const auto variables = variable_names(level);
  const std::string found = variables && sends_over_tcp(*variables) ? "tcp" : "";
  const std::vector<std::string> finds = gather_texts(found, comm, who, timeout);
  return std::ranges::find(finds, "") == finds.end() ? WireKind::tcp : WireKind::mpi;
}

}  // namespace tutti::comm
