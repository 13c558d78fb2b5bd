/* The least noise of each pixel, as sensors.floor describes it. NaN = missing. */
#include "kernels.h"
#include "logarithm.h"

#define INFINITE __builtin_inf()

static inline double size_of(double value) { return value < 0 ? -value : value; }
static inline double lower(double a, double b) { return b < a ? b : a; }
static inline double higher(double a, double b) { return b < a ? a : b; }

/* Return the median of three; of fewer, the smallest or the centre. Infinite = missing. */
static inline double median(double left, double centre, double right) {
    const double middle = centre < INFINITE ? centre : lower(left, right);
    const double first = left < INFINITE ? left : middle, last = right < INFINITE ? right : middle;
    return higher(lower(first, middle), lower(higher(first, middle), last));
}

/* Take medians of three along a row; scratch: width + 2. */
static void median_along(int64_t width, double *row, double *scratch) {
    scratch[0] = scratch[width + 1] = INFINITE;
    for (int64_t at = 0; at < width; at++) scratch[at + 1] = row[at];
    for (int64_t at = 0; at < width; at++) row[at] = median(scratch[at], scratch[at + 1], scratch[at + 2]);
}

enum { DEPTHS = 4, STAGE = 3 };
/* Rows of depths, and rows of medians, that are held at a time. */

/* Rows of a map on their way through two turns of medians; row r is in place r % DEPTHS or r % STAGE. */
typedef struct {
    int64_t height, width;
    double *depths, *once, *twice, *missing, *shown, *spare;
} Stages;

/* Count the numbers that the noise that a map shows needs as scratch. */
KERNEL int64_t floor_scratch(int64_t width) { return (DEPTHS + 2 * STAGE + 3) * width + 2; }

static Stages stages_of(int64_t height, int64_t width, double *scratch) {
    Stages s = {.height = height, .width = width, .depths = scratch};
    s.once = s.depths + DEPTHS * width, s.twice = s.once + STAGE * width, s.missing = s.twice + STAGE * width;
    s.shown = s.missing + width, s.spare = s.shown + width;
    for (int64_t at = 0; at < width; at++) s.missing[at] = INFINITE;
    return s;
}

static inline void add_difference(double one, double here, double other, double *shown, double *seen) {
    const double found = size_of(one + other - 2 * here);
    *shown = lower(*shown, found < INFINITE ? found : INFINITE);
    *seen += found < INFINITE;
}

/* Compute the smallest second difference of each pixel of a row in four directions; infinite where fewer than two are
 * known, as at all borders. */
static void differences(const Stages *s, int64_t row, double *to) {
    const double *above = s->depths + (row + DEPTHS - 1) % DEPTHS * s->width, *here = s->depths + row % DEPTHS * s->width;
    const double *below = s->depths + (row + 1) % DEPTHS * s->width;
    for (int64_t at = 0; at < s->width; at++) to[at] = INFINITE;
    if (row == 0 || row + 1 == s->height) return;
    for (int64_t at = 1; at < s->width - 1; at++) {
        double shown = INFINITE, seen = 0;
        add_difference(here[at + 1], here[at], here[at - 1], &shown, &seen);
        add_difference(below[at], here[at], above[at], &shown, &seen);
        add_difference(below[at + 1], here[at], above[at - 1], &shown, &seen);
        add_difference(below[at - 1], here[at], above[at + 1], &shown, &seen);
        to[at] = seen > 1 ? shown : INFINITE;
    }
}

/* Return a row of medians, or one that is missing beyond the border. */
static const double *held(const Stages *s, const double *rows, int64_t row) {
    return row < 0 || row >= s->height ? s->missing : rows + row % STAGE * s->width;
}

static void median_down(const Stages *s, const double *rows, int64_t row, double *to) {
    const double *above = held(s, rows, row - 1), *here = held(s, rows, row), *below = held(s, rows, row + 1);
    for (int64_t at = 0; at < s->width; at++) to[at] = median(above[at], here[at], below[at]);
}

/* Take in a row of depths, of values in units of `scale`; return the depths of the row that is done, three before it.
 *
 * What that one shows is in `shown`: its differences, their medians of three along rows and columns, twice, over `unit`.
 */
