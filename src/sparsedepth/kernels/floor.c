/* The least noise of each pixel, as sensors.floor describes it. NaN = missing. */
#include "kernels.h"

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

/* Compute the second difference of a row in one direction: `step` to one neighbour, back to the other. */
static inline void difference(int64_t from, int64_t to, int64_t step, const double *depth, double *shown, double *seen) {
    for (int64_t at = from; at < to; at++) {
        const double found = size_of(depth[at + step] + depth[at - step] - 2 * depth[at]);
        shown[at] = lower(shown[at], found < INFINITE ? found : INFINITE);
        seen[at] += found < INFINITE;
    }
}

/* Compute the smallest second difference of each pixel of a row in four directions; infinite where fewer than two are. */
static void differences(int64_t width, int64_t row, int64_t height, const double *depth, double *shown, double *seen) {
    const double *here = depth + row * width;
    for (int64_t at = 0; at < width; at++) shown[at] = INFINITE, seen[at] = 0;
    difference(1, width - 1, 1, here, shown, seen);
    if (row > 0 && row + 1 < height) {
        difference(0, width, width, here, shown, seen);
        difference(1, width - 1, width + 1, here, shown, seen);
        difference(1, width - 1, width - 1, here, shown, seen);
    }
    for (int64_t at = 0; at < width; at++) shown[at] = seen[at] > 1 ? shown[at] : INFINITE;
}

enum { HELD_ROWS = 3 };
/* Rows of a stage that the next one takes medians of. */

/* Return a row that a stage holds, or one that is missing beyond the border. */
static double *held(double *rows, int64_t row, int64_t height, int64_t width, double *missing) {
    return row < 0 || row >= height ? missing : rows + row % HELD_ROWS * width;
}

static void median_down(int64_t row, int64_t height, int64_t width, double *rows, double *missing, double *to) {
    const double *above = held(rows, row - 1, height, width, missing), *here = held(rows, row, height, width, missing);
    const double *below = held(rows, row + 1, height, width, missing);
    for (int64_t at = 0; at < width; at++) to[at] = median(above[at], here[at], below[at]);
}

/* Count the numbers that `floor_shown` needs as scratch. */
KERNEL int64_t floor_scratch(int64_t width) { return (2 * HELD_ROWS + 2) * width + 2; }

/* Compute the noise that a map shows: its differences, their medians of three along rows and columns, twice.
 *
 * The differences are divided by `unit`. scratch: see `floor_scratch`.
 */
KERNEL void floor_shown(int64_t height, int64_t width, const double *depth, double unit, double *scratch,
                        double *shown) {
    double *once = scratch, *twice = once + HELD_ROWS * width, *missing = twice + HELD_ROWS * width;
    double *spare = missing + width;
    for (int64_t at = 0; at < width; at++) missing[at] = INFINITE;
    for (int64_t row = 0; row < height + 2; row++) {
        if (row < height) {
            differences(width, row, height, depth, once + row % HELD_ROWS * width, spare);
            median_along(width, once + row % HELD_ROWS * width, spare);
        }
        if (row > 0 && row <= height) {
            double *to = twice + (row - 1) % HELD_ROWS * width;
            median_down(row - 1, height, width, once, missing, to);
            median_along(width, to, spare);
        }
        if (row > 1) {
            const double *from = depth + (row - 2) * width;
            double *to = shown + (row - 2) * width;
            median_down(row - 2, height, width, twice, missing, to);
            for (int64_t at = 0; at < width; at++) {
                const double value = to[at] < INFINITE ? to[at] / unit : 0;
                to[at] = from[at] - from[at] == 0 ? value : __builtin_nan("");
            }
        }
    }
}

enum { CHUNK = 128, SERIES = 10, POWERS = 13 };
/* CHUNK: pixels that are worked on at once. SERIES, POWERS: terms of logarithm and exponential, exact to rounding. */

static const double LOG_2 = 0.6931471805599453, LOG_2_HIGH = 0.6931471787393093, LOG_2_LOW = 1.8206359985041462e-09;
static const double SHIFT = 6755399441055744.0; /* 1.5 * 2^52: what is added to it is rounded */
static const double INVERSE_FACTORIALS[POWERS + 1] = {
    1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800,
    1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};

typedef union { double number; uint64_t bits; } Bits;

