/* Sparse codes of patches: coordinate descent on the few atoms that matter, under squares or Huber's loss.
 *
 * A round weighs the residuals (large ones less, which makes Huber's loss a sum of squares), looks at all atoms, admits
 * those that would help most, and descends on the admitted ones by their Gram matrix. Huber's threshold begins at the
 * mean residual and falls to 1, so that large steps of depth are coded within a few rounds.
 */
#include "kernels.h"
#include "pairs.h"

enum { GROUP = 8, ADMITTED = 96 };
/* GROUP: patches that are worked on together. ADMITTED: most atoms of a patch. */

typedef struct {
    float *residual, *weight, *pull, *scale, *slopes, *gram;
    /* Residuals, their weights, their products, 1 / root of the floors; about how much each atom would help; products of
     * the admitted atoms. */
    int16_t *rounded;
    /* The products of residuals and weights in whole numbers. */
    float code[ADMITTED], before[ADMITTED], slope[ADMITTED], price[ADMITTED], inverse[ADMITTED];
    int64_t atom[ADMITTED], count, stride, patch;
    float level, largest, ridge, unit;
    /* Huber's threshold of this round, the largest gain of the last sweep, the cost of half a squared code, and the
     * slope that a whole number stands for. */
} Coded;

typedef struct {
    int64_t pixels, atoms, robust, at_once, sweeps;
    const float *rows, *prices;
    const int16_t *columns;
    float tolerance, fall, ridge;
    float *weighted;
} Work;

/* The length of rounded pulls, and of rounded atoms: their products fit 32 bits. */
#define PULL_LENGTH 32000.0f
#define ATOM_UNITS 16384.0f

static inline float size_of(float value) { return value < 0 ? -value : value; }

/* Multiply a row with four others; each product is added up in sixteen parts. */
static inline void dot_four(int64_t n, const float *row, const float *const *others, float *products) {
    Lanes sums[4][PARTS] = {{{0}}};
    float parts[4][LANES];
    for (int64_t at = 0; at < n; at += LANES)
        for (int part = 0; part < PARTS; part++) {
            const Lanes mine = *(const Lanes *)(row + at + part * HELD);
            for (int one = 0; one < 4; one++) sums[one][part] += mine * *(const Lanes *)(others[one] + at + part * HELD);
        }
    for (int one = 0; one < 4; one++)
        for (int part = 0; part < PARTS; part++) ((Lanes *)parts[one])[part] = sums[one][part];
    for (int one = 0; one < 4; one++) products[one] = sum_lanes(parts[one]);
}

/* Add `factor` times a row to another one. */
static inline void add_row(int64_t n, float factor, const float *row, float *to) {
    for (int64_t at = 0; at < n; at++) to[at] += factor * row[at];
}

/* Add up the products of two rows, in sixteen parts. */
static inline float dot(int64_t n, const float *one, const float *other) {
    Lanes sums[PARTS] = {{0}};
    float parts[LANES];
    for (int64_t at = 0; at < n; at += LANES)
        for (int part = 0; part < PARTS; part++)
            sums[part] += *(const Lanes *)(one + at + part * HELD) * *(const Lanes *)(other + at + part * HELD);
    for (int part = 0; part < PARTS; part++) ((Lanes *)parts)[part] = sums[part];
    return sum_lanes(parts);
}

/* Multiply some patches' rounded pulls with a block of rounded atoms, two pixels at a time. */
static inline __attribute__((always_inline)) void look_at(int some, const Work *work, Coded *const *coded, int64_t from) {
    enum { WIDTH = BLOCK / HELD };
    const Shorts *row = (const Shorts *)(work->columns + from * work->pixels);
    Flags sums[4][WIDTH] = {{{0}}};
    for (int64_t pixel = 0; pixel < work->pixels; pixel += 2, row += WIDTH)
        for (int one = 0; one < some; one++) {
            const Shorts two = pair_of(coded[one]->rounded + pixel);
            for (int part = 0; part < WIDTH; part++) sums[one][part] += multiply_pairs(row[part], two);
        }
    for (int one = 0; one < some; one++)
        for (int part = 0; part < WIDTH; part++)
            ((Lanes *)(coded[one]->slopes + from))[part] =
                __builtin_convertvector(sums[one][part], Lanes) * coded[one]->unit;
}

