#include "tutti/cli/job/selection_file.h"

#include <fmt/format.h>

#include <utility>

#include "tutti/base/error.h"
#include "tutti/cli/config/config_paths.h"
#include "tutti/comm/control/agree.h"
#include "tutti/data/file/text_file.h"

namespace tutti::cli {
namespace {

std::string table_text(const std::string& path) {
  require_path("comm.selection", path);
  if (auto text = data::read_small_text(path, {.expected = "a table of algorithms"}))
    return std::move(*text);
  throw IoError(fmt::format("cannot read the table of algorithms '{}' (comm.selection)", path));
}

comm::Selection parse(const std::string& text, const std::string& path) {
  return comm::Selection::parse(text, path).before(comm::Selection());
}

}  // namespace

comm::Selection read_selection(const std::string& path) {
  return path.empty() ? comm::Selection() : parse(table_text(path), path);
}

void use_selection(comm::Communicator& communicator, const std::string& path) {
  if (path.empty()) return;
  const std::string text = comm::decide(communicator, fmt::format("reading '{}'", path),
                                        [&] { return table_text(path); });
  communicator.planner().set_selection(parse(text, path));
}

}  // namespace tutti::cli
