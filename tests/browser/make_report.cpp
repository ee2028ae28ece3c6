// Writes reports of made-up records for the browser test.
//   make_report KIND FILE     KIND: sweep | two | hostile | long | large
#include <cstring>
#include <fstream>
#include <iostream>
#include <vector>

#include "../unit/report/fixture.hpp"
#include "report/html.hpp"

int main(int argc, char** argv) {
  using namespace rooflash;
  if (argc != 3) {
    std::cerr << "usage: make_report sweep|two|hostile|long|large FILE\n";
    return 2;
  }
  const std::string kind = argv[1];
  std::vector<Record> records;
  if (kind == "sweep" || kind == "two") records.push_back(fixture::sweep_record(true));
  if (kind == "two") records.push_back(fixture::sweep_record(false));
  if (kind == "hostile") records.push_back(fixture::hostile_record());
  if (kind == "long") records.push_back(fixture::long_names_record());
  if (kind == "large") records.push_back(fixture::large_record(10'000));
  if (records.empty()) {
    std::cerr << "make_report: unknown kind " << kind << "\n";
    return 2;
  }
  std::ofstream out(argv[2], std::ios::binary);
  out << html_report(records, {});
  return out.flush() ? 0 : 1;
}
