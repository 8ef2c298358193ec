#include "tutti/study/html.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/base/error.h"

namespace tutti::study {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  return out;
}

std::string link_target(std::string_view path) {
  constexpr std::string_view kPlain = "-._~/";  // besides letters and digits, as in RFC 3986
  std::string out = path.starts_with('/') ? "" : "./";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       kPlain.find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return out;
}

std::string script_safe(const std::string& json) {
  std::string out;
  for (const char c : json) out += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return out;
}

std::string html_table(const TextTable& table, const std::vector<std::string>& last) {
  std::string html =
      "<p class=\"more\">The table scrolls sideways →</p><div class=\"scroll\"><table><thead><tr>";
  for (const std::string& heading : table.headings)
    html += "<th scope=\"col\">" + escaped(heading) + "</th>";
  html += "</tr></thead><tbody>\n";
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const auto& row = table.rows[r];
    html += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      const bool muted = row[i] == "-" || row[i] == "not reached";
      if (i == 0)
        html += "<th scope=\"row\">" + escaped(row[i]) + "</th>";
      else if (i + 1 == row.size() && r < last.size())
        html += "<td class=\"text\">" + last[r] + "</td>";
      else
        html += fmt::format("<td{}>{}</td>", muted ? " class=\"muted\"" : "", escaped(row[i]));
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string definitions(const Facts& facts) {
  std::string html = "<dl>\n";
  for (const auto& [what, value] : facts)
    html += "<dt>" + escaped(what) + "</dt><dd>" + escaped(value) + "</dd>\n";
  return html + "</dl>\n";
}

std::string notes_html(const std::vector<std::string>& notes) {
  if (notes.empty()) return "";
  std::string html = "<section class=\"notes\"><h2>Before you believe the numbers</h2><ul>\n";
  for (const std::string& note : notes) html += "<li>" + escaped(note) + "</li>\n";
  return html + "</ul></section>\n";
}

std::string section(const std::string& heading, const std::string& body, const char* below) {
  return fmt::format("<section><h2>{}</h2>\n{}<p class=\"hint\">{}</p></section>\n", heading, body,
                     below);
}

std::string filled(std::string_view frame, const PageValues& values) {
  std::string html;
  for (size_t at = 0; at < frame.size();) {
    const size_t open = frame.find("{{", at), close = frame.find("}}", open);
    html += frame.substr(at, open - at);
    if (open == std::string_view::npos) break;
    const std::string_view name = frame.substr(open + 2, close - open - 2);
    const auto value = std::ranges::find_if(values, [&](const auto& v) { return v.first == name; });
    CHECK(value != values.end(), "the page's frame has no value for {}", name);
    html += value->second;
    at = close + 2;
  }
  return html;
}

}  // namespace tutti::study
