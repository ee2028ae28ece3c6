// The table for the terminal, Markdown and CSV.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "fixture.hpp"
#include "report/formats.hpp"
#include "report/html.hpp"
#include "report/pivot.hpp"
#include "report/summary.hpp"
#include "report/table.hpp"

namespace rooflash {
namespace {

using testing::Test;

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Table, ShowsEveryStatusAsAWordAndNeverABlank) {
  Record record = fixture::empty_record();
  const Problem p = fixture::problem(DType::bf16, 128, 1024, false);
  const Status all[] = {Status::unsupported, Status::wrong,   Status::failed, Status::oom,
                        Status::crashed,     Status::timeout, Status::not_run};
  for (const Status status : all) {
    record.rows.push_back(
        fixture::failure("k_" + std::string(to_string(status)), p, status, "why"));
  }
  const std::string table = render_table(record, {.width = 300});
  for (const char* word : {"n/s", "WRONG", "FAIL", "OOM", "CRASH", "T/O", "not run"}) {
    EXPECT_TRUE(contains(table, word)) << word << "\n" << table;
  }
  // A kernel without a row for this shape.
  record.rows.push_back(
      fixture::row("other", fixture::problem(DType::bf16, 128, 2048, false), 100, 1, false));
  EXPECT_TRUE(contains(render_table(record, {.width = 300}), " -- "));
}

TEST(Table, SaysSimulatedInTheFirstLineAndInEveryRow) {
  Record record = fixture::sweep_record(true);
  std::erase_if(record.rows, [](const Row& row) { return !row.simulated; });
  const std::vector<std::string> lines = lines_of(render_table(record, {}));
  EXPECT_TRUE(lines.at(0).starts_with("SIMULATED: sim:fixture is a model.")) << lines.at(0);
  int rows = 0;
  for (const std::string& line : lines) {
    if (!contains(line, " us ") && !contains(line, " ms ")) continue;
    ++rows;
    EXPECT_TRUE(line.ends_with(" simulated")) << line;
  }
  EXPECT_EQ(rows, 12);
}

TEST(Table, KeepsToTheWidthByFurtherBlocks) {
  Record record = fixture::empty_record();
  for (const char* kernel : {"k1", "k2", "k3", "k4", "k5"}) {
    record.rows.push_back(
        fixture::row(kernel, fixture::problem(DType::bf16, 128, 1024, true), 100, 1, false));
  }
  for (const int width : {60, 80, 100, 200}) {
    for (const std::string& line :
         lines_of(render_table(record, {.width = width, .ascii = true}))) {
      EXPECT_LE(line.size(), static_cast<std::size_t>(width)) << line;
    }
  }
}

TEST(Table, ColoursOnlyWhenAskedAndAsciiOnlyWhenAsked) {
  const Record record = fixture::sweep_record(true);
  const std::string plain = render_table(record, {.ascii = true});
  EXPECT_TRUE(std::all_of(plain.begin(), plain.end(), [](char c) { return c > 0; }));
  EXPECT_FALSE(contains(plain, "\x1b"));
  std::string coloured = render_table(record, {.color = true, .ascii = true});
  EXPECT_TRUE(contains(coloured, "\x1b["));
  // Without the escape sequences it is the same text.
  for (std::size_t at; (at = coloured.find('\x1b')) != std::string::npos;) {
    coloured.erase(at, coloured.find('m', at) - at + 1);
  }
  std::erase(coloured, ' ');
  std::string squeezed = plain;
  std::erase(squeezed, ' ');
  EXPECT_EQ(coloured, squeezed);
}

TEST(Table, ShowsNoControlCharacterOfTheRecord) {
  const std::string table = render_table(fixture::hostile_record(), {});
  EXPECT_TRUE(std::none_of(table.begin(), table.end(),
                           [](char c) { return (c > 0 && c < 0x20 && c != '\n') || c == 0x7f; }));
}

TEST(Pivot, PutsTheSlowestKernelFirstAndKeepsTheMiddleRound) {
  Record record = fixture::empty_record();
  const Problem p = fixture::problem(DType::bf16, 128, 1024, false);
  for (const double tflops : {300.0, 100.0, 200.0}) {
    record.rows.push_back(fixture::row("aaa", p, tflops, 1, false));
    record.rows.back().round = static_cast<int>(record.rows.size());
  }
  record.rows.push_back(fixture::row("zzz", p, 10, 9, false));
  const Pivot grid = pivot(record);
  ASSERT_EQ(grid.groups.size(), 1U);
  EXPECT_EQ(grid.groups[0].kernels, (std::vector<std::string>{"zzz", "aaa"}));
  const Cell& cell = grid.groups[0].lines.at(0).cells.at(1);
  EXPECT_EQ(cell.rounds, 3);
  EXPECT_EQ(cell.row->derived.tflops, 200.0);
}

TEST(Pivot, ACellShowsTheRoundThatFailed) {
  Record record = fixture::empty_record();
  const Problem p = fixture::problem(DType::bf16, 128, 1024, false);
  record.rows = {fixture::row("fa2", p, 100, 1, false),
                 fixture::failure("fa2", p, Status::crashed, "SIGSEGV")};
  EXPECT_EQ(pivot(record).groups.at(0).lines.at(0).cells.at(0).row->status, Status::crashed);
}

TEST(Pivot, MarksTheSideOfTheRidge) {
  const Record record = fixture::sweep_record(false);
  const Roofs roofs = roofs_of(record, "cuda:0", fixture::kGpu, DType::bf16);
  EXPECT_EQ(roofs.source, "measured");
  EXPECT_EQ(roof_side(roofs, 780e3 / 4284 - 1), 'm');
  EXPECT_EQ(roof_side(roofs, 780e3 / 4284 + 1), 'c');
  EXPECT_EQ(roof_side(roofs, std::nullopt), 0);
  EXPECT_EQ(roofs_of(record, "cuda:7", fixture::kGpu, DType::bf16).source, "datasheet, dense");
  EXPECT_EQ(roofs_of(record, "cuda:7", "another", DType::bf16).source, "");
}

TEST(Summary, ComparesByTheGeometricMeanOfCommonCases) {
  Record record = fixture::empty_record();
  const auto add = [&](const char* kernel, std::int64_t seqlen, double tflops) {
    record.rows.push_back(
        fixture::row(kernel, fixture::problem(DType::bf16, 128, seqlen, false), tflops, 1, false));
  };
  add("naive", 1024, 10);
  add("fa2", 1024, 40);  // 4x
  add("naive", 2048, 10);
  add("fa2", 2048, 90);   // 9x; geometric mean 6x
  add("fa2", 4096, 100);  // alone: not compared
  EXPECT_EQ(summary_sentences(pivot(record)),
            std::vector<std::string>{"fa2 is 6.0x faster than naive (geomean of 2 cases)"});
  // What is implausible or not ok is not ranked.
  record.rows[3].flags = {"implausible"};
  EXPECT_EQ(summary_sentences(pivot(record)),
            std::vector<std::string>{"fa2 is 4.0x faster than naive (geomean of 1 case)"});
  record.rows[1] = fixture::failure("fa2", record.rows[1].problem, Status::wrong, "off");
  EXPECT_TRUE(summary_sentences(pivot(record)).empty());
}

TEST(Summary, SaysWhatQuantisingTakesBesideTheTimes) {
  Record record = fixture::empty_record();
  for (const std::int64_t seqlen : {1024, 2048}) {
    Row row = fixture::row("fp8", fixture::problem(DType::e4m3, 128, seqlen, false), 300, 1, false);
    row.quantize_us = row.time_us;
    row.quantize_us->median /= seqlen == 1024 ? 4 : 10;
    record.rows.push_back(std::move(row));
  }
  const std::vector<std::string> sentences = summary_sentences(pivot(record));
  ASSERT_EQ(sentences.size(), 1U);
  EXPECT_TRUE(contains(sentences[0], "times of e4m3 are the attention's alone")) << sentences[0];
  EXPECT_TRUE(contains(sentences[0], "10.0 % to 25.0 %")) << sentences[0];
}

TEST(Summary, WarnsWithWhatToDo) {
  Record record = fixture::sweep_record(false);
  record.complete = false;
  record.ceilings.clear();
  record.datasheet.clear();
  record.rows[2].counters.status = "no_permission";
  record.rows[3].verify.status = "skipped";
  std::string text;
  for (const Warning& warning : warnings(record)) {
    EXPECT_FALSE(warning.action.empty()) << warning.what;
    text += warning.what + "|" + warning.action + "\n";
  }
  for (const char* part : {"incomplete", "--resume", "wrong result, not ranked (1 row)",
                           "rooflash doctor", "SM clock moved by over 2 % (1 row)",
                           "without verification", "no roof is known for cuda:0 bf16"}) {
    EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
  }
}

TEST(Markdown, KeepsTheRecordsTextFromBecomingMarkup) {
  const std::string text = render_markdown(fixture::hostile_record());
  EXPECT_FALSE(contains(text, "<script"));
  EXPECT_FALSE(contains(text, "<img"));
  EXPECT_TRUE(contains(text, "&lt;/script&gt;"));
  Record renamed = fixture::sweep_record(false);
  for (Row& row : renamed.rows) {
    if (row.kernel == "naive") row.kernel = "<b>";
  }
  const std::string ranked = render_markdown(renamed);
  EXPECT_TRUE(contains(ranked, "faster than &lt;b&gt;")) << ranked;
  EXPECT_FALSE(contains(ranked, "<b>"));
  const std::string plain = render_markdown(fixture::sweep_record(true));
  EXPECT_TRUE(plain.starts_with("**SIMULATED: sim:fixture is a model."));
  EXPECT_TRUE(contains(plain, "| OOM | naive/fwd/bf16/b1.h32.kv32/q16384.k16384/d64/full |"));
}

// A reader of RFC 4180, written for the test.
std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> lines(1, {""});
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string& field = lines.back().back();
    if (quoted && text.compare(i, 2, "\"\"") == 0) {
      field += '"';
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && text[i] == ',') {
      lines.back().emplace_back();
    } else if (!quoted && text.compare(i, 2, "\r\n") == 0) {
      lines.push_back({""});
      ++i;
    } else {
      field += text[i];
    }
  }
  lines.pop_back();
  return lines;
}