/* Estimate the slope of the energy along each atom, for a group of patches; a block of atoms stays in the cache. */
static void look(const Work *work, Coded *const *coded, int64_t count) {
    for (int64_t from = 0; from < work->atoms; from += BLOCK) {
        int64_t first = 0;
        for (; first + 4 <= count; first += 4) look_at(4, work, coded + first, from);
        for (; first + 2 <= count; first += 2) look_at(2, work, coded + first, from);
        for (; first < count; first++) look_at(1, work, coded + first, from);
    }
}

/* Weigh residuals. While the threshold falls, Huber's loss is smooth: equal weights would let many atoms tie. */
static void weigh(const Work *work, Coded *mine) {
    const float level = mine->level;
    for (int64_t at = 0; at < work->pixels; at++) {
        const float scale = mine->scale[at], size = size_of(mine->residual[at] * scale);
        const float sharp = most(size, 1), smooth = __builtin_sqrtf(level * level + size * size);
        const float weight = scale * scale / (work->robust ? (level > 1 ? smooth : sharp) : 1);
        mine->weight[at] = weight;
        mine->pull[at] = weight * mine->residual[at];
    }
    const float length = __builtin_sqrtf(dot(work->pixels, mine->pull, mine->pull));
    const float factor = PULL_LENGTH / most(length, 1e-30f);
    for (int64_t at = 0; at < work->pixels; at++) mine->rounded[at] = (int16_t)(int32_t)(mine->pull[at] * factor);
    mine->unit = 1 / (factor * ATOM_UNITS);
}

/* Choose lanes of one vector or another. A macro, because processors without AVX pass no such vectors. */
#define CHOSEN(which, those, others) (((which) & (Flags)(those)) | (~(which) & (Flags)(others)))

/* Find the atom of a lane that would help most, and how much. */
static inline float best_of_lane(const Work *work, const Coded *mine, int64_t lane, int32_t *atom) {
    float best = work->tolerance;
    for (int64_t at = lane; at < work->atoms; at += LANES) {
        const float excess = size_of(mine->slopes[at]) - work->prices[at];
        *atom = excess > best ? (int32_t)at : *atom;
        best = most(excess, best);
    }
    return best;
}

/* Find the atoms that would help most: one for each lane of a vector. */
static inline void best_of_lanes(const Work *work, const Coded *mine, float *best, int32_t *atom) {
    for (int part = 0; part < PARTS; part++) {
        Lanes most_yet = (Lanes){0} + work->tolerance;
        Flags where = {0};
        for (int64_t from = part * HELD; from < work->atoms; from += LANES) {
            const Lanes slopes = *(const Lanes *)(mine->slopes + from);
            const Lanes excess = (Lanes)CHOSEN(slopes < 0, -slopes, slopes) - *(const Lanes *)(work->prices + from);
            const Flags better = excess > most_yet, here = (Flags){0} + (int32_t)from;
            most_yet = (Lanes)CHOSEN(better, excess, most_yet);
            where = CHOSEN(better, here, where);
        }
        ((Lanes *)best)[part] = most_yet;
        ((Flags *)atom)[part] = where;
    }
    for (int lane = 0; lane < LANES; lane++) atom[lane] += lane % HELD;
}

/* Admit the atoms whose slope exceeds their price most; count them. */
static int64_t admit(const Work *work, Coded *mine) {
    const int64_t before = mine->count, wanted = before + work->at_once, end = wanted < ADMITTED ? wanted : ADMITTED;
    float best[LANES];
    int32_t atom[LANES];
    for (int64_t at = 0; at < before; at++) mine->slopes[mine->atom[at]] = 0;
    best_of_lanes(work, mine, best, atom);
    while (mine->count < end) {
        int lane = 0;
        for (int other = 1; other < LANES; other++) lane = best[other] > best[lane] ? other : lane;
        if (!(best[lane] > work->tolerance)) break;
        const int64_t found = atom[lane];
        mine->atom[mine->count] = found;
        mine->price[mine->count] = work->prices[found];
        mine->code[mine->count++] = 0;
        mine->slopes[found] = 0;
        best[lane] = best_of_lane(work, mine, lane, atom + lane);
    }
    for (int64_t at = 0; at < mine->count; at++)
        mine->slope[at] = dot(work->pixels, work->rows + mine->atom[at] * work->pixels, mine->pull);
    return mine->count - before;
}