static const double *advance(const Stages *s, int64_t row, const double *value, double scale, double centre, double unit) {
    const int64_t width = s->width;
    if (row < s->height) {
        double *depths = s->depths + row % DEPTHS * width;
        for (int64_t at = 0; at < width; at++) depths[at] = value[row * width + at] * scale + centre;
    }
    if (row >= 1 && row - 1 < s->height) {
        double *to = s->once + (row - 1) % STAGE * width;
        differences(s, row - 1, to);
        median_along(width, to, s->spare);
    }
    if (row >= 2 && row - 2 < s->height) {
        double *to = s->twice + (row - 2) % STAGE * width;
        median_down(s, s->once, row - 2, to);
        median_along(width, to, s->spare);
    }
    if (row < 3) return 0;
    const double *depths = s->depths + (row - 3) % DEPTHS * width;
    median_down(s, s->twice, row - 3, s->shown);
    for (int64_t at = 0; at < width; at++) {
        const double value_shown = s->shown[at] < INFINITE ? s->shown[at] / unit : 0;
        s->shown[at] = depths[at] - depths[at] == 0 ? value_shown : __builtin_nan("");
    }
    return depths;
}

/* Compute the noise that a map shows around each pixel; scratch: see `floor_scratch`. */
KERNEL void floor_shown(int64_t height, int64_t width, const double *depth, double unit, double *scratch,
                        double *shown) {
    const Stages s = stages_of(height, width, scratch);
    for (int64_t row = 0; row < height + 3; row++)
        if (advance(&s, row, depth, 1, 0, unit))
            for (int64_t at = 0; at < width; at++) *shown++ = s.shown[at];
}

enum { CHUNK = 128 };
/* Pixels that are worked on at once. */

/* A function that is linear between knots and constant beyond them; slopes: between knots, the last one 0. */
typedef struct { int64_t count; const double *places, *heights, *slopes; } Table;

static Table table_of(int64_t count, const double *numbers) {
    return (Table){count, numbers, numbers + count, numbers + 2 * count};
}

/* Evaluate a table at some places. Its knots are searched from those of the last place: neighbours are alike. */
static void evaluate(const Table *table, int64_t n, const double *places, double *heights) {
    int64_t knot = 0;
    for (int64_t at = 0; at < n && table->count == 1; at++) heights[at] = table->heights[0];
    for (int64_t at = 0; at < n && table->count > 1; at++) {
        while (knot + 1 < table->count && places[at] >= table->places[knot + 1]) knot++;
        while (knot > 0 && places[at] < table->places[knot]) knot--;
        const double away = places[at] < table->places[knot] ? 0 : places[at] - table->places[knot];
        heights[at] = table->slopes[knot] * away + table->heights[knot];
    }
}

/* Evaluate a law, a table of logarithms, at some depths. */
static void evaluate_law(const Table *law, int64_t n, const double *depth, double smallest, double *length) {
    double logarithm[CHUNK];
    for (int64_t at = 0; at < n; at++) logarithm[at] = log_of(higher(smallest, size_of(depth[at])), EXACT_LOG);
    evaluate(law, n, logarithm, length);
    for (int64_t at = 0; at < n; at++) length[at] = exp_of(length[at], EXACT_EXP);
}

/* Raise variances to those of the least noise, in units of `scale`.
 *
 * value: depth is value * scale + centre. valid: pixels around which differences show noise, over `unit`. kept: pixels
 * that are not less noisy than windows. steps: table of rounding errors. law: table of the noise of windows, in logarithms
 * of depths that are not below `smallest`; no knots = none. Tables: (3, knots), places, heights and slopes. scratch: see
 * `floor_scratch`.
 */
KERNEL void floor_raise(int64_t height, int64_t width, const double *value, double scale, double centre, double unit,
                        const uint8_t *valid, const uint8_t *kept, int64_t n_steps, const double *steps, int64_t n_law,
                        const double *law, double smallest, double *scratch, double *variance) {
    const Table rounding = table_of(n_steps, steps), windows = table_of(n_law, law);
    const Stages s = stages_of(height, width, scratch);
    double rounded[CHUNK], seen[CHUNK] = {0};
    for (int64_t row = 0; row < height + 3; row++) {
        const double *depth = advance(&s, row, value, scale, centre, unit);
        if (!depth) continue;
        for (int64_t from = 0; from < width; from += CHUNK, depth += CHUNK) {
            const int64_t start = (row - 3) * width + from, some = width - from < CHUNK ? width - from : CHUNK;
            evaluate(&rounding, some, depth, rounded);
            if (n_law) evaluate_law(&windows, some, depth, smallest, seen);
            for (int64_t at = 0; at < some; at++) {
                const double shown = s.shown[from + at], show = valid[start + at] && shown > rounded[at] ? shown : rounded[at];
                const double least_std = (kept[start + at] && seen[at] > show ? seen[at] : show) / scale;
                const double raised = least_std * least_std, given = variance[start + at];
                variance[start + at] = depth[at] == depth[at] && !(given >= raised) ? raised : given;
            }
        }
    }
}
