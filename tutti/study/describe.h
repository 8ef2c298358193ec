#pragma once
// Describes a study in sentences: what was run, how, and on which machine. For the page's header,
// the terminal and study.json.

#include <string>
#include <utility>
#include <vector>

#include "tutti/study/report.h"

namespace tutti::study {

/// Returns "0.605 [0.032, 11.4]": a ratio and its 90 % interval, whose sides are not equally long.
std::string number(const Ratio& ratio);
/// Returns "10.00 ±0.63": a mean and half of its 90 % interval, which is symmetric.
std::string number(const Spread& spread);
/// Returns about four digits, or "-" for an unmeasured number.
std::string number(double value);
std::string percent(double share);

/// Returns text like "test accuracy ≥ 0.9".
std::string target_words(const trace::Target& target, const std::string& judge);

using Facts = std::vector<std::pair<std::string, std::string>>;  ///< heading, sentence
/// Returns how it scales, batch and learning rate per size, target, runs.
Facts header_facts(const StudyResult& result, const ReportText& text);
/// Returns program, libraries, machine, hosts, binding, dates, command.
Facts provenance(const StudyResult& result, const ReportText& text);

/// Whether some run ended without reaching the target.
bool missed_target(const StudyResult& result);
/// Returns what could be done about that, one sentence each.
std::vector<std::string> advice(const StudyResult& result, const Configuration& settings);

}  // namespace tutti::study
