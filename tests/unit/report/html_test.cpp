#include "report/html.hpp"
#include "report/html_data.hpp"

#include <gtest/gtest.h>
#include <cstdint>

#include <algorithm>
#include <ctime>
#include <regex>

#include "fixture.hpp"
#include "record/json.hpp"
#include "report/escape.hpp"
#include "report/pack.hpp"
#include "report/sha256.hpp"

namespace rooflash {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos;
       at += part.size()) {
    ++n;
  }
  return n;
}

// The text between `open` and the next `close`.
std::string_view between(std::string_view text, std::string_view open, std::string_view close) {
  const std::size_t at = text.find(open);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + open.size());
  return text.substr(0, text.find(close));
}

std::string report(const Record& record) {
  return html_report(report_runs({&record, 1}), {});
}

// The records that the page embeds.
nlohmann::ordered_json embedded_records(std::string_view page) {
  const std::string_view block =
      between(page, "<script type=\"text/plain\" id=\"data\">", "</script>");
  return parse_json(unpacked(block), "page").at("records");
}

TEST(Html, PolicyAllowsExactlyTheScriptsAndTheStyleOfThePage) {
  const std::string page = report(fixture::sweep_record(true));
  const std::string_view policy = between(page, "Content-Security-Policy\" content=\"", "\"");
  EXPECT_TRUE(policy.starts_with("default-src 'none';")) << policy;
  EXPECT_FALSE(contains(policy, "unsafe"));
  std::string_view rest = page;
  int scripts = 0;
  for (std::size_t at; (at = rest.find("<script>")) != std::string_view::npos; ++scripts) {
    const std::string_view script = between(rest, "<script>", "</script>");
    EXPECT_TRUE(contains(policy, "'sha256-" + base64(sha256(script)) + "'"));
    rest.remove_prefix(at + 8);
  }
  EXPECT_EQ(scripts, 2);
  EXPECT_TRUE(contains(policy, base64(sha256(between(page, "<style>", "</style>")))));
}

TEST(Html, MakesNoRequest) {
  const std::string page = report(fixture::sweep_record(true));
  EXPECT_FALSE(std::regex_search(page, std::regex("(src|href)=\"(https?:)?//")));
  EXPECT_FALSE(contains(page, "@import"));
  EXPECT_FALSE(contains(between(page, "<style>", "</style>"), "url("));
}

TEST(Html, EmbedsTheRecord) {
  const Record record = fixture::sweep_record(true);
  const std::string page = report(record);
  const nlohmann::ordered_json parsed = embedded_records(page);
  ASSERT_EQ(parsed.size(), 1U);
  EXPECT_EQ(parsed[0], to_json(record));
}

TEST(Html, HostileTextStaysText) {
  const Record record = fixture::hostile_record();
  const std::string page = report(record);
  EXPECT_EQ(count(page, "</script"), count(report(fixture::sweep_record(true)), "</script"));
  EXPECT_FALSE(contains(page, "<img"));
  EXPECT_FALSE(contains(page, "\x1b"));
  EXPECT_FALSE(contains(page, "\x01"));
  const nlohmann::ordered_json parsed = embedded_records(page);
  const std::string device = parsed[0]["rows"][1]["device"];
  EXPECT_TRUE(device.starts_with("</script><script>window.hacked=1</script>\"><img"));
}

TEST(Html, TablesHoldEveryRowAndTheReasonOfEachThatIsNotOk) {
  const Record record = fixture::sweep_record(true);
  const std::string page = report(record);
  const std::string_view detail = between(page, "<table id=\"table-detail\"", "</table>");
  EXPECT_EQ(count(detail, "<tr data-row="), record.rows.size());
  const std::string_view bad = between(page, "<table id=\"table-not-ok\"", "</table>");
  EXPECT_EQ(count(bad, "<tr data-row="), 3U);
  EXPECT_TRUE(contains(bad, "the scores do not fit (needs 160.0 GiB, free 139.0 GiB)"));
  const auto timed = static_cast<std::size_t>(
      std::count_if(record.rows.begin(), record.rows.end(),
                    [](const Row& row) { return row.status == Status::ok; }));
  for (const char* id : {"table-roofline", "table-throughput", "table-speedup", "table-bytes",
                         "table-accuracy", "table-noise"}) {
    const std::string_view table = between(page, std::string("<table id=\"") + id, "</table>");
    EXPECT_EQ(count(table, "<tr data-row="), timed) << id;
  }
  const std::string_view memory = between(page, "<table id=\"table-memory\"", "</table>");
  EXPECT_EQ(count(memory, "<tr data-row="), timed + 1);  // the one that did not fit too
  // Every link of a table leads to a row.
  std::string_view rest = page;
  for (std::size_t at; (at = rest.find("<td><a href=\"#")) != std::string_view::npos;) {
    rest.remove_prefix(at + 14);
    const std::string id(rest.substr(0, rest.find('"')));
    ASSERT_TRUE(contains(page, " id=\"" + id + "\"")) << id;
  }
}

