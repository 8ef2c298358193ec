#include "tutti/keep/run_folder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/comm/control/agree.h"
#include "tutti/keep/checkpoint.h"
#include "tutti/keep/rank_file.h"
#include "tutti/trace/record.h"

namespace tutti::keep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCheckpoints = "checkpoints";
constexpr const char* kLink = "latest";
constexpr const char* kLockFile = "run.lock";
constexpr std::string_view kOwn = "{output_dir}/";  // in checkpoint.dir: the run's own folder

/// Ends each member with a zero byte, which no path holds. Not JSON: a path need not be UTF-8.
std::string place_text(const RunPlace& place) {
  std::string text;
  for (const std::string& part : {place.directory, place.checkpoints, place.resume, place.checksum,
                                  place.run_id, std::string(place.goes_on ? "goes on" : "")})
    text += part + '\0';
  return text;
}

RunPlace from_text(std::string_view text) {
  const auto next = [&] {
    const size_t end = text.find('\0');
    CHECK(end != text.npos, "the place of a run was cut");
    const std::string part(text.substr(0, end));
    text.remove_prefix(end + 1);
    return part;
  };
  // Braces evaluate from left to right.
  return {.directory = next(),
          .checkpoints = next(),
          .resume = next(),
          .checksum = next(),
          .run_id = next(),
          .goes_on = !next().empty()};
}

void make_folder(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) refuse_output_folder(folder, failed.message());
}

/// Returns the number of a folder called 0001, 0002, ...; 0 for any other name.
int number_of(const fs::path& folder) {
  const std::string name = folder.filename().string();
  const bool digits = name.size() >= 4 && name.size() <= 9 &&
                      std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
  return digits ? std::stoi(name) : 0;
}

int greatest_number(const fs::path& base) {
  int greatest = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(base, none))
    greatest = std::max(greatest, number_of(entry.path()));
  return greatest;
}

fs::path numbered(const fs::path& base, int number) { return base / fmt::format("{:04}", number); }

/// Makes the next numbered folder. Two runs that start at once get different folders.
fs::path make_numbered(const fs::path& base) {
  make_folder(base);
  for (int number = greatest_number(base) + 1;; ++number) {
    const fs::path folder = numbered(base, number);
    std::error_code failed;
    if (fs::create_directory(folder, failed)) return folder;
    if (failed) make_folder(folder);  // throws with the reason
  }
}

/// Points base/latest at a numbered folder.
void point_link(const fs::path& folder) {
  const fs::path link = folder.parent_path() / kLink;
  std::error_code failed;
  if (fs::exists(fs::symlink_status(link, failed)) && !fs::is_symlink(link, failed)) {
    log::warn("'{}' is no link: it stays as it is and does not lead to the newest run",
              link.string());
    return;
  }
  const fs::path made =
      link.parent_path() / fmt::format(".{}.{}", kLink, folder.filename().string());
  fs::remove(made, failed);
  fs::create_directory_symlink(folder.filename(), made, failed);
  if (!failed) fs::rename(made, link, failed);
  if (failed) log::warn("{}: cannot be made: {}", link.string(), failed.message());
}

/// Returns the newest numbered folder: the link's target, else the greatest number.
std::optional<fs::path> newest_numbered(const fs::path& base) {
  std::error_code none;
  const fs::path target = fs::read_symlink(base / kLink, none);
  if (!none && number_of(target) > 0 && fs::is_directory(base / target.filename(), none))
    return base / target.filename();
  if (fs::is_directory(fs::symlink_status(base / kLink, none)))
    return base / kLink;  // a folder from a version without numbers
  const int greatest = greatest_number(base);
  return greatest > 0 ? std::optional(numbered(base, greatest)) : std::nullopt;
}

/// Returns the run folder that a path of --resume means: X for X, X/checkpoints and
/// X/checkpoints/step_N, where X holds a record.
std::optional<fs::path> run_of(const fs::path& resume) {
  std::error_code none;
  fs::path at = fs::exists(resume, none) ? fs::canonical(resume, none) : resume;
  if (none) at = resume;
  for (int up = 0; up < 3 && !at.empty(); ++up, at = at.parent_path())
    if (fs::exists(at / trace::kRecordFile, none)) {
      const fs::path near = fs::proximate(at, none);
      return none || near.native().starts_with("..") ? at : near;
    }
  return std::nullopt;
}

