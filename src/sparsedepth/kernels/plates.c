/* Thin plates through the valid pixels of a map: conjugate gradients on the missing ones, one part of them at a time.
 *
 * A bend is a second difference of up to four pixels. The energy is a weighted sum of squared bends. Its matrix has a
 * diagonal and at most twelve other numbers in a row: one for each way two pixels of a bend lie to each other. Missing
 * pixels that no chain of bends joins do not depend on each other: they are different parts.
 */
#include "kernels.h"

enum { KINDS = 3, CORNERS = 4, OTHERS = 12, SUMS = 8 };

#define ROOT_2 1.4142135623730951

/* Along columns, along rows and across both: the pixels of a bend, their number, and their factors. */
static const int PIXELS[KINDS] = {3, 3, 4};
static const int DOWN[KINDS][CORNERS] = {{0, 1, 2}, {0, 0, 0}, {0, 1, 0, 1}};
static const int RIGHT[KINDS][CORNERS] = {{0, 0, 0}, {0, 1, 2}, {0, 0, 1, 1}};
static const double FACTORS[KINDS][CORNERS] = {{1, -2, 1}, {1, -2, 1}, {ROOT_2, -ROOT_2, -ROOT_2, ROOT_2}};

/* The places of neighbours that share a bend: a number for each step down and to the right, from -2 to 2. */
static const int SLOTS[5][5] = {{0, 0, 0, 0, 0}, {0, 1, 2, 3, 0}, {4, 5, 0, 6, 7}, {0, 8, 9, 10, 0}, {0, 0, 11, 0, 0}};

/* Those that come before a pixel. */
enum { BEFORE = 6 };
static const int BEFORE_DOWN[BEFORE] = {0, 0, -1, -1, -1, -2}, BEFORE_RIGHT[BEFORE] = {-1, -2, -1, 0, 1, 0};

/* Find the first pixel of a part, halving the way to it. */
static int32_t first_of(int32_t *before, int32_t pixel) {
    while (before[pixel] != pixel) pixel = before[pixel] = before[before[pixel]];
    return pixel;
}

/* Number the missing pixels of a map part by part, and row by row within a part; return the number of parts.
 *
 * scratch: (2, missing pixels). Receive: number, (height, width), -1 = valid; pixels, (missing), the flat index of each
 * number; ends, (missing), of the numbers of each part.
 */
KERNEL int64_t plates_number(int64_t height, int64_t width, const uint8_t *missing, int32_t *scratch, int32_t *number,
                             int32_t *pixels, int64_t *ends) {
    int64_t n = 0, parts = 0;
    int32_t *before = scratch;
    for (int64_t row = 0; row < height; row++)
        for (int64_t column = 0; column < width; column++) {
            const int64_t at = row * width + column;
            number[at] = -1;
            if (!missing[at]) continue;
            number[at] = before[n] = (int32_t)n;
            pixels[n] = (int32_t)at;
            for (int way = 0; way < BEFORE; way++) {
                const int64_t up = row + BEFORE_DOWN[way], aside = column + BEFORE_RIGHT[way];
                if (up < 0 || aside < 0 || aside >= width || number[up * width + aside] < 0) continue;
                const int32_t one = first_of(before, (int32_t)n), other = first_of(before, number[up * width + aside]);
                if (one < other) before[other] = one;
                else before[one] = other;
            }
            n++;
        }
    int32_t *part = scratch + n;
    for (int64_t at = 0; at < n; at++) {
        const int32_t first = first_of(before, (int32_t)at);
        if (first == at) ends[parts] = 0, part[at] = (int32_t)parts++;
        else part[at] = part[first];
        ends[part[at]]++;
    }
    for (int64_t at = 0, end = 0; at < parts; at++) end += ends[at], ends[at] = end - ends[at];
    for (int64_t at = 0; at < n; at++) number[pixels[at]] = (int32_t)ends[part[at]]++;
    for (int64_t at = 0, left = n; left > 0 && at < height * width; at++)
        if (number[at] >= 0) pixels[number[at]] = (int32_t)at, left--;
    return parts;
}

/* List the bends of each missing pixel that are not those of one before it in the bend; return their number.
 *
 * values: (height, width). fill: 0 = count only. Receive, for each: kind; corners, (4), numbers of missing pixels, -1 =
 * valid or none; offset, what valid pixels contribute. ends: of the bends of each part.
 */
KERNEL int64_t plates_list(int64_t height, int64_t width, const int32_t *number, const int32_t *pixels, int64_t parts,
                           const int64_t *pixel_ends, const double *values, int64_t fill, uint8_t *kinds,
                           int32_t *corners, double *offset, int64_t *ends) {
    int64_t rows = 0, pixel = 0;
    for (int64_t part = 0; part < parts; part++) {
        for (; pixel < pixel_ends[part]; pixel++) {
            const int64_t row = pixels[pixel] / width, column = pixels[pixel] % width;
            for (int kind = 0; kind < KINDS; kind++)
                for (int mine = 0; mine < PIXELS[kind]; mine++) {
                    const int64_t top = row - DOWN[kind][mine], left = column - RIGHT[kind][mine];
                    const int last = PIXELS[kind] - 1;
                    if (top < 0 || left < 0 || top + DOWN[kind][last] >= height || left + RIGHT[kind][last] >= width)
                        continue;
                    int is_first = 1;
                    for (int other = 0; other < mine; other++)
                        is_first &= number[(top + DOWN[kind][other]) * width + left + RIGHT[kind][other]] < 0;
                    if (!is_first) continue;
                    if (fill) {
                        int32_t *which = corners + rows * CORNERS;
                        kinds[rows] = (uint8_t)kind;
                        offset[rows] = 0;
                        for (int corner = 0; corner < CORNERS; corner++) {
                            const int64_t at = (top + DOWN[kind][corner]) * width + left + RIGHT[kind][corner];
                            which[corner] = corner <= last ? number[at] : -1;
                            if (corner <= last && which[corner] < 0) offset[rows] += FACTORS[kind][corner] * values[at];
                        }
                    }
                    rows++;
                }
        }
        ends[part] = rows;
    }
    return rows;
}

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
static double bend_of(int kind, const int32_t *corners, double offset, const double *values) {
    double bend = offset;
    for (int one = 0; one < CORNERS; one++)
        if (corners[one] >= 0) bend += FACTORS[kind][one] * values[corners[one]];
    return bend;
}