/* Compute the logarithm of a positive normal number: of its power of two, and of the rest by 2 artanh(s). */
static inline double log_of(double number) {
    const uint64_t root_half = 0x3fe6a09e667f3bcd, one = 0x3ff0000000000000, bits = ((Bits){number}).bits;
    const uint64_t power = (bits - root_half + one) >> 52;
    const double rest = ((Bits){.bits = bits - (power << 52) + one}).number;
    const double exponent = ((Bits){.bits = ((Bits){SHIFT}).bits + power}).number - SHIFT - 1023;
    const double s = (rest - 1) / (rest + 1), square = s * s;
    double sum = 1.0 / (2 * SERIES + 1);
    for (int term = SERIES - 1; term >= 0; term--) sum = sum * square + 1.0 / (2 * term + 1);
    return exponent * LOG_2 + 2 * s * sum;
}

/* Compute exp(x) within the range of normal numbers. */
static inline double exp_of(double x) {
    const double held = x < -700 ? -700 : x > 700 ? 700 : x, shifted = held * (1 / LOG_2) + SHIFT, power = shifted - SHIFT;
    const double rest = (held - power * LOG_2_HIGH) - power * LOG_2_LOW;
    double sum = INVERSE_FACTORIALS[POWERS];
    for (int term = POWERS - 1; term >= 0; term--) sum = sum * rest + INVERSE_FACTORIALS[term];
    return sum * ((Bits){.bits = (((Bits){shifted}).bits - ((Bits){SHIFT}).bits + 1023) << 52}).number;
}

/* A function that is linear between knots and constant beyond them; slopes: between knots, the last one 0. */
typedef struct { int64_t count; const double *places, *heights, *slopes; } Table;

static Table table_of(int64_t count, const double *numbers) {
    return (Table){count, numbers, numbers + count, numbers + 2 * count};
}

/* Evaluate a table at some places. Its knots are searched from those of the last place: neighbours are alike. */
static void evaluate(const Table *table, int64_t n, const double *places, double *heights) {
    int64_t knot = 0;
    for (int64_t at = 0; at < n; at++) {
        while (knot + 1 < table->count && places[at] >= table->places[knot + 1]) knot++;
        while (knot > 0 && places[at] < table->places[knot]) knot--;
        const double away = places[at] < table->places[knot] ? 0 : places[at] - table->places[knot];
        heights[at] = table->slopes[knot] * away + table->heights[knot];
    }
}

/* Evaluate a law, a table of logarithms, at up to CHUNK depths. */
static void evaluate_law(const Table *law, int64_t n, const double *depth, double smallest, double *length) {
    double logarithm[CHUNK];
    for (int64_t at = 0; at < n; at++) logarithm[at] = log_of(higher(smallest, size_of(depth[at])));
    evaluate(law, n, logarithm, length);
    for (int64_t at = 0; at < n; at++) length[at] = exp_of(length[at]);
}

/* Raise variances to those of the least noise, in units of `scale`.
 *
 * value: depth is value * scale + centre. shown: noise that the map shows, read where a pixel is valid. kept: pixels that
 * are not less noisy than windows. steps: table of rounding errors. law: table of the noise of windows, in logarithms of
 * depths that are not below `smallest`; no knots = none. Tables: (3, knots), places, heights and slopes.
 */
KERNEL void floor_raise(int64_t n, const double *value, double scale, double centre, const double *shown,
                        const uint8_t *valid, const uint8_t *kept, int64_t n_steps, const double *steps, int64_t n_law,
                        const double *law, double smallest, double *variance) {
    const Table rounding = table_of(n_steps, steps), windows = table_of(n_law, law);
    for (int64_t from = 0; from < n; from += CHUNK) {
        const int64_t some = n - from < CHUNK ? n - from : CHUNK;
        double depth[CHUNK], rounded[CHUNK], seen[CHUNK];
        for (int64_t at = 0; at < some; at++) depth[at] = value[from + at] * scale + centre;
        evaluate(&rounding, some, depth, rounded);
        for (int64_t at = 0; at < some; at++) seen[at] = 0;
        if (n_law) evaluate_law(&windows, some, depth, smallest, seen);
        for (int64_t at = 0; at < some; at++) {
            const double show = valid[from + at] && shown[from + at] > rounded[at] ? shown[from + at] : rounded[at];
            const double least_std = (kept[from + at] && seen[at] > show ? seen[at] : show) / scale;
            const double raised = least_std * least_std, given = variance[from + at];
            variance[from + at] = depth[at] == depth[at] && !(given >= raised) ? raised : given;
        }
    }
}
