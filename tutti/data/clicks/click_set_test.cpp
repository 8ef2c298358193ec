#include "tutti/data/clicks/click_set.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/data/clicks/click_line.h"
#include "tutti/data/file/file_bytes.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

/// Returns a Criteo line with this label, numbers 0 ... 12 and categories of one name.
std::string criteo_line(int label, const std::string& category = "68fd1e64") {
  std::string line = std::to_string(label);
  for (int i = 0; i < 13; ++i) line += fmt::format("\t{}", i);
  for (int i = 0; i < 26; ++i) line += "\t" + category;
  return line + "\n";
}

struct Line {
  std::vector<int32_t> dense, categories;
  int label = 0;
};

Line line_of(const ClickSet& set, int64_t index) {
  Sample sample(set.fields());
  set.read(index, sample);
  const auto numbers = [&](size_t f) {
    const auto* at = static_cast<const int32_t*>(sample.at(f));
    return std::vector<int32_t>(at, at + set.fields()[f].elements());
  };
  return {numbers(0), numbers(2), *static_cast<const uint8_t*>(sample.at(1))};
}

std::string failure(const std::string& text, std::vector<int64_t> rows = {100}) {
  const ScratchDirectory scratch;
  const fs::path file = scratch.write("log.txt", text);
  return message_of<Error>([&] {
    const ClickSet set({.files = {file}, .rows = std::move(rows)});
    for (int64_t i = 0; i < set.size(); ++i) line_of(set, i);
  });
}

