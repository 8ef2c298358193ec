#include "tutti/study/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/study/collect.h"
#include "tutti/study/describe.h"
#include "tutti/study/html.h"
#include "tutti/study/page.h"
#include "tutti/trace/csv.h"

namespace tutti::study {
namespace {

namespace fs = std::filesystem;

fs::path plain_path(const std::string& directory) {
  const fs::path path = fs::absolute(directory.empty() ? "." : directory).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

void name_studies(std::vector<ComparedStudy>& studies) {
  for (ComparedStudy& study : studies) study.name = plain_path(study.directory).filename().string();
  for (ComparedStudy& study : studies)
    if (std::ranges::count(studies, study.name, &ComparedStudy::name) > 1)
      for (const std::string name = study.name; ComparedStudy & other : studies)
        if (other.name == name) other.name = other.directory;
}

const ScaleRow* first_used(const StudyResult& result) {
  const auto row = std::ranges::find_if(result.rows, [](const ScaleRow& r) { return r.runs > 0; });
  return row == result.rows.end() ? nullptr : &*row;
}

/// Describes the network, how the study scales, and the target.
std::string study_words(const StudyResult& result) {
  std::string text = result.title.empty() ? "no run is usable" : result.title;
  if (const ScaleRow* row = first_used(result)) {
    if (result.mode == "weak")
      text += fmt::format("; weak scaling, {} samples a rank and step", row->local_batch);
    else if (result.mode == "strong")
      text += fmt::format("; strong scaling, {} samples a step in all", row->global_batch);
    else
      text += result.mode != "one size" ? "; scaling is mixed"
              : result.rows.size() == 1 ? "; one number of ranks"
                                        : "";
  }
  return text + (result.target ? "; target " + target_words(*result.target, result.judge)
                               : "; without a target");
}

std::set<std::string> machines(const std::vector<ComparedStudy>& studies) {
  std::set<std::string> all;
  for (const ComparedStudy& study : studies)
    for (const RunSummary& run : study.result.runs)
      if (run.usable() && !run.log.start.machine.empty()) all.insert(run.log.start.machine);
  return all;
}

Facts comparison_facts(const std::vector<ComparedStudy>& studies, const ReportText& text) {
  Facts facts;
  for (const ComparedStudy& study : studies)
    facts.emplace_back(study.name, study_words(study.result));
  for (const std::string& machine : machines(studies)) facts.emplace_back("Machine", machine);
  if (!text.made.empty()) facts.emplace_back("Made", text.made);
  if (!text.command.empty()) facts.emplace_back("Command", text.command);
  return facts;
}

/// `notes_of` selects the notes of a study.
template <class NotesOf>
std::vector<std::string> comparison_notes(const std::vector<ComparedStudy>& studies,
                                          NotesOf notes_of) {
  std::vector<std::string> notes;
  if (machines(studies).size() > 1)
    notes.emplace_back(
        "The studies are of different machines: how they scale may be compared, their times may "
        "not.");
  for (const ComparedStudy& study : studies)
    for (const std::string& note : notes_of(study.result))
      notes.push_back(fmt::format("{}: {}", study.name, note));
  return notes;
}

/// Returns links to each study's report, if it lies beside this one.
std::string links_html(const std::vector<ComparedStudy>& studies, const ReportText& text) {
  std::string html = "<ul>\n";
  for (const ComparedStudy& study : studies) {
    const std::string path = relative_path(plain_path(study.directory).string() + "/report.html",
                                           plain_path(text.directory).string());
    html += fmt::format("<li>{}: <a href=\"{}\">its own report</a></li>\n", escaped(study.name),
                        link_target(path));
  }
  return html + "</ul>\n";
}

Json comparison_content(const std::vector<ComparedStudy>& studies, const ReportText& text) {
  Json json = {{"schema", 1},
               {"title", text.title},
               {"made", text.made},
               {"command", text.command},
               {"notes", comparison_notes(studies, all_notes)},
               {"studies", Json::array()}};
  for (const ComparedStudy& study : studies) {
    Json one = parse_json(json_report(
        study.result,
        {.title = study.result.title, .made = text.made, .directory = study.directory}));
    one["name"] = study.name;
    one["directory"] = study.directory;
    json["studies"].push_back(std::move(one));
  }
  return json;
}

/// Keeps the columns that fit on a terminal.
TextTable narrow_table(const TextTable& table) {
  const auto narrow = [](const std::vector<std::string>& cells) {
    return std::vector<std::string>{cells[0], cells[1], cells[4], cells[6], cells[7], cells[8]};
  };
  TextTable out{narrow(table.headings), {}};
  for (const auto& row : table.rows) out.rows.push_back(narrow(row));
  return out;
}

}  // namespace

std::vector<ComparedStudy> read_studies(const ComparisonFlags& flags) {
  if (flags.directories.size() < 2)
    throw ConfigError("--compare needs the folders of two studies or more, separated by commas");
  std::set<fs::path> seen;
  std::vector<ComparedStudy> studies;
  for (const std::string& directory : flags.directories) {
    if (!seen.insert(plain_path(directory)).second)
      throw ConfigError(fmt::format("--compare names the folder {} twice", directory));
    StudyResult result = evaluate(collect_directory(directory), std::nullopt);
    note_configurations(result, flags.read_resolved, flags.change_rule);
    studies.push_back({.name = "", .directory = directory, .result = std::move(result)});
  }
  name_studies(studies);
  return studies;
}

TextTable comparison_table(const std::vector<ComparedStudy>& studies) {
  TextTable table{{"study", "ranks", "runs", "seconds an epoch", "parallel speed-up", "efficiency",
                   "seconds to target", "epochs", "learning speed-up", "efficiency"},
                  {}};
  for (const ComparedStudy& study : studies) {
    const TextTable speed = speed_table(study.result), learning = learning_table(study.result);
    for (size_t i = 0; i < speed.rows.size(); ++i) {
      const auto &fast = speed.rows[i], &soon = learning.rows[i];
      table.rows.push_back({study.name, fast[0], fast[1], fast[5], fast[6], fast[7], soon[1],
                            soon[2], soon[4], soon[5]});
    }
  }
  return table;
}

std::string comparison_json(const std::vector<ComparedStudy>& studies, const ReportText& text) {
  return print_json(comparison_content(studies, text), 1) + '\n';
}

std::string comparison_csv(const std::vector<ComparedStudy>& studies) {
  std::string text;
  for (const ComparedStudy& study : studies) {
    const std::string rows = rows_csv(study.result);
    const size_t heading = rows.find('\n') + 1;
    if (text.empty()) text = "study," + rows.substr(0, heading);
    for (size_t at = heading; at < rows.size();) {
      const size_t end = rows.find('\n', at) + 1;
      text += trace::csv_cell(study.name) + "," + rows.substr(at, end - at);
      at = end;
    }
  }
  return text;
}

std::string comparison_html(const std::vector<ComparedStudy>& studies, const ReportText& text) {
  Json content = comparison_content(studies, text);
  for (Json& study : content["studies"]) study.erase("runs");  // the page draws sizes only
  return filled(studies_frame(),
                {{"title", escaped(text.title)},
                 {"style", std::string(page_style())},
                 {"facts", definitions(comparison_facts(studies, text))},
                 {"notes", notes_html(comparison_notes(studies, all_notes))},
                 {"table", html_table(comparison_table(studies))},
                 {"links", links_html(studies, text)},
                 {"data", script_safe(print_json(content, 1))},
                 {"chart_js", std::string(chart_js())},
                 {"svg", std::string(page_svg())},
                 {"draw", std::string(page_draw())},
                 {"script", std::string(page_places()) + std::string(page_figures()) +
                                std::string(studies_script())}});
}

void show_finished(ComparisonFlags flags) {
  std::erase_if(flags.directories, [](const std::string& directory) {
    return std::ranges::none_of(study_runs(directory),
                                [](const RunFolder& folder) { return is_finished(folder.path); });
  });
  if (flags.directories.size() < 2) return;
  fmt::print(stderr, "Finished so far\n{}\n",
             aligned(narrow_table(comparison_table(read_studies(flags)))));
}

int compare_studies(const ComparisonFlags& flags) {
  const std::vector<ComparedStudy> studies = read_studies(flags);
  const ReportText text{.title = fmt::format("{} scaling studies", studies.size()),
                        .command = flags.command,
                        .made = trace::iso_time(trace::unix_now()),
                        .directory = flags.output_dir};
  std::error_code failed;
  fs::create_directories(flags.output_dir, failed);
  if (failed)
    throw IoError(fmt::format("cannot make the folder {}: {}; choose another --output-dir",
                              flags.output_dir, failed.message()));
  std::string shown;
  if (flags.json) {
    shown = comparison_json(studies, text);
  } else {
    for (const ComparedStudy& study : studies)
      shown += wrapped(fmt::format("{}: {}", study.name, study_words(study.result)), 98);
    for (const ComparedStudy& study : studies)
      for (const std::string& note : study.result.disturbances)
        shown += wrapped(fmt::format("{}: {}", study.name, note), 98);
    shown += '\n' + aligned(narrow_table(comparison_table(studies)));
    const auto others = [](const StudyResult& result) { return result.notes; };
    for (const std::string& note : comparison_notes(studies, others)) shown += wrapped(note, 98);
  }
  std::fputs(shown.c_str(), stdout);
  std::fflush(stdout);
  const auto write = [&](const char* name, const std::string& content) {
    write_report_file(flags.output_dir + "/" + name, content, "the same command makes it");
  };
  write("studies.csv", comparison_csv(studies));
  write("studies.json", comparison_json(studies, text));
  write("studies.html", comparison_html(studies, text));
  if (!flags.json)
    fmt::print(
        "\n{}/studies.html shows the curves beside each other; studies.csv and studies.json "
        "have the numbers\n",
        flags.output_dir);
  return 0;
}

}  // namespace tutti::study
