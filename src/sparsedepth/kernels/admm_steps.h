/* The steps of admm.c for one type of numbers: REAL is the type, NAME(x) the name of a function for it. */

#include "select.h"

static inline REAL NAME(clip)(REAL value, REAL limit) {
    const REAL low = value < -limit ? -limit : value;
    return low > limit ? limit : low;
}

static inline REAL NAME(grown)(REAL q, int64_t growth) {
    const REAL size = growth == GROWTH_ROOT ? SQUARE_ROOT(q) : q * (REAL)0.5;
    return growth == GROWTH_NONE || size < 1 ? 1 : size;
}

/* Update codes plus multipliers by what the codes moved, and compute codes minus multipliers. */
static inline void NAME(threshold)(int64_t n, const REAL *moved, const REAL *limits, int64_t each, REAL relaxation,
                                   REAL *sum, REAL *difference) {
    for (int64_t at = 0; at < n; at++) {
        const REAL limit = limits[each ? at : 0];
        const REAL next = sum[at] - relaxation * NAME(clip)(sum[at], limit) + moved[at];
        sum[at] = next;
        difference[at] = next - 2 * NAME(clip)(next, limit);
    }
}

/* Shrink residuals where their variance is small. */
static inline void NAME(shrink)(int64_t n, const REAL *shift, const REAL *target, const REAL *load,
                                const REAL *per_floor, REAL relaxation, int64_t growth, REAL *dual, REAL *carried,
                                REAL *wanted) {
    const REAL inverse = 1 / relaxation, rest = 2 - relaxation;
    for (int64_t at = 0; at < n; at++) {
        const REAL misfit = shift[at] * inverse + carried[at];
        const REAL much = NAME(grown)(misfit * misfit * per_floor[at], growth) * load[at];
        const REAL relaxed = dual[at] * rest + carried[at] + shift[at];
        const REAL next = relaxed / (much + 1);
        dual[at] = next;
        carried[at] = relaxed - 2 * next;
        wanted[at] = target[at] - carried[at];
    }
}

/* What follows the matrix products of an iteration.
 *
 * Blocks of `rows` patches have `atoms` codes and `pixels` pixels; with `across`, they are transposed. step: the codes'
 * and the residuals' moves, (rows, atoms + pixels). limits: what codes are clipped at, (atoms,). sum and difference:
 * codes plus and minus their multipliers. dual: multipliers of the residuals. carried: residuals minus these. wanted:
 * target minus carried.
 */
KERNEL void NAME(admm_step)(int64_t rows, int64_t atoms, int64_t pixels, int64_t across, const REAL *step,
                            const REAL *limits, REAL *sum, REAL *difference, const REAL *target, const REAL *load,
                            const REAL *per_floor, REAL *dual, REAL *carried, REAL *wanted, REAL relaxation,
                            int64_t growth) {
    const int64_t outer = across ? atoms : rows, inner = across ? rows : atoms, stride = across ? rows : atoms + pixels;
    for (int64_t at = 0; at < outer; at++) {
        const REAL *moved = step + at * stride, *limit = across ? limits + at : limits;
        if (across)
            NAME(threshold)(inner, moved, limit, 0, relaxation, sum + at * inner, difference + at * inner);
        else
            NAME(threshold)(inner, moved, limit, 1, relaxation, sum + at * inner, difference + at * inner);
    }
    const int64_t parts = across ? 1 : rows, length = across ? rows * pixels : pixels;
    for (int64_t part = 0; part < parts; part++) {
        const REAL *shift = across ? step + atoms * rows : step + part * stride + atoms;
        const int64_t at = part * length;
#define SHRINK(growth)                                                                                                 \
    NAME(shrink)(length, shift, target + at, load + at, per_floor + at, relaxation, growth, dual + at, carried + at,  \
                 wanted + at)
        if (growth == GROWTH_ROOT) SHRINK(GROWTH_ROOT);
        else if (growth == GROWTH_SQUARE) SHRINK(GROWTH_SQUARE);
        else SHRINK(GROWTH_NONE);
#undef SHRINK
    }
}

/* Lay one patch out in the units of ADMM: its pixels lie `right` apart in the block. */
static inline void NAME(lay)(int64_t length, int64_t right, const REAL *patch, const REAL *floors, REAL unit, REAL next,
                             REAL penalty, REAL least_floor, REAL *target, REAL *load, REAL *per_floor) {
    const REAL inverse = 1 / unit, square = next * next;
    for (int64_t pixel = 0; pixel < length; pixel++) {
        const REAL floor = floors[pixel] > least_floor ? floors[pixel] : least_floor;
        target[pixel * right] = floor < (REAL)__builtin_inff() ? patch[pixel] * inverse : 0;
        load[pixel * right] = penalty * floor;
        per_floor[pixel * right] = square / floor;
    }
}