TEST(Csv, HoldsEveryRowWithStatusAndReasonAndQuotesWhatNeedsIt) {
  Record record = fixture::sweep_record(true);
  const std::string awkward = "a \"quoted\", comma";
  record.rows[10].reason = awkward;
  const auto lines = parse_csv(render_csv(record));
  ASSERT_EQ(lines.size(), record.rows.size() + 1);
  const std::vector<std::string>& head = lines[0];
  const auto column = [&](const char* name) {
    return static_cast<std::size_t>(std::find(head.begin(), head.end(), name) - head.begin());
  };
  for (std::size_t i = 0; i < record.rows.size(); ++i) {
    ASSERT_EQ(lines[i + 1].size(), head.size()) << i;
    EXPECT_EQ(lines[i + 1][column("case")], record.rows[i].case_id);
    EXPECT_EQ(lines[i + 1][column("status")], to_string(record.rows[i].status));
    EXPECT_EQ(lines[i + 1][column("reason")], record.rows[i].reason);
    EXPECT_EQ(lines[i + 1][column("time_us_median")].empty(), record.rows[i].status != Status::ok);
  }
  EXPECT_EQ(lines[11][column("reason")], awkward);
}

TEST(Csv, HoldsNoControlCharacterAndNoFormula) {
  Record record = fixture::sweep_record(true);
  Row& row = record.rows[0];
  row.gpu = std::string("\x1b[31m\0red", 9);
  row.repro = "=1+1";
  row.reason = "-2 is below";
  row.kernel = "+1e-3";
  row.provider = "@x";
  row.power_w = -0.25;  // a number stays one
  const std::string text = render_csv(record);
  EXPECT_EQ(std::count_if(text.begin(), text.end(),
                          [](char c) { return (c >= 0 && c < 0x20 && c != '\r' && c != '\n'); }),
            0);
  const auto lines = parse_csv(text);
  const std::vector<std::string>& head = lines[0];
  const auto field = [&](const char* name) {
    const auto at = std::find(head.begin(), head.end(), name) - head.begin();
    return lines[1].at(static_cast<std::size_t>(at));
  };
  EXPECT_EQ(field("gpu"), "\\x1b[31m\\x00red");
  EXPECT_EQ(field("repro"), "'=1+1");
  EXPECT_EQ(field("reason"), "'-2 is below");
  EXPECT_EQ(field("provider"), "'@x");
  EXPECT_EQ(field("kernel"), "'+1e-3");
  EXPECT_EQ(field("power_w"), "-0.25");
}

