#pragma once
// A study in sentences: what was run, how, and on what. For the page's header, the terminal and
// study.json.

#include <string>
#include <utility>
#include <vector>

#include "tutti/study/report.h"

namespace tutti::study {

/// "0.605 [0.032, 11.4]": a ratio and its 90 % interval, whose sides are not equally long.
std::string number(const Ratio& ratio);
/// "10.00 ±0.63": a mean and half of its 90 % interval, which is symmetric.
std::string number(const Spread& spread);
/// About four digits, or "-" for what was not measured.
std::string number(double value);
std::string percent(double share);

/// "test accuracy ≥ 0.9"
std::string target_words(const Target& target, const std::string& judge);

using Facts = std::vector<std::pair<std::string, std::string>>;  ///< what, sentence
/// How it scales, batch and learning rate per size, target, runs.
Facts header_facts(const StudyResult& result, const ReportText& text);
/// Program, libraries, machine, hosts, binding, dates, command.
Facts provenance(const StudyResult& result, const ReportText& text);

/// Whether some run ran to its end without reaching the target.
bool missed_target(const StudyResult& result);
/// What could be done about it, one sentence each.
std::vector<std::string> advice(const StudyResult& result, const Configuration& settings);

}  // namespace tutti::study