/* Lay patches out as a block, in the units of ADMM; an infinite floor = missing.
 *
 * n patches of `length` pixels become `rows` rows of `pixels`, the first at row `idle`. unit: divisors of targets. next:
 * divisors later on, by which floors are measured. penalty: of residuals. least_floor: what rounding allows. Arrays of
 * the block are filled where there is no patch: targets with 0, loads with infinity, per_floor with 0.
 */
KERNEL void NAME(admm_prepare)(int64_t n, int64_t length, int64_t rows, int64_t pixels, int64_t idle, int64_t across,
                               const REAL *patches, const REAL *floors, const REAL *unit, const REAL *next,
                               const REAL *penalty, const REAL *least_floor, REAL *target, REAL *load,
                               REAL *per_floor) {
    for (int64_t row = 0; row < n; row++) {
        const int64_t at = row * length, to = (idle + row) * (across ? 1 : pixels);
#define LAY(right)                                                                                                     \
    NAME(lay)(length, right, patches + at, floors + at, unit[row], next[row], penalty[row], least_floor[row],         \
              target + to, load + to, per_floor + to)
        if (across) LAY(rows);
        else LAY(1);
#undef LAY
    }
}

/* Multiply codes by `primal` of their row; their multipliers stay. */
KERNEL void NAME(admm_rescale)(int64_t rows, int64_t atoms, int64_t across, const REAL *primal, const REAL *limits,
                               REAL *sum, REAL *difference) {
    const int64_t outer = across ? atoms : rows, inner = across ? rows : atoms;
    for (int64_t one = 0; one < outer; one++)
        for (int64_t other = 0; other < inner; other++) {
            const int64_t at = one * inner + other;
            const REAL held = NAME(clip)(sum[at], limits[across ? one : other]);
            const REAL code = (sum[at] - held) * primal[across ? other : one];
            sum[at] = code + held;
            difference[at] = code - held;
        }
}

/* Compute the codes from the sums with their multipliers, and what each row spends: absolute codes times limits. */
KERNEL void NAME(admm_codes)(int64_t rows, int64_t atoms, int64_t across, const REAL *limits, const REAL *sum,
                             REAL *codes, double *spent) {
    for (int64_t row = 0; row < rows; row++) spent[row] = 0;
    for (int64_t one = 0; one < (across ? atoms : rows); one++) {
        double parts[LANES] = {0};
        for (int64_t other = 0; other < (across ? rows : atoms); other++) {
            const int64_t at = one * (across ? rows : atoms) + other;
            const REAL limit = limits[across ? one : other], code = sum[at] - NAME(clip)(sum[at], limit);
            const double size = (double)((code < 0 ? -code : code) * limit);
            codes[at] = code;
            if (across) spent[other] += size;
            else parts[other % LANES] += size;
        }
        for (int64_t lane = 0; lane < LANES && !across; lane++) spent[one] += parts[lane];
    }
}

/* Measure the root mean square of the known pixels of each patch: those with a finite floor.
 *
 * If robust, values are clipped at three times the ninth decile of their sizes. scratch: one patch.
 */
KERNEL void NAME(admm_contrast)(int64_t n, int64_t pixels, const REAL *patches, const REAL *floors, int64_t robust,
                                REAL *scratch, double *contrast) {
    for (int64_t patch = 0; patch < n; patch++) {
        const REAL *mine = patches + patch * pixels, *theirs = floors + patch * pixels;
        int64_t count = 0;
        for (int64_t at = 0; at < pixels; at++) {
            scratch[count] = mine[at] < 0 ? -mine[at] : mine[at];
            count += theirs[at] < (REAL)__builtin_inff();
        }
        const REAL decile = robust && count ? NAME(nth)(scratch, count, 9 * (count - 1) / 10) : 0;
        double peak = 0, sum = 0;
        for (int64_t at = 0; at < count; at++) {
            if (decile > 0 && scratch[at] > 3 * decile) scratch[at] = 3 * decile;
            if (scratch[at] > peak) peak = scratch[at];
        }
        for (int64_t at = 0; at < count && peak > 0; at++) {
            const double size = scratch[at] / peak;
            sum += size * size;
        }
        contrast[patch] = count ? peak * __builtin_sqrt(sum / (double)count) : 0;
    }
}
