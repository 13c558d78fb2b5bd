/* Thin plates through the valid pixels of a map: conjugate gradients on the missing ones, one part of them at a time.
 *
 * A bend is a second difference of up to four pixels. The energy is a weighted sum of squared bends. Its matrix has a
 * diagonal and at most twelve other numbers in a row: one for each way two pixels of a bend lie to each other. Missing
 * pixels that no chain of bends joins do not depend on each other: they are different parts.
 */
#include "kernels.h"
#include "logarithm.h"

enum { KINDS = 3, CORNERS = 4, OTHERS = 12, SUMS = 8 };

/* Along columns, along rows and across both: the pixels of a bend in the order of the map, their number, and factors. */
static const int PIXELS[KINDS] = {3, 3, 4};
static const int DOWN[KINDS][CORNERS] = {{0, 1, 2}, {0, 0, 0}, {0, 0, 1, 1}};
static const int RIGHT[KINDS][CORNERS] = {{0, 0, 0}, {0, 1, 2}, {0, 1, 0, 1}};
static const double FACTORS[KINDS][CORNERS] = {{1, -2, 1}, {1, -2, 1}, {1, -1, -1, 1}};
static const double SQUARES[KINDS] = {1, 1, 2};
/* Weights of the squares of each kind. */

/* The bends of a pixel by its place in them: (kind, place) has this number. */
enum { SHARED = 10 };
static const int FIRST_OF[KINDS] = {0, 3, 6};

/* The neighbours that share a bend with a pixel. */
static const int OTHERS_DOWN[OTHERS] = {-2, -1, -1, -1, 0, 0, 0, 0, 1, 1, 1, 2};
static const int OTHERS_RIGHT[OTHERS] = {0, -1, 0, 1, -2, -1, 1, 2, -1, 0, 1, 0};

/* Those that come before a pixel. */
enum { BEFORE = 6 };
static const int BEFORE_DOWN[BEFORE] = {0, 0, -1, -1, -1, -2}, BEFORE_RIGHT[BEFORE] = {-1, -2, -1, 0, 1, 0};

/* Find the first pixel of a part, halving the way to it. */
static int32_t first_of(int32_t *before, int32_t pixel) {
    while (before[pixel] != pixel) pixel = before[pixel] = before[before[pixel]];
    return pixel;
}

enum { BORDER = 2, VALID = -1, BEYOND = -2 };
/* BORDER: pixels around a map that are numbered BEYOND. */

/* Number the missing pixels of a map part by part, and row by row within a part; return the number of parts.
 *
 * scratch: (2, missing pixels). Receive: number, (height + 4, width + 4), of a map with a border; pixels, (missing), the
 * flat index within that of each number; ends, (missing), of the numbers of each part.
 */
