/* Thin plates through the valid pixels of a map: conjugate gradients on the missing ones.
 *
 * A bend is a second difference of up to four pixels. The energy is a weighted sum of squared bends. Its matrix has a
 * diagonal and at most twelve other numbers in a row: one for each way two pixels of a bend lie to each other.
 */
#include "kernels.h"

enum { CORNERS = 4, OTHERS = 12, SUMS = 8 };

/* Add up the products of two rows, in eight parts. */
static double dot(int64_t n, const double *a, const double *b) {
    double parts[SUMS] = {0}, rest = 0;
    int64_t at = 0;
    for (; at + SUMS <= n; at += SUMS)
        for (int part = 0; part < SUMS; part++) parts[part] += a[at + part] * b[at + part];
    for (; at < n; at++) rest += a[at] * b[at];
    return rest + (((parts[0] + parts[4]) + (parts[2] + parts[6])) + ((parts[1] + parts[5]) + (parts[3] + parts[7])));
}

/* Bend a surface: factors times its missing pixels, plus what the valid ones contribute. */
static double bend_of(const int32_t *corners, const double *factors, double offset, const double *values) {
    double bend = offset;
    for (int one = 0; one < CORNERS; one++)
        if (corners[one] >= 0) bend += factors[one] * values[corners[one]];
    return bend;
}

/* Compute all bends of a surface.
 *
 * ends: of the rows of each of `kinds` bends. corners: (rows, 4), numbers of missing pixels, -1 = valid or none.
 * factors: (kinds, 4). offset: of each row. values: of the missing pixels. bends: of each row.
 */
KERNEL void plates_bend(int64_t kinds, const int64_t *ends, const int32_t *corners, const double *factors,
                        const double *offset, const double *values, double *bends) {
    int64_t row = 0;
    for (int64_t kind = 0; kind < kinds; kind++)
        for (; row < ends[kind]; row++)
            bends[row] = bend_of(corners + row * CORNERS, factors + kind * CORNERS, offset[row], values);
}

/* Add a weighted squared bend to the energy: its slope, and its part of the matrix. */
static void add_bend(const int32_t *corners, const double *factors, const int64_t *slots, double weight, double bend,
                     double *slope, double *diagonal, double *others, int32_t *neighbours) {
    for (int one = 0; one < CORNERS; one++) {
        const int64_t pixel = corners[one];
        if (pixel < 0) continue;
        const double weighted = weight * factors[one];
        slope[pixel] += weighted * bend;
        diagonal[pixel] += weighted * factors[one];
        for (int other = 0; other < CORNERS; other++)
            if (other != one && corners[other] >= 0) {
                const int64_t at = pixel * OTHERS + slots[one * CORNERS + other];
                others[at] += weighted * factors[other];
                neighbours[at] = corners[other];
            }
    }
}

/* Count the numbers that `plates_solve` needs as scratch for n missing pixels. */
KERNEL int64_t plates_scratch(int64_t n) { return n * (OTHERS + 5); }

/* Reduce the weighted sum of squared bends by preconditioned conjugate gradients.
 *
 * As `plates_bend`; slots: (kinds, 4, 4), which of a pixel's twelve neighbours the other pixel of a bend is. weights: of
 * each row. neighbours: (n, 12). tolerance: of the gradient, relative to the first. values: the start, then the result.
 */
KERNEL void plates_solve(int64_t n, int64_t kinds, const int64_t *ends, const int32_t *corners, const double *factors,
                         const int64_t *slots, const double *offset, const double *weights, int64_t iterations,
                         double tolerance, double *scratch, int32_t *neighbours, double *values) {
    double *others = scratch, *diagonal = others + n * OTHERS, *descent = diagonal + n, *step = descent + n;
    double *direction = step + n, *change = direction + n;
    for (int64_t at = 0; at < n * (OTHERS + 2); at++) scratch[at] = 0;
    for (int64_t at = 0; at < n * OTHERS; at++) neighbours[at] = 0;
    int64_t row = 0;
    for (int64_t kind = 0; kind < kinds; kind++)
        for (; row < ends[kind]; row++) {
            const double bend = bend_of(corners + row * CORNERS, factors + kind * CORNERS, offset[row], values);
            add_bend(corners + row * CORNERS, factors + kind * CORNERS, slots + kind * CORNERS * CORNERS, weights[row],
                     bend, descent, diagonal, others, neighbours);
        }
    for (int64_t at = 0; at < n; at++) {
        descent[at] = -descent[at];
        direction[at] = step[at] = descent[at] / diagonal[at];
    }
    double left = dot(n, descent, step);
    const double goal = tolerance * tolerance * left;
    for (int64_t iteration = 0; iteration < iterations && left > goal; iteration++) {
        for (int64_t at = 0; at < n; at++) {
            double sum = diagonal[at] * direction[at];
            for (int64_t other = at * OTHERS; other < (at + 1) * OTHERS; other++)
                sum += others[other] * direction[neighbours[other]];
            change[at] = sum;
        }
        const double length = left / dot(n, direction, change);
        for (int64_t at = 0; at < n; at++) {
            values[at] += length * direction[at];
            descent[at] -= length * change[at];
            step[at] = descent[at] / diagonal[at];
        }
        const double before = left;
        left = dot(n, descent, step);
        for (int64_t at = 0; at < n; at++) direction[at] = direction[at] * (left / before) + step[at];
    }
}