TEST(Text, IsDeterministic) {
  const Record record = fixture::sweep_record(true);
  EXPECT_EQ(render_table(record, {}), render_table(fixture::sweep_record(true), {}));
  EXPECT_EQ(render_markdown(record), render_markdown(fixture::sweep_record(true)));
  EXPECT_EQ(render_csv(record), render_csv(fixture::sweep_record(true)));
  EXPECT_TRUE(contains(render_table(Record{}, {}), "no rows"));
}

TEST(Text, OneIsNoPlural) {
  EXPECT_EQ(counted(0, "row"), "0 rows");
  EXPECT_EQ(counted(1, "row"), "1 row");
  EXPECT_EQ(counted(96, "row"), "96 rows");
  Problem p = fixture::problem(DType::bf16, 128, 512, true);
  p.heads_q = p.heads_kv = 1;
  Record record;
  record.suite = "one";
  record.rows = {fixture::row("fa2", p, 250, 1.0, true)};
  const std::string table = render_table(record, {});
  EXPECT_TRUE(contains(table, "suite one  1 row: 1 ok")) << table;
  EXPECT_TRUE(contains(table, "causal, 1 head  [")) << table;
  EXPECT_TRUE(contains(render_markdown(record), "- 1 row: 1 ok\n"));
  EXPECT_TRUE(contains(html_report(report_runs({&record, 1}), {}),
                       ">1 row</span><span class=\"chip good\">1 ok</span>"));
  record.rows.front().problem.heads_q = 2;
  EXPECT_TRUE(contains(render_table(record, {}), "causal, 2 heads on 1 KV head  ["));
}

