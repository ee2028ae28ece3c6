#include "fp8/arguments.cuh"

#include <memory>

namespace rooflash::fp8 {

Prepared prepare(const void* kernel, const Config& config, const Problem& p, const Tensors& t,
                 const DeviceLimits& device) {
  const Fp8Modes modes = fp8_modes(p);
  const auto counters = hopper::make_counters();
  const auto args = std::make_shared<Arguments>();
  const auto map = [&](const void* data, std::int64_t seqlen, std::int64_t heads, int rows) {
    return hopper::rows_map(DType::e4m3, data, p.batch, seqlen, heads, p.headdim, rows,
                            config.row_bytes());
  };
  args->q = map(t.q, p.seqlen_q, p.heads_q, kWarpgroupRows);
  args->k = map(t.k, p.seqlen_kv, p.heads_kv, config.block_n);
  args->v = map(t.v, p.seqlen_kv, p.heads_kv, config.block_n);
  // A warp stores its rows by itself.
  args->o = hopper::rows_map(modes.output, t.o, p.batch, p.seqlen_q, p.heads_q, p.headdim, 16);
  args->problem = forward_arguments(p, t);
  args->band_first = static_cast<int>(args->problem.band.first);
  args->band_last = static_cast<int>(args->problem.band.last);
  args->schedule = hopper::schedule_for(p, config.block_m(), device.sm_count);
  args->counters = counters.get();
  args->fp16_output = modes.output == DType::fp16;
  args->lag = modes.true_maximum ? 0.0F : kLagLog2;
  return hopper::prepare_persistent(kernel, config.threads(), config.smem_bytes(),
                                    args->schedule.tiles(), device, args, counters);
}

}  // namespace rooflash::fp8