bool within(const fs::path& path, const fs::path& folder) {
  const auto plain = [](const fs::path& given) {
    std::error_code none;
    const fs::path whole = fs::weakly_canonical(fs::absolute(given, none), none);
    return whole.has_filename() ? whole : whole.parent_path();  // "runs/", not yet made
  };
  const fs::path a = plain(path), b = plain(folder);
  return std::mismatch(b.begin(), b.end(), a.begin(), a.end()).first == b.end();
}

/// Renames a folder to the first free name among NAME.1, NAME.2, ... A link of that name stays and
/// leads to a new folder in the old one's place, unless only the link can be renamed.
fs::path set_aside(const fs::path& folder) {
  std::error_code failed;
  const fs::path given = folder.filename().empty() ? folder.parent_path() : folder;  // "runs/a/"
  fs::path name = fs::is_symlink(given, failed) ? fs::canonical(given, failed) : given;
  for (int number = 1;; ++number) {
    const fs::path target = fmt::format("{}.{}", name.string(), number);
    if (fs::exists(fs::symlink_status(target, failed))) continue;
    fs::rename(name, target, failed);
    if (failed && name != given)
      name = given, number = 0;
    else if (failed)
      throw IoError(
          fmt::format("--fresh: '{}' cannot be renamed to '{}': {}; move it yourself, or "
                      "choose another --output-dir",
                      name.string(), target.string(), failed.message()));
    if (failed) continue;
    if (name != given) make_folder(name);
    return target;
  }
}

/// Returns the newest valid checkpoint of a run; none if it has not written any. A run never starts
/// anew because all are damaged.
std::string latest_of(const fs::path& checkpoints, std::span<const fs::path> damaged) {
  if (const auto found = find_latest_valid(checkpoints, damaged)) return found->string();
  std::vector<std::string> names;
  for (const fs::path& checkpoint : list_checkpoints(checkpoints))
    names.push_back(checkpoint.filename().string());
  if (!names.empty())
    throw IoError(fmt::format(
        "--resume: no checkpoint in '{}' is valid ({}: the log says what is wrong with each); "
        "restore one from a copy, or begin anew with --fresh instead of --resume, which sets this "
        "run aside",
        checkpoints.string(), fmt::join(names, ", ")));
  return "";
}

bool is_latest(const RunFolderRequest& request) { return request.resume == kLink; }

/// Returns the folder that a request names or means; none where a numbered one must be made.
std::optional<fs::path> named_folder(const RunFolderRequest& request) {
  if (request.fresh && !request.resume.empty())
    throw ConfigError("--fresh begins a new run and --resume continues one: give one of the two");
  if (!request.output_dir.empty()) return request.output_dir;
  if (is_latest(request)) return newest_numbered(request.base);
  if (!request.resume.empty()) return run_of(request.resume);
  return std::nullopt;
}

fs::path checkpoints_of(const RunFolderRequest& request, const fs::path& directory) {
  if (request.checkpoints.empty()) return directory / kCheckpoints;
  if (!request.checkpoints.starts_with(kOwn)) return request.checkpoints;
  return directory / request.checkpoints.substr(kOwn.size());
}

/// --fresh sets a folder of checkpoints aside as a whole, which would move all runs inside it.
void refuse_run_in_checkpoints(const RunFolderRequest& request, const fs::path& directory) {
  const fs::path checkpoints = checkpoints_of(request, directory);
  if (!within(directory, checkpoints) || within(checkpoints, directory)) return;
  throw ConfigError(
      fmt::format("the output folder '{}' lies in that of its checkpoints, checkpoint.dir = '{}': "
                  "choose a checkpoint.dir of its own for this run, or leave the key out",
                  directory.string(), checkpoints.string()));
}