/* Compute the bends of a surface; see `plates_list`. values: of the missing pixels. */
KERNEL void plates_bend(int64_t rows, const uint8_t *kinds, const int32_t *corners, const double *offset,
                        const double *values, double *bends) {
    for (int64_t row = 0; row < rows; row++)
        bends[row] = bend_of(kinds[row], corners + row * CORNERS, offset[row], values);
}

/* What the solution of one part works on; all are arrays of the caller. */
typedef struct {
    int64_t n;
    double *others, *diagonal, *descent, *step, *direction, *change; /* others: (n, OTHERS) */
    int32_t *neighbours;                                             /* (n, OTHERS) */
} System;

/* Add a weighted squared bend to the energy: its slope, and its part of the matrix. */
static void add_bend(const System *s, int64_t first, int kind, const int32_t *corners, double weight, double bend) {
    for (int one = 0; one < CORNERS; one++) {
        if (corners[one] < 0) continue;
        const int64_t pixel = corners[one] - first;
        const double weighted = weight * FACTORS[kind][one];
        s->descent[pixel] -= weighted * bend;
        s->diagonal[pixel] += weighted * FACTORS[kind][one];
        for (int other = 0; other < CORNERS; other++)
            if (other != one && corners[other] >= 0) {
                const int down = DOWN[kind][other] - DOWN[kind][one], right = RIGHT[kind][other] - RIGHT[kind][one];
                const int64_t at = pixel * OTHERS + SLOTS[down + 2][right + 2];
                s->others[at] += weighted * FACTORS[kind][other];
                s->neighbours[at] = (int32_t)(corners[other] - first);
            }
    }
}

/* Multiply the matrix by the direction. */
static void multiply(const System *s) {
    for (int64_t at = 0; at < s->n; at++) {
        const double *others = s->others + at * OTHERS, *direction = s->direction;
        const int32_t *near = s->neighbours + at * OTHERS;
        double sums[4] = {s->diagonal[at] * direction[at]};
        for (int other = 0; other < OTHERS; other++) sums[other % 4] += others[other] * direction[near[other]];
        s->change[at] = (sums[0] + sums[2]) + (sums[1] + sums[3]);
    }
}

/* Descend from some values by preconditioned conjugate gradients. */
static void descend(const System *s, int64_t iterations, double tolerance, double least_gradient, double *values) {
    const int64_t n = s->n;
    for (int64_t at = 0; at < n; at++) s->direction[at] = s->step[at] = s->descent[at] / s->diagonal[at];
    double left = dot(n, s->descent, s->step);
    const double quiet = least_gradient * least_gradient * (double)n, relative = tolerance * tolerance * left;
    const double goal = relative > quiet ? relative : quiet;
    for (int64_t iteration = 0; iteration < iterations && left > goal; iteration++) {
        multiply(s);
        const double length = left / dot(n, s->direction, s->change), before = left;
        for (int64_t at = 0; at < n; at++) {
            values[at] += length * s->direction[at];
            s->descent[at] -= length * s->change[at];
            s->step[at] = s->descent[at] / s->diagonal[at];
        }
        left = dot(n, s->descent, s->step);
        for (int64_t at = 0; at < n; at++) s->direction[at] = s->direction[at] * (left / before) + s->step[at];
    }
}

/* Count the numbers that `plates_solve` needs as scratch for the pixels of the largest part. */
KERNEL int64_t plates_scratch(int64_t n) { return n * (OTHERS + 5); }

/* Reduce the weighted sum of squared bends by preconditioned conjugate gradients.
 *
 * parts: pixel_ends and row_ends of them; kinds, corners and offset: see `plates_list`. weights: of each bend. tolerance:
 * of the gradient of a part, relative to the first. least_gradient: root mean square at which it ends in any case.
 * neighbours: 12 for each pixel of the largest part. values: the start, then the result.
 */
KERNEL void plates_solve(int64_t parts, const int64_t *pixel_ends, const int64_t *row_ends, const uint8_t *kinds,
                         const int32_t *corners, const double *offset, const double *weights, int64_t iterations,
                         double tolerance, double least_gradient, double *scratch, int32_t *neighbours, double *values) {
    int64_t first = 0, row = 0;
    for (int64_t part = 0; part < parts; part++, first = pixel_ends[part - 1]) {
        const int64_t n = pixel_ends[part] - first;
        System s = {.n = n, .others = scratch, .neighbours = neighbours};
        s.diagonal = s.others + n * OTHERS, s.descent = s.diagonal + n, s.step = s.descent + n;
        s.direction = s.step + n, s.change = s.direction + n;
        for (int64_t at = 0; at < n * (OTHERS + 2); at++) scratch[at] = 0;
        for (int64_t at = 0; at < n * OTHERS; at++) neighbours[at] = 0;
        for (; row < row_ends[part]; row++) {
            const int32_t *mine = corners + row * CORNERS;
            add_bend(&s, first, kinds[row], mine, weights[row], bend_of(kinds[row], mine, offset[row], values));
        }
        descend(&s, iterations, tolerance, least_gradient, values + first);
    }
}