KERNEL int64_t plates_number(int64_t height, int64_t width, const uint8_t *missing, int32_t *scratch, int32_t *number,
                             int32_t *pixels, int64_t *ends) {
    const int64_t pitch = width + 2 * BORDER;
    int64_t n = 0, parts = 0;
    int32_t *before = scratch;
    for (int64_t at = 0; at < pitch * (height + 2 * BORDER); at++) number[at] = BEYOND;
    for (int64_t row = 0; row < height; row++)
        for (int64_t column = 0; column < width; column++) {
            const int64_t at = (row + BORDER) * pitch + column + BORDER;
            number[at] = VALID;
            if (!missing[row * width + column]) continue;
            number[at] = before[n] = (int32_t)n;
            pixels[n] = (int32_t)at;
            for (int way = 0; way < BEFORE; way++) {
                const int32_t near = number[at + BEFORE_DOWN[way] * pitch + BEFORE_RIGHT[way]];
                if (near < 0) continue;
                const int32_t one = first_of(before, (int32_t)n), other = first_of(before, near);
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
    for (int64_t at = 0; at < n; at++) {
        before[at] = pixels[at];
        number[pixels[at]] = (int32_t)ends[part[at]]++;
    }
    for (int64_t at = 0; at < n; at++) pixels[number[before[at]]] = before[at];
    return parts;
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

/* What the solution of one part works on. Numbers of pixels are those within the part; n = a valid pixel, or none. */
typedef struct {
    int64_t n, rows;
    double *values, *direction;                           /* of the pixels, and 0 behind them */
    double *others, *diagonal, *inverse, *descent;        /* others: (n, OTHERS); inverse: of the diagonal */
    double *step, *change;
    double *offset, *weights, *bends;                     /* of the bends, and 0 behind them; offset: of valid pixels */
    int32_t *neighbours, *shared, *corners;               /* (n, OTHERS), (n, SHARED) and (rows, CORNERS) */
    uint8_t *kinds;
} System;

/* Count the doubles, then the whole numbers of 32 bits, then the bytes that a part needs as scratch. */
KERNEL void plates_scratch(int64_t height, int64_t width, int64_t n, int64_t *sizes) {
    const int64_t most = SHARED * n, all = KINDS * height * width, rows = most < all ? most : all;
    sizes[0] = n * (OTHERS + 7) + 2 + 3 * (rows + 1);
    sizes[1] = n * (OTHERS + SHARED) + rows * CORNERS;
    sizes[2] = rows;
}

static System system_of(int64_t n, double *doubles, int32_t *numbers, uint8_t *bytes, int64_t rows) {
    System s = {.n = n, .values = doubles, .neighbours = numbers, .kinds = bytes};
    s.direction = s.values + n + 1, s.others = s.direction + n + 1, s.diagonal = s.others + n * OTHERS;
    s.inverse = s.diagonal + n, s.descent = s.inverse + n, s.step = s.descent + n, s.change = s.step + n;
    s.offset = s.change + n, s.weights = s.offset + rows + 1, s.bends = s.weights + rows + 1;
    s.shared = s.neighbours + n * OTHERS, s.corners = s.shared + n * SHARED;
    return s;
}

/* A map, and the numbers of its missing pixels with a border; first: of the part that is worked on. */
typedef struct {
    int64_t width, pitch, first;
    const int32_t *number;
    double *values;
} Map;

/* Return the value of a pixel by its index in the map with a border. */
static double *value_at(const Map *map, int64_t at) {
    const uint32_t row = (uint32_t)at / (uint32_t)map->pitch;
    return map->values + at - (int64_t)row * 2 * BORDER - BORDER - BORDER * map->width;
}

/* List a bend: its missing pixels, and what its valid ones contribute. */
static void list_bend(System *s, const Map *map, int kind, int64_t from) {
    int32_t *corners = s->corners + s->rows * CORNERS;
    double offset = 0;
    for (int one = 0; one < PIXELS[kind]; one++) {
        const int64_t at = from + DOWN[kind][one] * map->pitch + RIGHT[kind][one];
        const int32_t number = map->number[at];
        corners[one] = (int32_t)(number < 0 ? s->n : number - map->first);
        if (number < 0) offset += FACTORS[kind][one] * *value_at(map, at);
    }
    for (int one = PIXELS[kind]; one < CORNERS; one++) corners[one] = (int32_t)s->n;
    s->offset[s->rows] = offset;
    s->kinds[s->rows++] = (uint8_t)kind;
}

/* Find the bend of which a pixel is in some place: with a missing pixel before it in the bend, or listed now; -1 = none. */
static int32_t find_bend(System *s, const Map *map, int kind, int place, int64_t at) {
    const int last = PIXELS[kind] - 1;
    const int64_t from = at - DOWN[kind][place] * map->pitch - RIGHT[kind][place];
    if (map->number[from] == BEYOND) return -1;
    if (map->number[from + DOWN[kind][last] * map->pitch + RIGHT[kind][last]] == BEYOND) return -1;
    for (int other = 0; other < place; other++) {
        const int32_t before = map->number[from + DOWN[kind][other] * map->pitch + RIGHT[kind][other]];
        if (before >= 0) return s->shared[(before - map->first) * SHARED + FIRST_OF[kind] + other];
    }
    list_bend(s, map, kind, from);
    return (int32_t)s->rows - 1;
}

/* List the neighbours and the bends of all pixels of a part. A bend beyond the border has a number of its own. */
static void list_part(System *s, const Map *map, const int32_t *pixels) {
    s->rows = 0;
    for (int64_t at = 0; at < s->n; at++) {
        s->values[at] = *value_at(map, pixels[at]);
        for (int other = 0; other < OTHERS; other++) {
            const int32_t number = map->number[pixels[at] + OTHERS_DOWN[other] * map->pitch + OTHERS_RIGHT[other]];
            s->neighbours[at * OTHERS + other] = (int32_t)(number < 0 ? s->n : number - map->first);
        }
        for (int kind = 0; kind < KINDS; kind++)
            for (int place = 0; place < PIXELS[kind]; place++)
                s->shared[at * SHARED + FIRST_OF[kind] + place] = find_bend(s, map, kind, place, pixels[at]);
    }
    for (int64_t at = 0; at < s->n * SHARED; at++) s->shared[at] = s->shared[at] < 0 ? (int32_t)s->rows : s->shared[at];
    s->values[s->n] = s->direction[s->n] = s->weights[s->rows] = s->bends[s->rows] = 0;
}

/* Compute all bends of the surface. */
static void bend(const System *s) {
    for (int64_t row = 0; row < s->rows; row++) {
        const int32_t *corners = s->corners + row * CORNERS;
        const double *factors = FACTORS[s->kinds[row]], *values = s->values;
        s->bends[row] = s->offset[row] + ((factors[0] * values[corners[0]] + factors[1] * values[corners[1]]) +
                                          (factors[2] * values[corners[2]] + factors[3] * values[corners[3]]));
    }
}

/* Set the matrix of the weighted squared bends, and the descent of their sum. */
static void set_matrix(const System *s) {
    for (int64_t at = 0; at < s->n; at++) {
        const int32_t *rows = s->shared + at * SHARED;
        double w[SHARED], *others = s->others + at * OTHERS, descent = 0;
        for (int one = 0; one < SHARED; one++) w[one] = (one < FIRST_OF[2] ? 1 : SQUARES[2]) * s->weights[rows[one]];
        for (int kind = 0; kind < KINDS; kind++)
            for (int place = 0; place < PIXELS[kind]; place++) {
                const int one = FIRST_OF[kind] + place;
                descent -= FACTORS[kind][place] * w[one] * s->bends[rows[one]];
            }
        s->descent[at] = descent;
        s->diagonal[at] = (w[0] + 4 * w[1] + w[2]) + (w[3] + 4 * w[4] + w[5]) + ((w[6] + w[7]) + (w[8] + w[9]));
        others[0] = w[2];
        others[1] = w[9];
        others[2] = -2 * (w[1] + w[2]) - (w[8] + w[9]);
        others[3] = w[8];
        others[4] = w[5];
        others[5] = -2 * (w[4] + w[5]) - (w[7] + w[9]);
        others[6] = -2 * (w[3] + w[4]) - (w[6] + w[8]);
        others[7] = w[3];
        others[8] = w[7];
        others[9] = -2 * (w[0] + w[1]) - (w[6] + w[7]);
        others[10] = w[6];
        others[11] = w[0];
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

/* Reduce the weighted sum of squared bends by preconditioned conjugate gradients, until the gradient is small. */
static void descend(const System *s, int64_t iterations, double tolerance, double least_gradient) {
    const int64_t n = s->n;
    set_matrix(s);
    for (int64_t at = 0; at < n; at++) {
        s->inverse[at] = 1 / s->diagonal[at];
        s->direction[at] = s->step[at] = s->descent[at] * s->inverse[at];
    }
    double left = dot(n, s->descent, s->step);
    const double quiet = least_gradient * least_gradient * (double)n, relative = tolerance * tolerance * left;
    const double goal = relative > quiet ? relative : quiet;
    for (int64_t iteration = 0; iteration < iterations && left > goal; iteration++) {
        multiply(s);
        const double length = left / dot(n, s->direction, s->change), before = left;
        for (int64_t at = 0; at < n; at++) {
            s->values[at] += length * s->direction[at];
            s->descent[at] -= length * s->change[at];
            s->step[at] = s->descent[at] * s->inverse[at];
        }
        left = dot(n, s->descent, s->step);
        for (int64_t at = 0; at < n; at++) s->direction[at] = s->direction[at] * (left / before) + s->step[at];
    }
    bend(s);
}

/* Set the weights of bends to (1 + (bend * inverse_scale)^2)^power. */
static void reweight(const System *s, double inverse_scale, double power) {
    double *weights = s->weights;
    const int64_t rows = s->rows;
    for (int64_t row = 0; row < rows; row++) {
        const double bent = s->bends[row] * inverse_scale;
        weights[row] = 1 + SQUARES[s->kinds[row]] * (bent * bent);
    }
    for (int64_t row = 0; row < rows; row++) weights[row] = exp_of(power * log_of(weights[row], NINE_DIGITS_LOG), NINE_DIGITS_EXP);
}

/* Fill the missing pixels of a map by plates.
 *
 * number, pixels, parts and ends: see `plates_number`. iterations, tolerance: most iterations of the plate and of each
 * reweighting, and the gradient at which they end, relative to the first. least_gradient: root mean square at which they
 * end in any case. A reweighting gives bends the weights (1 + (bend / bend_scale)^2)^power. doubles, numbers, bytes: see
 * `plates_scratch`. plate: the start, then the plate. robust: receives the plate after all reweightings.
 */
KERNEL void plates_fill(int64_t height, int64_t width, const int32_t *number, const int32_t *pixels, int64_t parts,
                        const int64_t *ends, const int64_t *iterations, const double *tolerance, double least_gradient,
                        int64_t reweightings, double bend_scale, double power, double *doubles, int32_t *numbers,
                        uint8_t *bytes, double *plate, double *robust) {
    Map map = {width, width + 2 * BORDER, 0, number, plate};
    for (int64_t part = 0; part < parts; part++, map.first = ends[part - 1]) {
        const int64_t n = ends[part] - map.first, most = SHARED * n, all = KINDS * height * width;
        System s = system_of(n, doubles, numbers, bytes, most < all ? most : all);
        list_part(&s, &map, pixels + map.first);
        for (int64_t row = 0; row < s.rows; row++) s.weights[row] = 1;
        bend(&s);
        descend(&s, iterations[0], tolerance[0], least_gradient);
        for (int64_t at = 0; at < n; at++) *value_at(&map, pixels[map.first + at]) = s.values[at];
        for (int64_t turn = 0; turn < reweightings; turn++) {
            reweight(&s, 1 / bend_scale, power);
            descend(&s, iterations[1], tolerance[1], least_gradient);
        }
        for (int64_t at = 0; at < n; at++) robust[value_at(&map, pixels[map.first + at]) - plate] = s.values[at];
    }
}