TEST(Html, MissingValuesCarryTheirReason) {
  Record record = fixture::sweep_record(false);
  Row& row = record.rows[0];
  row.power_w.reset();
  row.missing["power_w"] = "NVML was not found";
  row.counters = {};
  row.counters.status = "no_permission";
  row.derived.intensity_flop_per_byte.reset();
  const std::string page = report(record);
  EXPECT_TRUE(contains(page, "n/a: NVML was not found"));
  EXPECT_TRUE(contains(page, "n/a: counters no_permission"));
}

TEST(Html, SaysWhyHbmBytesCanBeBelowTheCompulsory) {
  const std::string page = report(fixture::sweep_record(true));
  EXPECT_TRUE(contains(page, "or queries that see no key were not read"));
  EXPECT_TRUE(contains(page, "A row that sees no key needs no Q"));
}

TEST(Html, RowsBeyondTheStaticOnesAreCounted) {
  const Record record = fixture::sweep_record(false);
  const std::string page = html_report(report_runs({&record, 1}), {.static_rows = 28});
  const std::string_view table = between(page, "<table id=\"table-detail\"", "</table>");
  EXPECT_EQ(count(table, "<tr data-row="), 7U);
  EXPECT_TRUE(contains(page, std::to_string(record.rows.size() - 7) + " more rows need scripts."));
  EXPECT_EQ(embedded_records(page)[0]["rows"].size(), record.rows.size());
}

TEST(Html, LongTextsAreCutInTheTablesAndWholeInTheData) {
  Record record = fixture::sweep_record(false);
  record.rows[0].kernel.assign(1'000'000, 'k');
  record.rows[0].case_id = case_id(record.rows[0].kernel, record.rows[0].problem);
  record.rows[1].repro = std::string(1'000'000, 'r');
  const std::string page = report(record);
  EXPECT_LT(page.size(), 1'500'000U);
  EXPECT_TRUE(contains(page, "rrr... (1000000 bytes)"));
  EXPECT_EQ(embedded_records(page)[0]["rows"][1]["repro"], record.rows[1].repro);
}

TEST(Html, ShowsTheRoofsInsideTheGpuWhereTheyWereMeasured) {
  const std::string page = report(fixture::showcase_record());
  EXPECT_TRUE(contains(page, "L2 read 12000 GB/s; exponentials 3900 10^9/s"));
  EXPECT_TRUE(contains(page, "between events 4.100 us; further kernel in a stream 1.200 us"));
  EXPECT_TRUE(contains(page, "GEMM bf16 640.0 TFLOPS"));
  EXPECT_FALSE(contains(report(fixture::sweep_record(true)), "launch costs"));
}

TEST(Html, RankingSaysWhatHasNoResult) {
  const std::string page = report(fixture::sweep_record(false));
  const std::string_view table = between(page, "<table id=\"table-ranking\"", "</table>");
  EXPECT_TRUE(contains(table, ">1 WRONG</td>"));
  EXPECT_TRUE(contains(table, ">1 OOM, 1 T/O</td>"));
  EXPECT_TRUE(contains(table, ">none</td>"));
}