TEST(Table, TinyThroughputKeepsTheColumns) {
  Record record = fixture::empty_record();
  for (const auto& [seqlen, tflops] : {std::pair{512, 5.99e-5}, {1024, 0.0123}, {2048, 123.0}}) {
    record.rows.push_back(
        fixture::row("fa2", fixture::problem(DType::bf16, 128, seqlen, false), tflops, 1, false));
  }
  const std::string table = render_table(record, {.width = 100});
  EXPECT_TRUE(contains(table, " <0.001 ")) << table;
  EXPECT_TRUE(contains(table, "  0.012 ")) << table;
  std::set<std::size_t> ends;
  for (const std::string& line : lines_of(table)) {
    if (line.ends_with("1.00x")) ends.insert(line.size());
  }
  EXPECT_EQ(ends.size(), 1U) << table;
}

TEST(Summary, DoesNotSendASimulatedCardToTheCeilings) {
  Record record = fixture::empty_record();
  record.ceilings.clear();
  record.datasheet.clear();
  const Problem p = fixture::problem(DType::bf16, 128, 1024, false);
  record.rows = {fixture::row("fa2", p, 100, 1, true)};
  ASSERT_EQ(warnings(record).size(), 1U);
  EXPECT_TRUE(contains(warnings(record)[0].what, "no roof is known for sim:fixture bf16"));
  EXPECT_FALSE(contains(warnings(record)[0].action, "rooflash ceilings"));
}

TEST(PaperFlops, AreGivenWhereTheyDifferByOverAThousandth) {
  const auto made = [](std::int64_t seqlen, bool causal) {
    return fixture::row("fa2", fixture::problem(DType::bf16, 128, seqlen, causal), 100, 1, false);
  };
  Row row = made(512, true);  // the diagonal is 1/512 of half of all pairs
  ASSERT_TRUE(paper_flops(row));
  EXPECT_NEAR(row.model.flops / *paper_flops(row), 513.0 / 512, 1e-12);
  EXPECT_FALSE(paper_flops(made(2048, true)));
  EXPECT_FALSE(paper_flops(made(512, false)));
  EXPECT_EQ(flops_text(row), "34.43 GFLOP (the papers count 34.36)");
  Record record = fixture::empty_record();
  record.rows = {row, made(2048, true)};
  const std::string markdown = render_markdown(record);
  EXPECT_TRUE(contains(markdown, row.case_id + " | 34.43 GFLOP (the papers count 34.36) |"));
  EXPECT_FALSE(contains(markdown, record.rows[1].case_id));
  EXPECT_TRUE(contains(html_report(report_runs({&record, 1}), {}), "(the papers count 34.36)"));
  row.problem.mask = {MaskKind::window, Align::bottom_right, 63, 0};
  EXPECT_FALSE(paper_flops(row));
  row = made(512, false);
  row.problem.pass = Pass::bwd;
  row.model.flops *= 2.5;
  EXPECT_FALSE(paper_flops(row));
}

TEST(Significant, NeverUsesAnExponent) {
  EXPECT_EQ(significant(0), "0");
  EXPECT_EQ(significant(611.4), "611");
  EXPECT_EQ(significant(18.44), "18.4");
  EXPECT_EQ(significant(1.019), "1.02");
  EXPECT_EQ(significant(0.01234), "0.0123");
  EXPECT_EQ(significant(1234567), "1234567");
  EXPECT_EQ(significant(NAN), "n/a");
}

}  // namespace
}  // namespace rooflash