/* Compute the weighted products of the admitted atoms with each other. */
static void multiply_admitted(const Work *work, Coded *mine) {
    const int64_t pixels = work->pixels, count = mine->count, stride = (count + LANES - 1) / LANES * LANES;
    const float *rows[ADMITTED + 3];
    mine->stride = stride;
    if (!count) return;
    for (int64_t one = 0; one < count + 3; one++)
        rows[one] = work->rows + mine->atom[one < count ? one : count - 1] * pixels;
    for (int64_t one = 0; one < count; one++) {
        float *products = mine->gram + one * stride;
        for (int64_t at = 0; at < pixels; at++) work->weighted[at] = mine->weight[at] * rows[one][at];
        for (int64_t other = 0; other <= one; other += 4) dot_four(pixels, work->weighted, rows + other, products + other);
        for (int64_t other = count; other < stride; other++) products[other] = 0;
        products[one] += mine->ridge;
        mine->slope[one] -= mine->ridge * mine->code[one];
        mine->inverse[one] = 1 / most(products[one], 1e-12f);
        mine->before[one] = mine->code[one];
    }
    for (int64_t one = 0; one < count; one++)
        for (int64_t other = 0; other < one; other++) mine->gram[other * stride + one] = mine->gram[one * stride + other];
    for (int64_t at = count; at < stride; at++) mine->slope[at] = 0;
}

/* Minimise over one code. */
static inline void improve(Coded *mine, int64_t at) {
    const float *row = mine->gram + at * mine->stride, price = mine->price[at];
    const float wanted = mine->code[at] * row[at] + mine->slope[at];
    const float held = most(least(wanted, price), -price);
    const float next = (wanted - held) * mine->inverse[at], step = next - mine->code[at];
    mine->code[at] = next;
    for (int64_t from = 0; from < mine->stride; from += HELD)
        *(Lanes *)(mine->slope + from) -= *(const Lanes *)(row + from) * step;
    mine->largest = most(mine->largest, step * step * row[at]);
}

/* Minimise over the codes of some patches, one after the other, until none gains more than the tolerance squared.
 *
 * A code waits for the one before it, so the processor works on the patches by turns.
 */
static void descend(const Work *work, Coded *const *some, int64_t count) {
    Coded *going[GROUP];
    for (int64_t one = 0; one < count; one++) going[one] = some[one];
    for (int64_t sweep = 0; sweep < work->sweeps && count; sweep++) {
        int64_t longest = 0, left = 0;
        for (int64_t one = 0; one < count; one++) {
            going[one]->largest = 0;
            if (going[one]->count > longest) longest = going[one]->count;
        }
        for (int64_t at = 0; at < longest; at++)
            for (int64_t one = 0; one < count; one++)
                if (at < going[one]->count) improve(going[one], at);
        for (int64_t one = 0; one < count; one++)
            if (going[one]->largest >= work->tolerance * work->tolerance) going[left++] = going[one];
        count = left;
    }
}

/* Update the residuals by what the codes moved, and dismiss atoms without a code; return the largest gain. */
static float settle(const Work *work, Coded *mine) {
    float largest = 0;
    int64_t kept = 0;
    for (int64_t at = 0; at < mine->count; at++) {
        const float step = mine->code[at] - mine->before[at];
        largest = most(largest, step * step * mine->gram[at * mine->stride + at]);
        if (step != 0) add_row(work->pixels, -step, work->rows + mine->atom[at] * work->pixels, mine->residual);
    }
    for (int64_t at = 0; at < mine->count; at++) {
        mine->code[kept] = mine->code[at];
        mine->price[kept] = mine->price[at];
        mine->atom[kept] = mine->atom[at];
        kept += mine->code[at] != 0;
    }
    mine->count = kept;
    return largest;
}

/* Work one round on some patches; mark those that are done. */
static void advance(const Work *work, Coded *const *some, int64_t count, int64_t left, int *done) {
    int64_t admitted[GROUP];
    for (int64_t one = 0; one < count; one++) weigh(work, some[one]);
    look(work, some, count);
    for (int64_t one = 0; one < count; one++) {
        admitted[one] = admit(work, some[one]);
        multiply_admitted(work, some[one]);
    }
    descend(work, some, count);
    for (int64_t one = 0; one < count; one++) {
        const float gain = settle(work, some[one]), level = some[one]->level;
        done[one] = !left || (level <= 1 && !admitted[one] && gain < work->tolerance * work->tolerance);
        some[one]->level = left <= 2 ? 1 : most(level / work->fall, 1);
    }
}