TEST(Html, HasTheSectionsAskedForAlone) {
  const Record record = fixture::sweep_record(false);
  const std::vector<std::string> names = section_names();
  EXPECT_EQ(names.front(), "summary");
  EXPECT_EQ(names.back(), "method");
  const std::string all = report(record);
  EXPECT_EQ(count(all, "<section id="), names.size() - 1);  // there is no history
  for (const std::string& name : names) {
    const std::string page = html_report(report_runs({&record, 1}), {.sections = {name}});
    EXPECT_EQ(count(page, "<section id="), 1U) << name;
    EXPECT_EQ(count(page, "</section>"), 1U) << name;
    EXPECT_TRUE(contains(page, "<section id=\"" + name + "\"")) << name;
    EXPECT_EQ(count(between(page, "<nav", "</nav>"), "<a "), 1U) << name;
    EXPECT_TRUE(contains(page, "class=\"skip\" href=\"#" + name + "\"")) << name;
    EXPECT_FALSE(contains(page, "{{")) << name;
  }
}

TEST(Html, NamesRunsByTheirLabelsAndEscapesThem) {
  const Record records[] = {fixture::sweep_record(false), fixture::sweep_record(false)};
  std::vector<ReportRun> runs = report_runs(records);
  runs[0].name = "<old>";
  runs[1].detectable.push_back({0.0123, {}});
  runs[1].detectable.push_back({{}, "needs <5>"});
  const std::string page = html_report(runs, {});
  EXPECT_TRUE(contains(page, "<strong>&lt;old&gt;</strong>"));
  EXPECT_TRUE(contains(page, "<strong>run 2</strong>"));
  EXPECT_FALSE(contains(page, "<old>"));
  EXPECT_TRUE(contains(page, "1.23 %</td>"));
  EXPECT_TRUE(contains(page, "n/a: needs &lt;5&gt;"));
}

TEST(Html, NamesSimulatedDevicesOnceAndTheRunsThatHaveThem) {
  const Record records[] = {fixture::sweep_record(true), fixture::sweep_record(false),
                            fixture::sweep_record(true)};
  const std::string_view banner = "<strong>Simulated.</strong> ";
  const std::string some = html_report(report_runs(records), {});
  EXPECT_EQ(count(some, banner), 1U);
  EXPECT_TRUE(contains(some, std::string(banner) + "run 1, run 3: sim:fixture is a model"));
  EXPECT_FALSE(contains(some, "<div class=\"runs\""));
  const std::string all = report(records[0]);
  EXPECT_TRUE(contains(all, std::string(banner) + "sim:fixture is a model"));
  // What is said of each of many runs scrolls in a box.
  const std::vector<Record> many(6, records[1]);
  EXPECT_EQ(count(html_report(report_runs(many), {}), "<div class=\"runs\""), 2U);
}

TEST(Html, ShowsComparisonsThatItIsGiven) {
  const Record records[] = {fixture::sweep_record(false), fixture::sweep_record(false)};
  RecordComparison comparison;
  comparison.base_name = "run 1";
  comparison.new_name = "run 2";
  comparison.counts = "1 slower";
  comparison.geomean = 1.05;
  comparison.geomean_cases = 1;
  comparison.differences = {"driver: base 1, new <2>"};
  ComparedCase one;
  one.case_id = records[0].rows[0].case_id;
  one.kernel = "naive";
  one.problem = records[0].rows[0].problem;
  one.verdict = "slower";
  one.ratio = 1.062;
  one.ci95_low = 1.05;
  one.ci95_high = 1.07;
  one.base_us = 100;
  one.new_us = 106.2;
  comparison.cases = {one};
  const std::string page = html_report(report_runs(records), {.comparisons = {comparison}});
  EXPECT_TRUE(contains(page, "<h3>run 2 against run 1: 1 slower</h3>"));
  EXPECT_TRUE(contains(page, "+6.2 %"));
  EXPECT_TRUE(contains(page, "+5.0 % to +7.0 %"));
  EXPECT_TRUE(contains(page, "driver: base 1, new &lt;2&gt;"));
}

TEST(Html, IsDeterministicAndTakesSeveralRecords) {
  const Record records[] = {fixture::sweep_record(true), fixture::sweep_record(false)};
  const std::string page = html_report(report_runs(records), {.title = "A < B", .theme = "dark"});
  EXPECT_EQ(page, html_report(report_runs(records), {.title = "A < B", .theme = "dark"}));
  EXPECT_TRUE(contains(page, "<title>A &lt; B</title>"));
  EXPECT_TRUE(contains(page, "data-theme=\"dark\""));
  EXPECT_TRUE(contains(page, "@cuda:0.run2") || contains(page, "@cuda_0.run2"));
}

