#include "tutti/keep/checkpoint_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "tutti/base/error.h"
#include "tutti/base/file_calls.h"
#include "tutti/base/log.h"
#include "tutti/keep/checkpoint.h"
#include "tutti/keep/manifest.h"

namespace tutti::keep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step_";
constexpr const char* kAbandoned = ".abandoned";  ///< ends the name of a checkpoint that was left

/// Splits ".step_0000008.partial-4711" into "step_0000008" and "partial"; returns two empty parts
/// for any other name.
std::pair<std::string_view, std::string_view> split_hidden(std::string_view name) {
  if (!name.starts_with('.')) return {};
  name.remove_prefix(1);
  const size_t dot = name.find('.'), dash = name.find('-', dot == name.npos ? 0 : dot);
  if (dot == name.npos || dash == name.npos) return {};
  return {name.substr(0, dot), name.substr(dot + 1, dash - dot - 1)};
}

/// A kill between the two renames of give_name() leaves a step's earlier checkpoint under its
/// hidden name only. Returns whether `hidden` was such a checkpoint and has its name again.
bool put_back(const fs::path& hidden) {
  const std::string name = hidden.filename().string();
  const auto [of, why] = split_hidden(name);
  if (why != kReplaced || !is_checkpoint_name(of)) return false;
  const fs::path checkpoint = hidden.parent_path() / of;
  std::error_code error;
  if (fs::exists(checkpoint, error)) return false;
  if (!error) fs::rename(hidden, checkpoint, error);
  if (error) {
    log::warn("{}: cannot be renamed to {}: {}", hidden.string(), of, error.message());
    return true;  // nothing else holds that step
  }
  log::info("'{}' is whole: a killed run was about to replace it", checkpoint.string());
  return true;
}

int64_t serial_of(const fs::path& checkpoint) {
  try {
    return read_manifest(checkpoint / kManifest).serial;
  } catch (const IntactFileError&) {
    return kSerialUnknown;
  } catch (const IoError&) {
    return kSerialDamaged;
  }
}

[[noreturn]] void fail_to_list(const fs::path& directory, const std::error_code& error) {
  throw IntactFileError(
      fmt::format("{}: cannot be listed: {}", directory.string(), file_error(error.value())));
}

void remove_checkpoint(const fs::path& checkpoint) {
  std::error_code error;
  const fs::path hidden = hidden_name(
      checkpoint, kRemoved);  // so that a crash leaves no incomplete one under a valid name
  fs::rename(checkpoint, hidden, error);
  if (!error) fs::remove_all(hidden, error);
  if (error)
    log::warn("{}: an old checkpoint cannot be removed: {}", checkpoint.string(), error.message());
}

/// Returns the first of step_N.abandoned, step_N.abandoned-2 and so on that does not exist.
fs::path abandoned_name(const fs::path& checkpoint) {
  std::error_code none;
  for (int n = 1;; ++n) {
    fs::path name = checkpoint;
    name += n == 1 ? kAbandoned : fmt::format("{}-{}", kAbandoned, n);
    if (!fs::exists(name, none)) return name;
  }
}

}  // namespace

bool is_checkpoint_name(std::string_view name) {
  return name.starts_with(kPrefix) && name.size() > kPrefix.size() &&
         std::ranges::all_of(name.substr(kPrefix.size()),
                             [](char c) { return c >= '0' && c <= '9'; });
}

fs::path checkpoint_of_step(const fs::path& directory, int64_t step) {
  return directory / fmt::format("{}{:07}", kPrefix, step);
}

fs::path hidden_name(const fs::path& checkpoint, std::string_view why) {
  return checkpoint.parent_path() /
         fmt::format(".{}.{}-{}", checkpoint.filename().string(), why, unique_ending());
}

void give_name(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return;
  const int refusal = errno;
  if (std::error_code none; fs::exists(fs::symlink_status(to, none))) {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return;
    const fs::path aside = hidden_name(to, kReplaced);  // a file system without exchange: two steps
    if (::rename(to.c_str(), aside.c_str()) == 0) {
      std::error_code ignored;
      if (::rename(from.c_str(), to.c_str()) == 0) {
        fs::remove_all(aside, ignored);
        return;
      }
      fs::rename(aside, to, ignored);  // otherwise remove_leftovers() does it
    }
  }
  throw IoError(fmt::format("{}: cannot be renamed to {}: {}", from.string(),
                            to.filename().string(), file_error(refusal)));
}

