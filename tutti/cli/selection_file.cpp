#include "tutti/cli/selection_file.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <span>

#include "tutti/base/error.h"

namespace tutti {
namespace {

std::optional<std::string> read_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Empty: there is no such file, which every rank then says.
comm::Selection parse(const std::optional<std::string>& text, const std::string& path) {
  if (!text)
    throw IoError(fmt::format("cannot read the table of algorithms '{}' (comm.selection)", path));
  return comm::Selection::parse(*text, path).before(comm::Selection());
}

}  // namespace

comm::Selection read_selection(const std::string& path) {
  return path.empty() ? comm::Selection() : parse(read_text(path), path);
}

void use_selection(comm::Communicator& communicator, const std::string& path) {
  if (path.empty()) return;
  std::optional<std::string> text;
  if (communicator.rank() == 0) text = read_text(path);
  int64_t size = text ? static_cast<int64_t>(text->size()) : -1;
  communicator.broadcast_value(size, 0);
  if (size >= 0) {
    if (!text) text.emplace(static_cast<size_t>(size), ' ');
    communicator.broadcast(std::as_writable_bytes(std::span(*text)), 0);
  }
  communicator.set_selection(parse(text, path));
}

}  // namespace tutti
