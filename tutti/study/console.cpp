#include "tutti/study/console.h"

#include <fmt/format.h>

#include <cstdio>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/base/own_file.h"

namespace tutti::study {
namespace {

constexpr size_t kLastLines = 6;
constexpr std::string_view kErrorMark = "tutti: ";  // start of every error line, docs/errors.md

}  // namespace

Console::Console(const std::string& path, std::string label)
    : path_(path), file_(output_stream(path, std::ios::app)), label_(std::move(label)) {}

void Console::take(std::string_view bytes) {
  if (file_.is_open() && !(file_ << bytes << std::flush)) {
    log::warn("{}: cannot be written, is the disk full? The run goes on without it", path_);
    file_.close();
  }
  for (const char c : bytes)
    if (c == '\n')
      line();
    else if (c != '\r')
      text_ += c;
}

void Console::end() {
  if (!text_.empty()) line();
}

void Console::line() {
  if (!label_.empty()) {
    std::fputs(fmt::format("{} | {}\n", label_, text_).c_str(), stderr);
    std::fflush(stderr);
  }
  if (error_.empty() && text_.starts_with(kErrorMark)) error_ = text_.substr(kErrorMark.size());
  if (!text_.empty()) last_spoken_ = text_;
  last_.push_back(std::move(text_));
  if (last_.size() > kLastLines) last_.pop_front();
  text_.clear();
}

}  // namespace tutti::study