std::vector<FoundCheckpoint> find_checkpoints(const fs::path& directory) {
  std::vector<FoundCheckpoint> found;
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory)
    return found;
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!is_checkpoint_name(name)) continue;
    if (entry->is_directory(error))
      found.push_back(
          {serial_of(entry->path()), std::stoll(name.substr(kPrefix.size(), 18)), entry->path()});
    if (error == std::errc::no_such_file_or_directory ||
        error == std::errc::too_many_symbolic_link_levels)
      error.clear();  // a dead link, or a checkpoint that was removed meanwhile
    if (error) break;
  }
  if (error) fail_to_list(directory, error);
  const auto refused = std::ranges::partition(
      found, [](const FoundCheckpoint& f) { return f.serial != kSerialUnknown; });
  std::vector<FoundCheckpoint> unknown(refused.begin(), refused.end());
  found.erase(refused.begin(), refused.end());
  std::ranges::sort(found, std::ranges::greater{},
                    [](const FoundCheckpoint& f) { return std::pair(f.serial, f.step); });
  std::ranges::sort(unknown, {}, &FoundCheckpoint::step);
  for (FoundCheckpoint& one : unknown)
    found.insert(
        std::ranges::find_if(found, [&](const FoundCheckpoint& f) { return f.step < one.step; }),
        std::move(one));
  return found;
}

std::string name_in(const fs::path& file) {
  const std::string text = read_text(file);
  return text.substr(0, text.find('\n'));
}

fs::path best_of(const fs::path& directory) {
  std::error_code none;
  const fs::path best = directory / kBest;
  if (fs::is_regular_file(fs::symlink_status(best, none))) {
    const fs::path named = fs::path(name_in(best)).filename();
    return named.empty() ? fs::path() : directory / named;
  }
  const fs::path target = fs::read_symlink(best, none);
  return none ? fs::path() : directory / target.filename();
}

void mark_best(const fs::path& checkpoint) {
  const fs::path link = checkpoint.parent_path() / kBest, partial = hidden_name(link, kPartial);
  std::error_code error, ignored;
  fs::create_directory_symlink(checkpoint.filename(), partial, error);
  if (!error) fs::rename(partial, link, error);
  if (!error) return sync_directory(link.parent_path());
  fs::remove(partial, ignored);
  replace_file(link, checkpoint.filename().string() + "\n");
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true))
    log::warn("{}: cannot be made a link ({}): it is a file with the name of the checkpoint",
              link.string(), error.message());
}

void prune_checkpoints(const fs::path& directory, int keep) {
  const fs::path best = best_of(directory);
  std::vector<FoundCheckpoint> known = find_checkpoints(directory);
  std::erase_if(known, [](const FoundCheckpoint& f) { return f.serial == kSerialUnknown; });
  for (size_t i = static_cast<size_t>(keep); i < known.size(); ++i)
    if (known[i].path != best) remove_checkpoint(known[i].path);
}

void remove_leftovers(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    const auto [of, why] = split_hidden(name);
    if ((is_checkpoint_name(of) || of == kLatest || of == kBest) &&
        (why == kPartial || why == kRemoved || why == kReplaced))
      leftovers.push_back(entry.path());
  }
  for (const fs::path& leftover : leftovers) {
    if (put_back(leftover)) continue;
    fs::remove_all(leftover, error);
    if (!error) log::debug("removed '{}', which a killed run left", leftover.string());
  }
}

void set_aside_after(const fs::path& directory, const fs::path& from, int64_t step) {
  const fs::path best = best_of(directory), start = checkpoint_of_step(directory, step);
  const auto rename = [&](const fs::path& checkpoint, const fs::path& to) {
    give_name(checkpoint, to);
    if (checkpoint.filename() == best.filename()) mark_best(to);
  };
  const auto set_aside = [&](const fs::path& left) {
    const fs::path aside = abandoned_name(left);
    rename(left, aside);
    log::warn("checkpoint {} is of a course that was left by this resume: it is {} now",
              left.filename().string(), aside.filename().string());
  };
  std::error_code elsewhere;
  if (is_abandoned(from) && fs::equivalent(from, directory / from.filename(), elsewhere)) {
    if (fs::exists(start, elsewhere)) set_aside(start);
    rename(from, start);
    log::info("{} is {} again", from.filename().string(), start.filename().string());
  }
  // This comes before the others, so that a kill at any moment leaves this checkpoint as the newest
  // in the folder.
  if (fs::exists(start, elsewhere))
    replace_file(directory / kLatest, start.filename().string() + "\n");
  for (const FoundCheckpoint& found : find_checkpoints(directory))
    if (found.step > step) set_aside(found.path);
}

bool is_abandoned(const fs::path& checkpoint) {
  return checkpoint.filename().string().find(kAbandoned) != std::string::npos;
}

}  // namespace tutti::keep