/// A run that begins among the runs of a study would be taken for one of them.
void refuse_study(const RunFolderRequest& request, const fs::path& directory) {
  std::error_code none;
  if (!fs::exists(directory / trace::kStudyLockFile, none) ||
      holds_run(directory, checkpoints_of(request, directory)))
    return;
  throw ConfigError(fmt::format("'{}' holds a study: choose another --output-dir for this run",
                                directory.string()));
}

/// Chooses the checkpoint to resume from. `damaged` lists those found damaged before.
void choose_resume(const RunFolderRequest& request, std::span<const fs::path> damaged,
                   RunPlace& place) {
  if (is_latest(request)) {
    place.resume = latest_of(place.checkpoints, damaged);
    check_whose_checkpoint(place);
    if (place.resume.empty())
      log::info("no checkpoint in '{}' yet: the run begins at its first step", place.checkpoints);
  } else if (!request.resume.empty()) {
    const fs::path from = checkpoint_at(request.resume, "--resume", damaged);
    if (place.goes_on && !within(from, place.checkpoints))
      throw ConfigError(
          fmt::format("--resume: '{}' is of another run than the one in '{}'; choose "
                      "another --output-dir, or set that run aside first",
                      from.string(), place.directory));
    place.resume = from.string();
  }
  if (!place.resume.empty()) place.checksum = manifest_checksum(place.resume);
}

/// Returns the place of a run that begins or continues in a folder. `used`: a run exists there.
RunPlace place_in(const fs::path& directory, const RunFolderRequest& request, bool used) {
  if (used && request.resume.empty())
    throw HoldsRun(
        fmt::format("'{}' holds a run: continue it with --resume, set it aside with "
                    "--fresh, or choose another --output-dir",
                    directory.string()));
  RunPlace place{
      .directory = directory.string(),
      .checkpoints = checkpoints_of(request, directory).string(),
      .run_id = used ? trace::read_run_id((directory / trace::kRecordFile).string()) : "",
      .goes_on = used};
  choose_resume(request, {}, place);
  if (place.run_id.empty()) place.run_id = trace::make_run_id(trace::unix_now());
  return place;
}

/// Returns the damage in the ranks' files, each verified by one rank; empty: none. Collective. A
/// rank that does not see the checkpoint reports that later, in open_resume().
std::string find_damage(comm::Communicator& communicator, const RunPlace& place) {
  try {
    comm::on_each(communicator, "verifying the checkpoint", [&] {
      if (std::error_code none;
          fs::exists(place.resume, none) && manifest_checksum(place.resume) == place.checksum)
        verify_rank_files(place.resume, rank_files_of(place.resume), communicator.rank(),
                          communicator.size());
    });
    return "";
  } catch (const IntactFileError&) {
    throw;
  } catch (const IoError& error) {
    return error.what();
  }
}

}  // namespace

void refuse_output_folder(const fs::path& folder, const std::string& reason) {
  std::error_code gone;
  (void)fs::current_path(gone);
  if (gone && folder.is_relative())
    throw IoError("the working folder no longer exists: change to one that does");
  throw IoError(fmt::format("cannot make the output folder '{}': {}", folder.string(), reason));
}

RunFolderRequest run_folder_request(const config::RunConfig& config, bool fresh) {
  return {.output_dir = config.run.output_dir,
          .checkpoints = config.checkpoint.dir,
          .resume = config.checkpoint.resume,
          .fresh = fresh};
}

std::string folder_of_config(const fs::path& file) {
  std::error_code none;
  const fs::path folder = file.parent_path();
  if (file.filename() != kConfigFile || !fs::exists(folder / trace::kRecordFile, none)) return "";
  const fs::path last = folder.filename();
  // Setting a folder aside needs a name of its own.
  return last.empty() || last == "." || last == ".." ? fs::canonical(folder / ".").string()
                                                     : folder.string();
}

std::string own_checkpoints(const std::string& dir, const RunPlace& place) {
  if (dir.empty() || dir.starts_with(kOwn) || !within(dir, place.directory)) return dir;
  return std::string(kOwn) + fs::proximate(dir, place.directory).string();
}