/* Begin a patch without codes; an infinite floor or NaN = missing. */
static void begin(const Work *work, Coded *mine, int64_t length, const float *patch, const float *floors) {
    float sum = 0, known = 0;
    mine->count = 0;
    for (int64_t at = 0; at < work->pixels; at++) {
        const int there = at < length && patch[at] == patch[at];
        mine->scale[at] = there ? 1 / __builtin_sqrtf(floors[at]) : 0;
        mine->residual[at] = mine->scale[at] > 0 ? patch[at] : 0;
        sum += size_of(mine->residual[at]) * mine->scale[at];
        known += mine->scale[at] > 0;
    }
    const float mean = most(sum / most(known, 1), 1);
    mine->level = work->robust ? mean : 1;
    mine->ridge = work->ridge / mean;
}

/* Reconstruct a patch, and sum its absolute codes times their prices. */
static void finish(const Work *work, const Coded *mine, int64_t length, float *fitted, float *spent) {
    *spent = 0;
    for (int64_t at = 0; at < length; at++) fitted[at] = 0;
    for (int64_t one = 0; one < mine->count; one++) {
        *spent += size_of(mine->code[one]) * mine->price[one];
        add_row(length, mine->code[one], work->rows + mine->atom[one] * work->pixels, fitted);
    }
}

/* Count the numbers that `codes_fit` needs as scratch. */
KERNEL int64_t codes_scratch(int64_t pixels, int64_t atoms) {
    return GROUP * (4 * pixels + pixels / 2 + atoms + ADMITTED * ADMITTED) + pixels;
}

/* Fit patches by their sparse codes.
 *
 * n patches of `length` pixels are padded to `pixels`; rows: (atoms, pixels), columns: the same times ATOM_UNITS in whole
 * numbers, by blocks of atoms and pairs of pixels, (blocks, pixels / 2, BLOCK, 2), prices: of each atom's code; pixels and atoms are multiples of 16. floors: noise variances,
 * (n, length). robust: Huber's loss instead of squares. at_once: most atoms that a round admits. sweeps: most passes
 * over the codes in a round. fall: of Huber's threshold, from round to round, a divisor. ridge: cost of half a squared
 * code, times the mean residual. scratch: see `codes_scratch`. fitted: (n, length). spent: (n,), absolute codes times
 * prices.
 */
KERNEL void codes_fit(int64_t n, int64_t length, int64_t pixels, int64_t atoms, const float *rows, const int16_t *columns,
                      const float *prices, const float *patches, const float *floors, int64_t robust, int64_t rounds,
                      int64_t at_once, int64_t sweeps, float tolerance, float fall, float ridge, float *scratch,
                      float *fitted, float *spent) {
    const int64_t share = 4 * pixels + pixels / 2 + atoms + ADMITTED * ADMITTED;
    const Work work = {pixels, atoms, robust, at_once, sweeps, rows, prices, columns, tolerance, fall, ridge,
                       scratch + GROUP * share};
    Coded group[GROUP], *active[GROUP];
    for (int64_t first = 0; first < n; first += GROUP) {
        int64_t count = n - first < GROUP ? n - first : GROUP;
        for (int64_t one = 0; one < count; one++) {
            Coded *mine = active[one] = group + one;
            float *own = scratch + one * share;
            mine->residual = own;
            mine->weight = own + pixels;
            mine->pull = own + 2 * pixels;
            mine->scale = own + 3 * pixels;
            mine->slopes = own + 4 * pixels;
            mine->gram = own + 4 * pixels + atoms;
            mine->rounded = (int16_t *)(own + share - pixels / 2);
            mine->patch = first + one;
            begin(&work, mine, length, patches + mine->patch * length, floors + mine->patch * length);
        }
        for (int64_t left = rounds - 1; left >= 0 && count; left--) {
            int done[GROUP];
            int64_t going = 0;
            advance(&work, active, count, left, done);
            for (int64_t one = 0; one < count; one++) {
                const int64_t patch = active[one]->patch;
                if (done[one]) finish(&work, active[one], length, fitted + patch * length, spent + patch);
                else active[going++] = active[one];
            }
            count = going;
        }
    }
}
