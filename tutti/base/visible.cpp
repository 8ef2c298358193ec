#include "tutti/base/visible.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace tutti {
namespace {

struct Character {
  size_t bytes = 1;
  uint32_t point = 0;
  enum class Kind { whole, cut_off, none } kind = Kind::whole;
};

// Returns the first character of `text`, which is not empty. Overlong forms and surrogates are not
// characters.
Character first_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {1, lead};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4) return {1, 0, Character::Kind::none};
  uint32_t point = lead & (0x7fU >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if (i == text.size()) return {i, 0, Character::Kind::cut_off};
    const uint8_t next = byte(i);
    const bool sound =
        (next & 0xc0) == 0x80 &&
        !(i == 1 && ((lead == 0xe0 && next < 0xa0) || (lead == 0xed && next > 0x9f) ||
                     (lead == 0xf0 && next < 0x90) || (lead == 0xf4 && next > 0x8f)));
    if (!sound) return {1, 0, Character::Kind::none};
    point = point << 6 | (next & 0x3fU);
  }
  return {bytes, point};
}

bool is_obeyed(uint32_t point) {
  if (point == '\n' || point == '\t') return false;
  return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0x61c || point == 0x200e ||
         point == 0x200f || (point >= 0x2028 && point <= 0x202e) ||
         (point >= 0x2066 && point <= 0x2069);
}

bool needs_no_change(std::string_view text) {
  for (const char c : text)
    if (static_cast<uint8_t>(c) >= 0x7f || is_obeyed(static_cast<uint8_t>(c))) return false;
  return true;
}

// Appends the visible form of `text` and returns how much of it was used: a character that its end
// cuts off is left.
size_t append_visible(std::string& out, std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const Character c = first_character(text.substr(at));
    if (c.kind == Character::Kind::cut_off) break;
    const std::string_view bytes = text.substr(at, c.bytes);
    if (c.kind == Character::Kind::whole && !is_obeyed(c.point))
      out += bytes;
    else
      for (const char byte : bytes) out += fmt::format("\\x{:02x}", static_cast<uint8_t>(byte));
    at += c.bytes;
  }
  return at;
}

// One of the standard streams, of which stdio passes pieces that may end within a character. It is
// used until the process has ended, so it owns no memory.
struct Outlet {
  int descriptor;
  std::array<char, 4> kept{};
  size_t kept_bytes = 0;
  bool plain = false;
};

std::atomic<bool> hurried{false};
/// Descriptors whose reader took nothing within the time limit.
std::array<std::atomic<bool>, 3> nobody_takes{};
static_assert(std::atomic<bool>::is_always_lock_free);  // signal handlers write it, too

/// Waits until a descriptor takes bytes or refuses them; false if neither happens in time and
/// output is hurried. Unlike a write that blocks, poll() ends when a signal comes.
bool wait_for_room(int descriptor) {
  constexpr int kTurnMs = 100, kPatienceMs = 2000;
  std::atomic<bool>& given_up = nobody_takes[static_cast<size_t>(std::clamp(descriptor, 0, 2))];
  for (int waited = 0;;) {
    pollfd room{descriptor, POLLOUT, 0};
    const int ready = poll(&room, 1, given_up ? 0 : kTurnMs);
    if (ready > 0 || (ready < 0 && errno != EINTR)) {
      given_up = false;
      return true;
    }
    if (!hurried) continue;
    waited += kTurnMs;
    if (given_up || waited >= kPatienceMs) {
      given_up = true;
      return false;
    }
  }
}

ssize_t write_visible(void* cookie, const char* bytes, size_t count) {
  Outlet& outlet = *static_cast<Outlet*>(cookie);
  const std::string_view given(bytes, count);
  std::string shown;
  std::string_view rest = given;
  if (!outlet.plain && (outlet.kept_bytes > 0 || !needs_no_change(given))) {
    const std::string text =
        std::string(outlet.kept.data(), outlet.kept_bytes) + std::string(given);
    const size_t done = append_visible(shown, text);
    outlet.kept_bytes = text.copy(outlet.kept.data(), outlet.kept.size(), done);
    rest = shown;
  }
  // On failure the stream gets an error, and errno.
  return write_output(outlet.descriptor, rest) ? static_cast<ssize_t>(count) : 0;
}

Outlet output{STDOUT_FILENO}, errors{STDERR_FILENO};
Outlet given_errors{.descriptor = STDERR_FILENO, .plain = true};
std::FILE* plain_stream = nullptr;

// Writes what is left when all output has ended within a character.
void show_what_was_cut_off() {
  for (std::FILE* const stream : {stdout, stderr}) std::fflush(stream);
  for (Outlet* const outlet : {&output, &errors}) {
    const std::string_view kept(outlet->kept.data(), std::exchange(outlet->kept_bytes, 0));
    write_output(outlet->descriptor, outlet->plain ? std::string(kept) : visible(kept));
  }
}

// Makes a stream to use in place of `given`; returns `given` if there is no memory.
std::FILE* stream_to(Outlet& outlet, std::FILE* given, int buffering) {
  std::fflush(given);
  std::FILE* const stream = fopencookie(
      &outlet, "w", {.read = nullptr, .write = write_visible, .seek = nullptr, .close = nullptr});
  if (stream == nullptr) return given;
  std::setvbuf(stream, nullptr, buffering, buffering == _IONBF ? 0 : BUFSIZ);
  return stream;
}

}  // namespace

std::string visible(std::string_view text) {
  if (needs_no_change(text)) return std::string(text);
  std::string out;
  for (const char byte : text.substr(append_visible(out, text)))
    out += fmt::format("\\x{:02x}", static_cast<uint8_t>(byte));
  return out;
}

std::string VisiblePieces::take(std::string_view piece) {
  const std::string text = std::exchange(kept_, {}) + std::string(piece);
  std::string out;
  kept_ = text.substr(append_visible(out, text));
  return out;
}

std::string VisiblePieces::rest() { return visible(std::exchange(kept_, {})); }

std::string with_unicode_escapes(std::string_view text) {
  if (needs_no_change(text)) return std::string(text);
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Character c = first_character(text.substr(at));
    if (c.kind == Character::Kind::whole && is_obeyed(c.point))
      out += fmt::format("\\u{:04x}", c.point);
    else
      out += text.substr(at, c.bytes);
    at += c.bytes;
  }
  return out;
}

void make_output_visible() {
  if (plain_stream != nullptr) return;
  plain_stream = stream_to(given_errors, stderr, _IONBF);
  std::atexit(show_what_was_cut_off);
  stdout = stream_to(output, stdout, isatty(STDOUT_FILENO) != 0 ? _IOLBF : _IOFBF);
  stderr = stream_to(errors, stderr, _IONBF);
}

void keep_bytes_of_output() {
  if (isatty(STDOUT_FILENO) == 0) output.plain = true;
}

std::FILE* plain_errors() { return plain_stream != nullptr ? plain_stream : stderr; }

bool write_output(int descriptor, std::string_view text) {
  struct stat status {};
  const mode_t mode = fstat(descriptor, &status) == 0 ? status.st_mode : 0;
  // A pipe with space takes a page without waiting, a terminal part of a line. A line to a file is
  // one write, so that it stays between lines of other ranks.
  const size_t most = S_ISREG(mode) ? text.size() : S_ISCHR(mode) ? 256 : 4096;
  while (!text.empty()) {
    if (!wait_for_room(descriptor)) return true;
    const ssize_t written = ::write(descriptor, text.data(), std::min(text.size(), most));
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

void hurry_output() noexcept { hurried = true; }

}  // namespace tutti