bool holds_run(const fs::path& directory, const fs::path& checkpoints) {
  std::error_code none;  // an empty record: the disk was full when a run began
  const auto bytes = fs::file_size(directory / trace::kRecordFile, none);
  return (!none && bytes > 0) || !list_checkpoints(checkpoints).empty();
}

RunPlace preview_run_folder(const RunFolderRequest& request) {
  const fs::path directory =
      named_folder(request).value_or(numbered(request.base, greatest_number(request.base) + 1));
  refuse_run_in_checkpoints(request, directory);
  refuse_study(request, directory);
  return place_in(directory, request,
                  !request.fresh && holds_run(directory, checkpoints_of(request, directory)));
}

void remove_unused(const RunPlace& place) {
  for (const fs::path folder : {place.checkpoints, place.directory}) {
    std::error_code unlike;
    fs::directory_iterator first(folder, unlike);
    const fs::directory_iterator end;
    if (first == end || first->path().filename() != kLockFile || ++first != end) continue;
    // A process that has the lock's file open notices that it is gone, and makes another.
    fs::remove(folder / kLockFile, unlike);
    // A folder with a chosen name may have been made for the run, with rights and stripes.
    if (number_of(folder) > 0 && fs::remove(folder, unlike))
      fs::remove(folder.parent_path() / kLink, unlike);  // the greatest number is used then
  }
}

FolderLock lock_run(const fs::path& folder, double patience) {
  return {folder,
          {.file = kLockFile,
           .holder = "a run",
           .other_way = "choose another --output-dir",
           .patience = patience}};
}

RunPlace take_run_folder(const RunFolderRequest& request, std::vector<FolderLock>& locks) {
  const std::optional<fs::path> named = named_folder(request);
  // Check before a folder is made: one for a mistyped path would be left empty.
  if (!named && !request.resume.empty() && !is_latest(request))
    (void)checkpoint_at(request.resume, "--resume");
  refuse_run_in_checkpoints(request, named.value_or(numbered(request.base, 1)));
  if (named) refuse_study(request, *named);
  const fs::path directory = named ? *named : make_numbered(request.base);
  const fs::path checkpoints = checkpoints_of(request, directory);
  make_folder(directory);
  const bool apart = !request.checkpoints.empty() && !within(checkpoints, directory);
  const auto take = [&] {
    locks.clear();
    const double patience = request.resume.empty() ? 0 : request.patience;
    make_folder(directory);
    locks.push_back(lock_run(directory, patience));
    if (!apart) return;
    make_folder(checkpoints);
    locks.push_back(lock_run(checkpoints, patience));
  };
  take();
  remove_leftovers(checkpoints);  // first: it restores a checkpoint that a kill left set aside
  bool used = holds_run(directory, checkpoints);
  if (used && request.fresh) {
    log::info("the run in '{}' is set aside as '{}'", directory.string(),
              set_aside(directory).string());
    std::error_code none;
    if (apart && fs::exists(checkpoints, none)) set_aside(checkpoints);
    take();
    used = false;
  }
  const RunPlace place = place_in(directory, request, used);
  if (request.output_dir.empty() && number_of(directory) > 0) point_link(directory);
  return place;
}

RunFolder::RunFolder(comm::Communicator& communicator, const RunFolderRequest& request)
    : place_(from_text(comm::decide(communicator, "opening the run's folder", [&] {
        return place_text(take_run_folder(request, locks_));
      }))) {
  // The ranks' own files are too much for rank 0 to verify.
  std::vector<fs::path> damaged;
  while (!place_.resume.empty()) {
    const std::string damage = find_damage(communicator, place_);
    if (damage.empty()) return;
    damaged.emplace_back(place_.resume);
    place_ = from_text(comm::decide(communicator, "choosing an earlier checkpoint", [&] {
      log::warn("checkpoint {} is damaged and will not be used: {}",
                damaged.back().filename().string(), damage);
      RunPlace place = place_;
      choose_resume(request, damaged, place);
      if (place.resume == damaged.back()) throw IoError(damage);  // it was requested by name
      return place_text(place);
    }));
  }
}

}  // namespace tutti::keep
