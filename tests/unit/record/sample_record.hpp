// A record in which every field differs from its default.
#pragma once

#include "core/record.hpp"
#include "core/version.hpp"

namespace rooflash {

inline Row sample_row() {
  Row row;
  row.kernel = "fa2";
  row.problem.batch = 2;
  row.problem.heads_q = 16;
  row.problem.heads_kv = 4;
  row.problem.seqlen_q = 512;
  row.problem.seqlen_kv = 1024;
  row.problem.headdim = 128;
  row.problem.headdim_v = 128;
  row.problem.mask = {MaskKind::window, Align::top_left, 255, kUnbounded};
  row.problem.distribution = Distribution::outlier;
  row.problem.options = {{"scale", "block"}};
  row.case_id = case_id(row.kernel, row.problem);
  row.definition_hash = definition_hash(row.kernel, row.problem);
  row.provider = "cudnn";
  row.device = "cuda:0";
  row.gpu = "NVIDIA H200";
  row.round = 1;
  row.status = Status::ok;
  row.verify = {"reduced", "q64.k128", 1e-3, 1e-4, 2e-4, 2e-3, 3e-4, "all", "row 3", 4e-3, 5e-3};
  row.model = {std::string(kFlopConvention), 1000, 5.1e8, 1 << 20, 2e6, 1.5e6, 12.5};
  row.memory = {0, 1 << 20, 1 << 20, 1LL << 37};
  row.resources = {168, 0, 65536, 128, 1024, 7.75, 8192, 41.5};
  row.time_us = TimeUs{12, 11.5, 12.5, 11, 3, {13, 11, 12}, "cold", "burst", "event", "ci", 40};
  row.cycles_median = 21000;
  row.clock_mhz = Clock{1750, 1740, 1760, {1760, 1750, 1740}};
  row.power_w = 512.5;
  row.temperature_c = 41;
  row.throttle = {"sw_power_cap"};
  row.flags = {"clock_unsettled"};
  row.counters = {"ok", "", 1e6, 2e5, 3e6, 4e5, 6e8, 61.5, 30.25, 12.25, 1755, 2.5e6};
  row.derived = {42.5, 50, 100, 425, 8.5};
  row.kernels_run = {"fa2_forward<128, true>"};
  row.repro = "rooflash run --kernel fa2";
  row.missing = {{"peak", "not asked for"}};
  row.energy = Energy{0.25, 0.25e12 / row.model.flops, 1.5, 6};
  row.trace = Trace{1796029503000000,
                    {{"setup", 0, 20.5}, {"timed", 20.5, 90}},
                    {30.5, 45.5, 60},
                    {{20, 410.5}, {91, 512.5}}};
  return row;
}

inline Record sample_record() {
  Record record;
  record.tool = {"0.1.0", "0123456789ab", true, "Release"};
  record.environment = {"00112233aabbccdd",
                        {"rooflash", "run"},
                        "2026-01-31T09:05:00Z",
                        "580.1",
                        "13.0",
                        "9.19",
                        "0",
                        {}};
  record.environment.devices.push_back({"cuda:0", "NVIDIA H200", "ffeeddccbbaa9988", false, 132, 90,
                                        1980, 3201, 150754820096, 62914560, 700, true, false, 1});
  record.environment.cudnn_hash = "0011223344556677";
  record.ceilings.push_back({"cuda:0", "measured", 4200, 4300, 4100, {{"bf16", 740.5}}});
  record.ceilings[0].units = UnitRoofs{5500, 31000, {{"bf16", 850.5}},    {{"bf16", 600.5}},
                                       4100, 60.5,  {{"gemm.bf16", 1755}}};
  record.ceilings[0].launch = LaunchCosts{2.5, 1.5, 1.25, 8.5};
  record.ceilings[0].sustained = SustainedRoofs{
      4190, {{"bf16", 700.5}}, {{"bf16", 720.5}}, {{"hbm_copy", 1980}}, {{"hbm_copy", 500}}};
  record.datasheet.push_back({"h200", 4800, {{"bf16", 989.5}}, "datasheet"});
  record.suite = "quickstart";
  record.seed = 0xffffffffffffffffULL;
  record.complete = false;
  record.rows.push_back(sample_row());
  Row unsupported = sample_row();
  unsupported.round = 2;
  unsupported.status = Status::unsupported;
  unsupported.reason = "no e4m3 variant";
  unsupported.time_us.reset();
  unsupported.cycles_median.reset();
  unsupported.clock_mhz.reset();
  unsupported.counters = {};
  unsupported.derived = {};
  unsupported.energy.reset();
  unsupported.trace.reset();
  record.rows.push_back(unsupported);
  return record;
}

}  // namespace rooflash
