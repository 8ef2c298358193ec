// Reads a list of files to fetch.

#include <algorithm>
#include <cerrno>
#include <sstream>

#include "tutti/base/error.h"
#include "tutti/data/file/text_file.h"
#include "tutti/data/store/fetch.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

bool is_sha256(const std::string& word) {
  return word.size() == 64 && word.find_first_not_of("0123456789abcdefABCDEF") == word.npos;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos;
}

std::string name_in(const std::string& url) {
  const std::string path = url.substr(0, url.find_first_of("?#"));
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

std::vector<FetchItem> read_url_list(const fs::path& list) {
  const auto text = read_small_text(list, {.expected = "a list of URLs"});
  if (!text)
    throw IoError(fmt::format("{}: cannot be read: {}; give a data set's name, or a list of URLs",
                              list.string(), file_error(errno)));
  std::istringstream lines(*text);
  std::vector<FetchItem> items;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find(" #")));
    FetchItem item;
    if (!(words >> item.url) || item.url.starts_with('#')) continue;
    for (std::string word; words >> word;)
      (is_sha256(word) && item.sha256.empty() ? item.sha256 : item.name) = word;
    if (item.name.empty()) item.name = name_in(item.url);
    const auto refuse = [&](const std::string& why) {
      throw IoError(
          fmt::format("{}:{}: {}; a line is: URL [SHA256] [NAME]", list.string(), number, why));
    };
    if (item.url.find("://") == item.url.npos) refuse(fmt::format("'{}' is no URL", item.url));
    if (!is_plain_name(item.name)) refuse(fmt::format("'{}' is no file's name", item.name));
    if (std::ranges::find(items, item.name, &FetchItem::name) != items.end())
      refuse(fmt::format("'{}' comes twice", item.name));
    items.push_back(std::move(item));
  }
  if (items.empty()) throw IoError(fmt::format("{}: holds no URL", list.string()));
  return items;
}

}  // namespace tutti::data
