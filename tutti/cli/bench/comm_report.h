#pragma once
// Formats the results of `tutti bench comm`: columns as in nccl-tests or in OSU's micro-benchmarks,
// and JSON.

#include <string>
#include <vector>

#include "tutti/base/json_forward.h"
#include "tutti/cli/bench/comm_bench.h"

namespace tutti::cli {

enum class CommColumns { nccl, osu };

/// Returns the lines above the rows, with the units, without an end of line.
std::string comm_header(CommColumns columns, const CommBenchOptions& options);
/// Returns one row. nccl: size, count, type, redop, algorithm, time, algorithm and bus bandwidth,
/// wrong elements, a time for each peer, and with overlap the part that is hidden. osu: size;
/// average, least and most of the ranks' means; iterations.
std::string comm_line(CommColumns columns, const CommBenchOptions& options, const CommBenchRow& row,
                      int ranks);

/// Returns the bytes/s over a link in the row's collective.
double bus_bandwidth(comm::Collective kind, const CommBenchRow& row, int ranks);

/// Returns the lines below all rows in nccl's columns, as in nccl-tests: how many elements were
/// wrong, and the mean of the rows' bus bandwidths.
std::string comm_footer(const CommBenchOptions& options, size_t wrong,
                        const std::vector<double>& bus_bandwidths);

/// Returns a row as JSON. A peer's key is its name in small letters followed by _us.
Json comm_json(const CommBenchOptions& options, const CommBenchRow& row, int ranks);

}  // namespace tutti::cli