TEST(ClickSet, ReadsCriteosLinesInAnyOrder) {
  const ScratchDirectory scratch;
  std::string first, second;
  for (int i = 0; i < 40; ++i) first += criteo_line(i % 3 == 0, fmt::format("{:08x}", i));
  second = criteo_line(1, "") + "0\t-1\t\t2147483647" + std::string(36, '\t');  // no line end
  const ClickSet set(
      {.files = {scratch.write("a", first), scratch.write("b", second)}, .rows = {1 << 20}});
  ASSERT_EQ(set.size(), 42);
  for (const int64_t i : {39, 0, 17, 15, 16}) {
    const Line line = line_of(set, i);
    EXPECT_EQ(line.label, i % 3 == 0);
    EXPECT_EQ(line.dense[12], 12);
    EXPECT_EQ(line.categories[5], category_row(fmt::format("{:08x}", i), 5, 1 << 20));
  }
  EXPECT_EQ(line_of(set, 40).categories, std::vector<int32_t>(26, 0));
  const Line last = line_of(set, 41);
  EXPECT_EQ(last.dense, (std::vector<int32_t>{-1, 0, 2147483647, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(ClickSet, HashedRowsAreThoseOfTheColumnAndTheTable) {
  EXPECT_EQ(category_row("", 3, 10), 0);
  EXPECT_NE(category_row("68fd1e64", 0, 1 << 30), category_row("68fd1e64", 1, 1 << 30));
  for (int i = 0; i < 1000; ++i) {
    const int32_t row = category_row(std::to_string(i), 0, 3);
    EXPECT_TRUE(row == 1 || row == 2) << row;
  }
  EXPECT_EQ(category_row("68fd1e64", 0, 2), 1);
}

TEST(ClickSet, EachCategoryHasItsTable) {
  std::vector<int64_t> rows(26, 2);
  rows[25] = 1 << 20;
  const ScratchDirectory scratch;
  const ClickSet set({.files = {scratch.write("a", criteo_line(1))}, .rows = rows});
  EXPECT_EQ(line_of(set, 0).categories[24], 1);
  EXPECT_GT(line_of(set, 0).categories[25], 1);
  EXPECT_TRUE(has_text(failure(criteo_line(1), {5, 6}), "data.table_rows has 2 numbers"));
}

TEST(ClickSet, WhatIsWrongInALineIsNamed) {
  const std::string good = criteo_line(0);
  EXPECT_EQ(failure(good + good), "no error");
  const auto refuse = [&](const std::string& second, const std::string& part) {
    EXPECT_TRUE(has_text(failure(good + second), part));
  };
  refuse("2" + good.substr(1), "log.txt:2: column 1: expected the label 0 or 1, found '2'");
  refuse("0\t1.5" + good.substr(3),
         "log.txt:2: column 2: expected a whole number of 32 bits, or nothing, found '1.5'");
  refuse("0\t4294967296" + good.substr(3), "found '4294967296'");
  refuse(good.substr(0, 20), "log.txt:2: expected 40 columns, found ");
  refuse("\n" + good, "log.txt:2: the line is empty");
  refuse(good.substr(0, good.size() - 1) + "\tmore\n", "found 41");
}

TEST(ClickSet, WhatIsNoClickLogIsRefusedWhenItIsOpened) {
  EXPECT_TRUE(has_text(failure(""), "is empty"));
  EXPECT_TRUE(has_text(failure("\x1f\x8b\x08"), "a gzip file"));
  EXPECT_TRUE(has_text(failure(std::string("L\0a\0b\0e\0l\0", 10)), "iconv -f UTF-16"));
  EXPECT_TRUE(has_text(failure("hello\n"), "the first line has 1 column between commas"));
  EXPECT_TRUE(has_text(failure(criteo_line(0).substr(2)), "Kaggle's test.txt"));
  EXPECT_TRUE(has_text(failure("Id,I1,C1\n1,2,3\n"), "expected one column 'label' or 'click'"));
  EXPECT_TRUE(has_text(failure("label,C1\n1,3\n"), "names 0 numbers"));
  EXPECT_TRUE(has_text(failure("label,I1,C1\n"), "no line but the header"));
  EXPECT_TRUE(has_text(failure(criteo_line(0) + std::string(1 << 17, 'x')), "line 2 is longer"));
  EXPECT_TRUE(has_text(failure(std::string(1 << 17, '\n')), "the first line has 1 column"));
  const ScratchDirectory scratch;
  const fs::path a = scratch.write("a", criteo_line(0));
  const fs::path b = scratch.write("b", "label,I1,C1\n0,1,x\n");
  const auto refuse = [&](const fs::path& second, const std::string& part) {
    EXPECT_TRUE(throws<Error>({part}, [&] { ClickSet set({.files = {a, second}}); })) << part;
  };
  refuse(b, "do not belong together");
  refuse(scratch.path() / "none", "none");
}

TEST(ClickSet, LinesToPredictNeedNoLabel) {
  const ScratchDirectory scratch;
  const std::string with = criteo_line(1), without = with.substr(with.find('\t') + 1);
  const auto file = scratch.write("bare", without);
  EXPECT_TRUE(throws<Error>({"39 columns", "`tutti infer --input`"},
                            [&] { ClickSet set({.files = {file}}); }));
  const ClickSet bare({.files = {file}, .labels = ClickLabels::may_be_missing});
  const ClickSet whole({.files = {scratch.write("whole", with)}});
  EXPECT_EQ(line_of(bare, 0).dense, line_of(whole, 0).dense);
  EXPECT_EQ(line_of(bare, 0).categories, line_of(whole, 0).categories);
  EXPECT_EQ(line_of(bare, 0).label, 0);
  const ClickSet named({.files = {scratch.write("named", "id,hour,site\n7,14102100,a\n")},
                        .labels = ClickLabels::may_be_missing});
  EXPECT_EQ(named.size(), 1);
  EXPECT_EQ(named.place(0).second, 2);
}

/// Logs as pandas, Excel and editors leave them give the same samples.
TEST(ClickSet, WhatProgramsMakeOfALog) {
  const ScratchDirectory scratch;
  std::string plain, floats = "Label,", quoted, names = "\"Label\"";
  for (int i = 0; i < 39; ++i)
    names += fmt::format(",\"{}{}\"", i < 13 ? 'I' : 'C', i < 13 ? i + 1 : i - 12);
  floats = names + "\n";
  quoted = names + "\r\n";
  for (int line = 0; line < 20; ++line) {
    plain += fmt::format("{}", line % 2);
    floats += fmt::format("{}.0", line % 2);
    quoted += fmt::format("\"{}\"", line % 2);
    for (int i = 0; i < 39; ++i) {
      const std::string text = i == 3   ? ""
                               : i < 13 ? std::to_string(1000 * line + i)
                                        : fmt::format("a{}, \"b\"", i);
      plain += "\t" + text;
      floats += i == 3   ? ","
                : i < 13 ? fmt::format(",{}.0", text)
                         : fmt::format(",\"a{}, \"\"b\"\"\"", i);
      quoted += i < 13 ? fmt::format(",\"{}\"", text) : fmt::format(",\"a{}, \"\"b\"\"\"", i);
    }
    plain += "\n", floats += "\n", quoted += "\r\n";
  }
  const std::string mark = "\xef\xbb\xbf";
  std::string semicolons = names + "\n";
  std::ranges::replace(semicolons, ',', ';');
  for (const char c : plain) semicolons += c == '\t' ? ';' : c;
  const ClickSet wanted({.files = {scratch.write("plain", plain)}});
  ASSERT_EQ(wanted.size(), 20);
  const std::vector<std::pair<std::string, std::string>> logs = {{"marked", mark + plain},
                                                                 {"blank ends", plain + "\n\r\n\n"},
                                                                 {"floats", floats},
                                                                 {"quoted", mark + quoted + "\r\n"},
                                                                 {"semicolons", semicolons}};
  for (const auto& [name, text] : logs) {
    const ClickSet set({.files = {scratch.write(name, text)}});
    ASSERT_EQ(set.size(), 20) << name;
    for (const int64_t i : {0, 15, 16, 19}) {
      EXPECT_EQ(line_of(set, i).dense, line_of(wanted, i).dense) << name;
      EXPECT_EQ(line_of(set, i).categories, line_of(wanted, i).categories) << name;
      EXPECT_EQ(line_of(set, i).label, i % 2) << name;
    }
  }
  ClickVocabulary::of_logs({scratch.path() / "quoted"}, 1, {1}).write(scratch.path() / "words");
  EXPECT_EQ(ClickVocabulary::read(scratch.path() / "words").row(0, "a13, \"b\""), 1);
  EXPECT_TRUE(has_text(failure(mark + "\n"), "the first line has 1 column"));
  EXPECT_TRUE(has_text(failure("label,hour,C1\n1,14102100.0,x\n1,1410210.0,x\n"),
                       "log.txt:3: column 2: expected an hour"));
}

TEST(ClickSet, AFileThatShrinksIsAnError) {
  const ScratchDirectory scratch;
  const fs::path file = scratch.write("log.txt", criteo_line(0) + criteo_line(1));
  const ClickSet set({.files = {file}});
  fs::resize_file(file, 10);
  EXPECT_TRUE(throws<Error>({"log.txt"}, [&] { line_of(set, 1); }));
}

TEST(ClickSet, AvazusHourIsANumber) {
  const ScratchDirectory scratch;
  const ClickSet set(
      {.files = {scratch.write("avazu",
                               "id,click,hour,C1,banner_pos,site_id\r\n"
                               "1000009418151094273,1,14102123,1005,0,1fbe01fe\r\n")}});
  const Line line = line_of(set, 0);
  EXPECT_EQ(line.label, 1);
  EXPECT_EQ(line.dense, (std::vector<int32_t>{23}));
  EXPECT_EQ(line.categories,
            (std::vector<int32_t>{category_row("1005", 0, 100'000), category_row("0", 1, 100'000),
                                  category_row("1fbe01fe", 2, 100'000)}));
  EXPECT_TRUE(has_text(failure("click,hour,C1\n1,14102124,5\n"),
                       "log.txt:2: column 2: expected an hour as YYMMDDHH, found '14102124'"));
}

TEST(ClickSet, ColumnsMayHoldBags) {
  const ScratchDirectory scratch;
  const std::string head = "label,I1,C1,C2\n";
  const ClickSet set({.files = {scratch.write("bags", head + "1,5,a|b,x\n0,6,,y\n1,7,c|a|b,a|b\n")},
                      .rows = {100},
                      .bags = {3, 1}});
  EXPECT_EQ(set.fields()[2].bags, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(set.fields()[2].rows, (std::vector<int64_t>{100, 100, 100, 100}));
  const auto row = [](const char* text, int64_t column) { return category_row(text, column, 100); };
  using Rows = std::vector<int32_t>;
  EXPECT_EQ(line_of(set, 0).categories, (Rows{row("a", 0), row("b", 0), -1, row("x", 1)}));
  EXPECT_EQ(line_of(set, 1).categories, (Rows{-1, -1, -1, row("y", 1)}));
  EXPECT_EQ(line_of(set, 2).categories,
            (Rows{row("c", 0), row("a", 0), row("b", 0), row("a|b", 1)}));
  const ClickSet short_ones({.files = {scratch.path() / "bags"}, .bags = {2, 1}});
  EXPECT_TRUE(throws<Error>(
      {"bags:4: column 3: expected 2 categories at most (data.bag_length), found 'c|a|b'"},
      [&] { line_of(short_ones, 2); }));
}

TEST(ClickSet, CategoriesOfBagsMayBeWeighted) {
  const ScratchDirectory scratch;
  const ClickSet set({.files = {scratch.write("w", "label,I1,C1\n1,5,a:0.5|b\n1,5,a:|b\n")},
                      .rows = {100},
                      .bags = {3},
                      .weighted = true});
  ASSERT_EQ(set.fields().size(), 4u);
  Sample sample(set.fields());
  set.read(0, sample);
  const auto* rows = static_cast<const int32_t*>(sample.at(2));
  const auto* weights = static_cast<const float*>(sample.at(3));
  EXPECT_EQ((std::vector<int32_t>(rows, rows + 3)),
            (std::vector<int32_t>{category_row("a", 0, 100), category_row("b", 0, 100), -1}));
  EXPECT_EQ((std::vector<float>(weights, weights + 3)), (std::vector<float>{0.5f, 1, 0}));
  EXPECT_TRUE(throws<Error>({"w:3: column 3: expected a category, ':' and its weight, found 'a:'"},
                            [&] { set.read(1, sample); }));
}

TEST(ClickSet, AVocabularyGivesEachCategoryARow) {
  const ScratchDirectory scratch;
  const fs::path log =
      scratch.write("log", "label,I1,C1,C2\n1,5,b|a,x\n0,6,a|c,y\n1,7,a,y\n1,7,b,\n0,1,d|b,z\n");
  const fs::path file = scratch.path() / "vocabulary.txt";
  ClickVocabulary::of_logs({log}, 2, {2, 1}).write(file);
  const ClickVocabulary known = ClickVocabulary::read(file);
  ASSERT_EQ(known.columns(), 2u);
  EXPECT_EQ(known.rows(0), 3) << "a and b";
  EXPECT_EQ(known.rows(1), 2) << "y";
  EXPECT_EQ(known.row(0, "a"), 1);
  EXPECT_EQ(known.row(0, "b"), 2);
  EXPECT_EQ(known.row(0, "c"), 0);
  const fs::path weighted = scratch.write("weighted", "label,I1,C1\n1,5,a:1|b:2\n1,5,a:2\n");
  EXPECT_EQ(ClickVocabulary::of_logs({weighted}, 2, {2}, true).rows(0), 2)
      << "a, whatever it weighs";
  const ClickSet set({.files = {log}, .bags = {2, 1}, .vocabulary = file});
  EXPECT_EQ(set.fields()[2].rows, (std::vector<int64_t>{3, 3, 2}));
  EXPECT_EQ(line_of(set, 0).categories, (std::vector<int32_t>{2, 1, 0}));
  EXPECT_EQ(line_of(set, 1).categories, (std::vector<int32_t>{1, 0, 1}));
  EXPECT_EQ(line_of(set, 3).categories, (std::vector<int32_t>{2, -1, 0}));
  EXPECT_TRUE(throws<Error>({"`tutti data vocabulary`"}, [&] {
    ClickSet set({.files = {log}, .vocabulary = scratch.path() / "no"});
  }));
  const ClickVocabulary copied = ClickVocabulary::read(scratch.write(
      "copied", "\xef\xbb\xbftutti click vocabulary 1\r\ncolumn 2\r\na\r\nb\r\ncolumn 0\r\n"));
  EXPECT_EQ(copied.columns(), 2u);
  EXPECT_EQ(copied.row(0, "b"), 2);
  const auto refuse = [](const fs::path& path, const std::string& part) {
    EXPECT_TRUE(throws<Error>({part}, [&] { ClickVocabulary::read(path); })) << path;
  };
  refuse(scratch.write("cut", "tutti click vocabulary 1\ncolumn 2\na\n"),
         "cut:4: expected a category");
  refuse(log, "log:1: expected 'tutti click");
  refuse(scratch.write("lfs", "version https://git-lfs.github.com/spec/v1\noid a\n"),
         "git lfs pull");
  refuse(scratch.path(), "found a folder");
  refuse(scratch.write("later", "tutti click vocabulary 2\n"), "another version of Tutti");
}

#ifdef TUTTI_TEST_DATA
TEST(ClickSet, ReadsRealLogs) {
  const fs::path logs = fs::path(TUTTI_TEST_DATA) / "clicklogs";
  const ClickSet criteo({.files = {logs / "criteo_kaggle_train.tiny.csv"}});
  ASSERT_EQ(criteo.size(), 1999);
  int64_t clicked = 0;
  for (int64_t i = 0; i < criteo.size(); ++i) clicked += line_of(criteo, i).label;
  EXPECT_EQ(clicked, 418);
  const Line first = line_of(criteo, 0);
  EXPECT_EQ(first.dense, (std::vector<int32_t>{1, 1, 5, 0, 1382, 4, 15, 2, 181, 1, 2, 0, 2}));
  EXPECT_EQ(first.categories[0], category_row("68fd1e64", 0, 100'000));
  EXPECT_EQ(first.categories[21], 0);
  const ClickSet avazu({.files = {logs / "avazu_sample.txt"}});
  ASSERT_EQ(avazu.size(), 100);
  EXPECT_EQ(avazu.fields()[2].elements(), 21);
  clicked = 0;
  for (int64_t i = 0; i < avazu.size(); ++i) clicked += line_of(avazu, i).label;
  EXPECT_EQ(clicked, 20);
}
#endif

/// Reads a file as a shell's <(...) provides it.
ClickVocabulary vocabulary_of_pipe(const std::string& content) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  EXPECT_EQ(::write(ends[1], content.data(), content.size()), std::ssize(content));
  ::close(ends[1]);
  const std::string name = fmt::format("/dev/fd/{}", ends[0]);
  try {
    ClickVocabulary read = ClickVocabulary::read(name);
    ::close(ends[0]);
    return read;
  } catch (...) {
    ::close(ends[0]);
    throw;
  }
}

TEST(ClickVocabulary, APipeOfAShellIsRead) {
  std::string text = "tutti click vocabulary 1\ncolumn 4000\n";
  for (int i = 0; i < 4000; ++i) text += fmt::format("w{}\n", i);
  EXPECT_EQ(vocabulary_of_pipe(text).row(0, "w3999"), 4000);
  EXPECT_EQ(vocabulary_of_pipe("tutti click vocabulary 1\ncolumn 1\na\n").row(0, "a"), 1);
  EXPECT_TRUE(throws<Error>({":1: expected 'tutti click"}, [] { vocabulary_of_pipe(""); }));
  EXPECT_TRUE(throws<Error>({"expected a vocabulary of clicks, found a page of the web"},
                            [] { vocabulary_of_pipe("<!DOCTYPE html><html>"); }));
}

TEST(ClickVocabulary, WhatIsNoFileIsNotWaitedFor) {
  const ScratchDirectory scratch;
  const std::filesystem::path pipe = scratch.path() / "pipe",
                              sparse = scratch.write("sparse", std::string("x"));
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ASSERT_EQ(::truncate(sparse.c_str(), off_t{1} << 40), 0);
  EXPECT_TRUE(throws<Error>({"pipe: expected a vocabulary, found a pipe (FIFO)"},
                            [&] { ClickVocabulary::read(pipe); }));
  EXPECT_TRUE(throws<Error>({"sparse: expected a vocabulary, found 1099511627776 bytes"},
                            [&] { ClickVocabulary::read(sparse); }));
  EXPECT_TRUE(throws<Error>({"pipe: expected a file, found a pipe (FIFO)"},
                            [&] { ClickVocabulary::of_logs({pipe}, 1, {1}, false); }));
}

}  // namespace
}  // namespace tutti::data