TEST(Html, ThinsSamplesAndKeepsTheExtremes) {
  Record record = fixture::empty_record();
  record.rows = {
      fixture::row("fa2", fixture::problem(DType::bf16, 128, 1024, false), 300, 1, false)};
  TimeUs& time = *record.rows[0].time_us;
  time.samples.clear();
  for (int i = 0; i < 1000; ++i) {
    time.samples.push_back(i == 501 ? 9.0 : i == 777 ? 99.0 : 50 + i * 0.01);
    record.rows[0].clock_mhz->samples.push_back(i);
  }
  time.n = 1000;
  record.rows[0].quantize_us = time;
  const Row thinned = with_thinned_samples(record.rows[0], 200);
  const std::vector<double>& kept = thinned.time_us->samples;
  EXPECT_LE(kept.size(), 200U);
  EXPECT_GE(kept.size(), 190U);
  EXPECT_EQ(*std::min_element(kept.begin(), kept.end()), 9.0);
  EXPECT_EQ(*std::max_element(kept.begin(), kept.end()), 99.0);
  EXPECT_EQ(thinned.time_us->n, 1000);
  const std::vector<double>& clocks = thinned.clock_mhz->samples;
  ASSERT_EQ(clocks.size(), kept.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(kept[i], time.samples[static_cast<std::size_t>(clocks[i])]);
  }
  EXPECT_TRUE(contains(thinned.missing.at("time_us.samples"), "of 1000 samples"));
  EXPECT_EQ(thinned.quantize_us->samples, kept);
  EXPECT_TRUE(contains(thinned.missing.at("quantize_us.samples"), "of 1000 samples"));
}

// Processor time, so that a busy machine does not fail it.
TEST(Html, TenThousandRowsTakeUnderTwoSeconds) {
#ifdef __SANITIZE_ADDRESS__
  constexpr double kSeconds = 30;
#else
  constexpr double kSeconds = 2;
#endif
  const Record record = fixture::large_record(10'000);
  const std::clock_t start = std::clock();
  const std::string page = report(record);
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, kSeconds);
  EXPECT_GT(page.size(), 1'000'000U);
  EXPECT_LT(page.size(), 8'000'000U);
}

TEST(Pack, GivesTheSameBytesBack) {
  std::string bytes;
  for (std::int64_t i = 0; i < 300'000; ++i) bytes += static_cast<char>(i * i % 251);
  EXPECT_EQ(unpacked(packed(bytes)), bytes);
  EXPECT_EQ(unpacked(packed("")), "");
  EXPECT_EQ(packed(bytes), packed(bytes));
  EXPECT_THROW(unpacked("<script>"), std::invalid_argument);
  EXPECT_THROW(unpacked(packed(bytes).substr(0, 100)), std::invalid_argument);
}

TEST(Escape, MakesTextHarmless) {
  EXPECT_EQ(escape_html("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(escape_html("\x01\n\t\x7f"), "\xEF\xBF\xBD\n\t\xEF\xBF\xBD");
  EXPECT_EQ(escape_html("\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"),
            "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80");
  // A right-to-left override, a zero-width space.
  EXPECT_EQ(escape_html("a\xE2\x80\xAE"
                        "b\xE2\x80\x8B"),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD");
  EXPECT_EQ(script_json_string("\xE2\x80\xAE"), "\"\xEF\xBF\xBD\"");
  EXPECT_EQ(escape_html("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD");  // overlong '/'
  EXPECT_EQ(escape_html("\xE2\x82"), "\xEF\xBF\xBD\xEF\xBF\xBD");  // cut short
  EXPECT_EQ(escape_script_json("\"</script>&\xE2\x80\xA8\xE2\x80\xA9\xE2\x82\xAC\""),
            "\"\\u003c/script\\u003e\\u0026\\u2028\\u2029\xE2\x82\xAC\"");
  EXPECT_EQ(script_json_string("a\"\\\n<\xff\xE2\x82\xAC"),
            "\"a\\\"\\\\\\u000a\\u003c\xEF\xBF\xBD\xE2\x82\xAC\"");
  EXPECT_EQ(escape_anchor("case-fa2/fwd@cuda:0 \"x\""), "case-fa2/fwd@cuda_0__x_");
}

}  // namespace
}  // namespace rooflash
