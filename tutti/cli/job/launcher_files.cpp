#include "tutti/cli/job/launcher_files.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>

#include "tutti/base/number.h"
#include "tutti/base/process_state.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;

bool is_own(const fs::path& path, mode_t kind) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && (status.st_mode & S_IFMT) == kind &&
         status.st_uid == geteuid();
}

/// Returns a variable's value from an environment whose entries end with zero bytes.
std::string value_in(const std::string& environment, const std::string& name) {
  const std::string wanted = '\0' + name + '=';
  const size_t at = ('\0' + environment).find(wanted);
  if (at == std::string::npos) return "";
  const size_t begin = at + wanted.size() - 1, end = environment.find('\0', begin);
  return environment.substr(begin, end == std::string::npos ? end : end - begin);
}

/// Returns whether a name is vader_segment.HOST.UID.JOB.RANK, or without UID, as before 4.1.
bool is_of_job(std::string_view name, std::string_view job) {
  const size_t rank = name.rfind('.');
  return name.starts_with("vader_segment.") && rank != name.npos &&
         name.substr(0, rank).ends_with(fmt::format(".{}", job));
}

}  // namespace

std::optional<LauncherFiles> parse_launcher_files(const std::string& environment, pid_t launcher) {
  const fs::path session = value_in(environment, "PMIX_SERVER_TMPDIR");
  const std::string folder = session.filename().string();
  if (folder.starts_with("prterun.") &&
      folder.ends_with(fmt::format(".{}.{}", launcher, geteuid())))
    return LauncherFiles{session, ""};
  uint32_t job = 0;
  if (!read_number(value_in(environment, "PMIX_NAMESPACE"), job) || job == 0 ||
      folder != fmt::format("pid.{}", launcher) ||
      !session.parent_path().filename().string().starts_with("ompi."))
    return std::nullopt;
  return LauncherFiles{session, fmt::format("{:x}", job)};
}

std::optional<LauncherFiles> files_of_launcher(pid_t rank, pid_t launcher) {
  std::ifstream file(fmt::format("/proc/{}/environ", rank), std::ios::binary);
  return parse_launcher_files(std::string(std::istreambuf_iterator<char>(file), {}), launcher);
}

void remove_launcher_files(const LauncherFiles& files, const fs::path& memory) noexcept {
  try {
    std::error_code ignored;
    if (is_own(files.session, S_IFDIR)) fs::remove_all(files.session, ignored);
    if (files.job.empty()) return;
    for (const auto& entry : fs::directory_iterator(memory, ignored))
      if (is_of_job(entry.path().filename().string(), files.job) && is_own(entry.path(), S_IFREG))
        ::unlink(entry.path().c_str());
  } catch (const std::exception&) {
    // A file that stays takes some space, but does no harm.
  }
}

void remove_old_session(pid_t process, fs::path temporary) noexcept {
  try {
    for (const char* name : {"TMPDIR", "TEMP", "TMP"})
      if (const char* value = std::getenv(name); value != nullptr && temporary.empty())
        temporary = value;
    if (temporary.empty()) temporary = "/tmp";
    const std::string host = host_name();
    const fs::path session =
        temporary /
        fmt::format("prterun.{}.{}.{}", host.substr(0, host.find('.')), process, geteuid());
    std::error_code ignored;
    if (is_own(session, S_IFDIR)) fs::remove_all(session, ignored);
  } catch (const std::exception&) {
    // The launcher then reports what is in its way.
  }
}

}  // namespace tutti::cli
