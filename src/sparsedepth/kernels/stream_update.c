/* The update of a belief by a frame: mean, variance and age of each pixel.
 *
 * Two passes. The first compares the frame with the belief and sums the innovations of blocks, in which slow change
 * shows before it does in a pixel. The second fuses, with the evidence of those blocks. NaN = missing throughout.
 */
#include "kernels.h"

typedef struct {
    float *mean, *variance, *scale, *run, *residual, *candidate, *count, *missed;
} Belief;

static const float NOTHING = __builtin_nanf("");

static void renew(const Belief *belief, int64_t at, float value, float variance) {
    belief->mean[at] = value;
    belief->variance[at] = variance;
    belief->scale[at] = 1;
    belief->run[at] = 0;
    belief->residual[at] = 0;
    belief->candidate[at] = NOTHING;
    belief->count[at] = 1;
    belief->missed[at] = 0;
}

static void forget(const Belief *belief, int64_t at) {
    renew(belief, at, NOTHING, __builtin_inff());
    belief->count[at] = 0;
}

/* Compare a frame with a belief: innovations, local noise levels, mean innovations of pixels and of blocks.
 *
 * Updates scale and run. Writes innovation (measurement minus mean), level (variance of the measurement) and the sums
 * over blocks of pixels within the gate: their number, their innovations and their mean innovations, both in standard
 * deviations; (3, height / side, width / side), zero at first.
 */
KERNEL void stream_compare(int64_t height, int64_t width, int64_t side, const float *value, const float *noise,
                           const float *mean, const float *variance, const float *residual, const float *count,
                           float *scale, float *run, float *innovation, float *level, float *sums, float temporal,
                           float scale_rate, float largest_scale, float gate, float run_memory, float run_clip) {
    const int64_t down = height / side, across = width / side, blocks = down * across;
    const float twice = 2 * (1 - temporal);
    for (int64_t row = 0; row < height; row++) {
        for (int64_t column = 0; column < width; column++) {
            const int64_t at = row * width + column;
            const float moved = count[at] > 0 ? value[at] - mean[at] : NOTHING;
            innovation[at] = moved;
            if (moved == moved) {
                const float step = moved - residual[at];
                const float ratio = least(step * step / (twice * noise[at]), largest_scale);
                scale[at] += most(1 / (count[at] + 3), scale_rate) * (ratio - scale[at]);
            }
            level[at] = noise[at] * most(scale[at], 1);
            const float score = moved / __builtin_sqrtf(variance[at] + level[at]);
            const int inside = score >= -gate && score <= gate;
            const float clipped = most(least(score, run_clip), -run_clip);
            if (inside) run[at] = (1 - run_memory) * clipped + run_memory * run[at];
            if (row / side < down && column / side < across) {
                float *sum = sums + row / side * across + column / side;
                sum[0] += (float)inside;
                sum[blocks] += inside ? clipped : 0;
                sum[2 * blocks] += run[at];
            }
        }
    }
}

/* How a frame is fused; the names are those of StreamSettings. */
typedef struct {
    float gate, least_gain, huber, run_std, run_sigmas, run_relief, drift_prior, candidate, growth, memory;
} Rates;

/* Fuse a measurement within the gate: by precision, faster where the mean innovations show slow change. */
static void fuse(const Belief *belief, int64_t at, float moved, float level, float around, const Rates *rates) {
    const float score = moved / __builtin_sqrtf(belief->variance[at] + level), run = belief->run[at];
    const float size = __builtin_fabsf(run) * (1 / rates->run_std) - rates->run_sigmas;
    const float own = most(least(size, 1), 0), region = __builtin_fabsf(around);
    const float drift = most(own, region);
    const float ahead = most(__builtin_copysignf(1, region > own ? around : run) * moved, 0);
    const float prior = most(belief->variance[at] + drift * ahead * ahead, rates->drift_prior * drift * level);
    const float gain = most(prior / (prior + level), rates->least_gain);
    const float huber = least(rates->huber / most(__builtin_fabsf(score), 1e-6f), 1);
    const float step = gain * (drift > 0 ? 1 : huber) * moved;
    belief->residual[at] = moved - step;
    belief->mean[at] += step;
    belief->variance[at] = (1 - gain) * (1 - gain) * prior + gain * gain * level;
    if (drift > 0) belief->run[at] = run - rates->run_relief * gain * run;
    belief->candidate[at] = NOTHING;
    belief->count[at] += 1;
}

/* Replace the mean where two successive measurements beyond the gate agree; return whether this was the first. */
static uint8_t follow_jump(const Belief *belief, int64_t at, float jump, float level, const Rates *rates) {
    const float before = belief->candidate[at];
    if (__builtin_fabsf(jump - before) <= rates->candidate * __builtin_sqrtf(2 * level)) {
        renew(belief, at, belief->mean[at] + (jump + before) / 2, level / 2);
        belief->count[at] = 2;
        belief->residual[at] = (jump - before) / 2;
        return 0;
    }
    belief->candidate[at] = jump;
    return 1;
}

/* Update a belief by a frame that was compared with it.
 *
 * drift: evidence of slow change in each block, -1 to 1, (height / side, width / side); the last blocks go on to the
 * borders. jumped: receives 1 where a measurement lies beyond the gate for the first time.
 */
KERNEL void stream_fuse(int64_t height, int64_t width, int64_t side, const float *value, const float *noise,
                        const float *innovation, const float *level, const float *drift, float *mean, float *variance,
                        float *scale, float *run, float *residual, float *candidate, float *count, float *missed,
                        uint8_t *jumped, float gate, float least_gain, float huber, float run_std, float run_sigmas,
                        float run_relief, float drift_prior, float candidate_sigmas, float growth, float memory) {
    const Belief belief = {mean, variance, scale, run, residual, candidate, count, missed};
    const Rates rates = {gate,       least_gain,  huber,            run_std, run_sigmas,
                         run_relief, drift_prior, candidate_sigmas, growth,  memory};
    const int64_t down = height / side, across = width / side;
    for (int64_t row = 0; row < height; row++) {
        const int64_t block_row = row / side < down ? row / side : down - 1;
        for (int64_t column = 0; column < width; column++) {
            const int64_t at = row * width + column;
            const int64_t block = column / side < across ? column / side : across - 1;
            const float around = down && across ? drift[block_row * across + block] : 0;
            jumped[at] = 0;
            if (value[at] != value[at]) {
                variance[at] += rates.growth * noise[at];
                missed[at] += 1;
                if (missed[at] > rates.memory) forget(&belief, at);
                continue;
            }
            missed[at] = 0;
            if (count[at] == 0) {
                renew(&belief, at, value[at], noise[at]);
                continue;
            }
            const float moved = innovation[at], spread = __builtin_sqrtf(variance[at] + level[at]);
            if (__builtin_fabsf(moved / spread) <= rates.gate)
                fuse(&belief, at, moved, level[at], around, &rates);
            else
                jumped[at] = follow_jump(&belief, at, moved, level[at], &rates);
        }
    }
}
