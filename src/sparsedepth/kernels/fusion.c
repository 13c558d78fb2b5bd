/* Second-order stereo: the costs of a map, and of every choice between two maps (stereo/fusion.py has the energy).
 *
 * Maps are (2, height, width): the current one and the proposal. A sample is a pixel of one of them, numbered map by
 * map, then row by row.
 */
#include "kernels.h"

static const float SAME_LINE_PX = 0.5f;

typedef struct {
    int64_t height, width, n; /* pixels */
    const float *maps, *seen, *hidden; /* (2, height, width): disparities, costs of samples seen and hidden */
    const float *along_rows, *along_columns; /* the most that bends cost around inner pixels */
    float bend; /* second difference from which on they do */
} Energy;

/* Samples of one row by where they land in the right view, in bins of half a pixel. */
typedef struct {
    int32_t *first; /* of each bin, 2 * width + 2 of them; -1 = none */
    int32_t *next;  /* of each sample of the row */
    int64_t count;
} Bins;

static inline Bins bins_in(int32_t *room, int64_t width) {
    return (Bins){room, room + 2 * width + 2, 2 * width + 2};
}

/* The bin of a place; -1 if what lands there is not seen and hides nothing that is. */
static inline int64_t bin_of(const Bins *bins, float place) {
    if (place <= -SAME_LINE_PX) return -1;
    const int64_t bin = place < 0 ? 0 : 1 + (int64_t)(place / SAME_LINE_PX);
    return bin < bins->count ? bin : bins->count - 1;
}

static inline void drop(const Bins *bins, int32_t sample, float place) {
    const int64_t bin = bin_of(bins, place);
    if (bin < 0) return;
    bins->next[sample] = bins->first[bin];
    bins->first[bin] = sample;
}

static inline void clear(const Bins *bins) {
    for (int64_t bin = 0; bin < bins->count; bin++) bins->first[bin] = -1;
}

static inline int on_one_line(float place, float other) { return __builtin_fabsf(place - other) < SAME_LINE_PX; }

/* Whether another pixel of a row, nearer to the cameras, lands where one does. */
static int is_hidden(const Bins *bins, const float *disparity, int64_t column) {
    const float mine = disparity[column], place = (float)column - mine;
    if (place < 0) return 0;
    const int64_t bin = bin_of(bins, place);
    for (int64_t at = bin - 1; at <= bin + 1 && at < bins->count; at++)
        for (int32_t x = bins->first[at]; x >= 0; x = bins->next[x])
            if (disparity[x] > mine && on_one_line((float)x - disparity[x], place)) return 1;
    return 0;
}

static inline float bend_cost(float before, float centre, float after, float most_cost, float bend) {
    return most_cost * least(__builtin_fabsf(before - 2 * centre + after) / bend, 1);
}

/* Add the cost of bends along an axis to that of the pixels in their middle. */
static void add_bends(const Energy *e, const float *disparity, double *costs, int vertical) {
    const int64_t step = vertical ? e->width : 1;
    const int64_t height = e->height - 2 * vertical, width = e->width - 2 * !vertical;
    const float *most_cost = vertical ? e->along_columns : e->along_rows;
    for (int64_t row = 0; row < height; row++)
        for (int64_t column = 0; column < width; column++) {
            const float *at = disparity + row * e->width + column;
            costs[row * e->width + column + step] +=
                bend_cost(at[0], at[step], at[2 * step], most_cost[row * width + column], e->bend);
        }
}

/* Compute what each pixel costs if it is taken from one of two maps, with the bends around it; return the sum.
 *
 * taken: 1 = from the proposal. disparity: receives the map (height, width). bins: workspace (3 * width + 2).
 */
KERNEL double fusion_costs(int64_t height, int64_t width, const float *maps, const float *seen, const float *hidden,
                           const float *along_rows, const float *along_columns, float bend, const uint8_t *taken,
                           float *disparity, int32_t *room, double *costs) {
    const int64_t n = height * width;
    const Energy e = {height, width, n, maps, seen, hidden, along_rows, along_columns, bend};
    const Bins bins = bins_in(room, width);
    for (int64_t p = 0; p < n; p++) disparity[p] = maps[taken[p] ? n + p : p];
    for (int64_t row = 0; row < height; row++) {
        const float *here = disparity + row * width;
        clear(&bins);
        for (int64_t x = 0; x < width; x++) drop(&bins, (int32_t)x, (float)x - here[x]);
        for (int64_t x = 0; x < width; x++) {
            const int64_t p = row * width + x, sample = taken[p] ? n + p : p;
            costs[p] = is_hidden(&bins, here, x) ? hidden[sample] : seen[sample];
        }
    }
    add_bends(&e, disparity, costs, 0);
    add_bends(&e, disparity, costs, 1);
    double sum = 0;
    for (int64_t p = 0; p < n; p++) sum += costs[p];
    return sum;
}

/* A polynomial under construction. Pairs of near pixels are added up: roof duality is weaker if an edge is split. */
typedef struct {
    int64_t n, width, variables, count, room, far_count, far_room;
    double *slope;
    double *near; /* of each pixel with the one 1 and 2 to the right, 1 and 2 below */
    int32_t *first, *second;
    double *coupling;
    int32_t *far_first, *far_second; /* other pairs of pixels, which the caller adds up */
    double *far_coupling;
} Terms;

/* Add a pair; if there is no room, only count it. */
static inline void add_pair(Terms *t, int64_t first, int64_t second, double coupling) {
    if (t->count < t->room) {
        t->first[t->count] = (int32_t)first;
        t->second[t->count] = (int32_t)second;
        t->coupling[t->count] = coupling;
    }
    t->count++;
}

/* Add a pair of pixels of one row. */
static inline void add_in_row(Terms *t, int64_t one, int64_t other, double coupling) {
    const int64_t first = one < other ? one : other, second = one < other ? other : one;
    if (second - first <= 2) {
        t->near[4 * first + second - first - 1] += coupling;
        return;
    }
    if (t->far_count < t->far_room) {
        t->far_first[t->far_count] = (int32_t)first;
        t->far_second[t->far_count] = (int32_t)second;
        t->far_coupling[t->far_count] = coupling;
    }
    t->far_count++;
}

/* Add the costs of a triple of pixels, from p on, with an auxiliary variable if it is no sum of pairs. */
static inline void add_triple(const Energy *e, Terms *t, int64_t p, int vertical, float most_cost, double least_cubic) {
    const int64_t step = vertical ? e->width : 1;
    const float *low = e->maps + p, *high = low + e->n;
    if (low[0] == high[0] && low[step] == high[step] && low[2 * step] == high[2 * step]) return;
    double c[8]; /* costs of 000, 001, ..., then coefficients of 1, z, y, yz, x, xz, xy, xyz */
    for (int k = 0; k < 8; k++)
        c[k] = bend_cost((k & 4 ? high : low)[0], (k & 2 ? high : low)[step], (k & 1 ? high : low)[2 * step], most_cost,
                         e->bend);
    for (int axis = 1; axis < 8; axis *= 2)
        for (int k = 0; k < 8; k++)
            if (k & axis) c[k] -= c[k ^ axis];
    const double cubic = c[7], more = cubic > 0 ? cubic : 0;
    t->slope[p] += c[4];
    t->slope[p + step] += c[2];
    t->slope[p + 2 * step] += c[1];
    /* c xyz for c > 0 is c times the least over v of xy + xz + yz + v (1 - x - y - z); */
    t->near[4 * p + 2 * vertical] += c[6] + more;
    t->near[4 * (p + step) + 2 * vertical] += c[3] + more;
    t->near[4 * p + 2 * vertical + 1] += c[5] + more;
    if (__builtin_fabs(cubic) <= least_cubic) return;
    /* for c < 0 it is c times the least over w of w (x + y + z - 2). */
    const int64_t help = t->variables++;
    t->slope[help] = cubic > 0 ? cubic : -2 * cubic;
    for (int k = 0; k < 3; k++) add_pair(t, p + k * step, help, -__builtin_fabs(cubic));
}

static void add_triples(const Energy *e, Terms *t, int vertical, double least_cubic) {
    const int64_t height = e->height - 2 * vertical, width = e->width - 2 * !vertical;
    const float *most_cost = vertical ? e->along_columns : e->along_rows;
    for (int64_t row = 0; row < height; row++)
        for (int64_t column = 0; column < width; column++)
            add_triple(e, t, row * e->width + column, vertical, most_cost[row * width + column], least_cubic);
}

/* A pixel's choice, or that it does not choose so: x, or 1 - x. */
typedef struct {
    int64_t pixel;
    int takes;
} Literal;

/* Add the linear part of a price where a literal and another variable's hold; return the coupling. */
static inline double add_product(Terms *t, Literal one, Literal other, double price) {
    const double sign = one.takes ? 1 : -1, other_sign = other.takes ? 1 : -1;
    if (!other.takes) t->slope[one.pixel] += sign * price;
    if (!one.takes) t->slope[other.pixel] += other_sign * price;
    return sign * other_sign * price;
}

/* Add the price of a sample that others hide: one, or, with an auxiliary variable, several. */
static void add_hidden(Terms *t, Literal sample, const Literal *hiders, int64_t count, double price) {
    if (count == 1) {
        add_in_row(t, sample.pixel, hiders[0].pixel, add_product(t, sample, hiders[0], price));
        return;
    }
    /* The price times the least over v of a (1 - v) + v (b + c + ...), which is a (b or c or ...). */
    const Literal help = {t->variables++, 1};
    t->slope[help.pixel] = 0;
    t->slope[sample.pixel] += sample.takes ? price : -price;
    add_pair(t, sample.pixel, help.pixel, add_product(t, sample, help, -price));
    for (int64_t k = 0; k < count; k++) add_pair(t, hiders[k].pixel, help.pixel, add_product(t, hiders[k], help, price));
}

/* Find the samples that hide one of a row; return their number, or -1 if a pixel hides it whichever it takes.
 *
 * takes: of each pixel of the row, zero at first and afterwards: which of its samples hide, as bits.
 */
static int64_t find_hiders(const Energy *e, const Bins *bins, int64_t row, int64_t sample, int32_t *takes,
                           Literal *hiders) {
    const float *disparity = e->maps + row * e->width;
    const int64_t map = sample / e->width, column = sample % e->width;
    const float mine = disparity[map * e->n + column], place = (float)column - mine;
    int64_t count = 0, certain = 0;
    if (place < 0) return 0;
    const int64_t bin = bin_of(bins, place);
    for (int64_t at = bin - 1; at <= bin + 1 && at < bins->count; at++)
        for (int32_t k = bins->first[at]; k >= 0; k = bins->next[k]) {
            const int64_t other_map = k >= e->width, x = k - other_map * e->width;
            const float other = disparity[other_map * e->n + x];
            if (x == column || !(other > mine) || !on_one_line((float)x - other, place)) continue;
            certain |= takes[x];
            takes[x] = 1;
            hiders[count++] = (Literal){row * e->width + x, (int)other_map};
        }
    for (int64_t k = 0; k < count; k++) takes[hiders[k].pixel - row * e->width] = 0;
    return certain ? -1 : count;
}

static void add_visibility(const Energy *e, Terms *t, const Bins *bins, int64_t row, int32_t *takes, Literal *hiders) {
    const float *disparity = e->maps + row * e->width;
    clear(bins);
    for (int32_t k = 0; k < 2 * e->width; k++) {
        const int64_t map = k >= e->width, x = k - map * e->width;
        drop(bins, k, (float)x - disparity[map * e->n + x]);
    }
    for (int64_t sample = 0; sample < 2 * e->width; sample++) {
        const int64_t map = sample >= e->width, p = row * e->width + sample - map * e->width;
        const double price = (double)e->hidden[map * e->n + p] - e->seen[map * e->n + p];
        const int64_t count = find_hiders(e, bins, row, sample, takes, hiders);
        if (count < 0)
            t->slope[p] += map ? price : -price;
        else if (count > 0)
            add_hidden(t, (Literal){p, (int)map}, hiders, count, price);
    }
}

static void add_near(Terms *t) {
    const int64_t steps[4] = {1, 2, t->width, 2 * t->width};
    for (int64_t k = 0; k < 4 * t->n; k++)
        if (t->near[k] != 0) add_pair(t, k / 4, k / 4 + steps[k % 4], t->near[k]);
}

/* Build the energy of every choice between two maps, up to a constant: a polynomial of pixels, then auxiliary variables.
 *
 * sizes: room for pairs and for far pairs of pixels; receives the numbers of variables, pairs and far pairs. Where there
 * is less room than that, nothing of the rest is right. slope: room for 5 * height * width. near: zero at first,
 * (height, width, 4). bins: workspace (4 * width + 2), takes: zero, (width); hiders: (2 * width, 2) of 64 bits.
 */
KERNEL void fusion_terms(int64_t height, int64_t width, const float *maps, const float *seen, const float *hidden,
                         const float *along_rows, const float *along_columns, float bend, double least_cubic,
                         int64_t *sizes, double *slope, double *near, int32_t *first, int32_t *second, double *coupling,
                         int32_t *far_first, int32_t *far_second, double *far_coupling, int32_t *room, int32_t *takes,
                         void *hiders) {
    const int64_t n = height * width;
    const Energy e = {height, width, n, maps, seen, hidden, along_rows, along_columns, bend};
    const Bins bins = bins_in(room, width);
    Terms t = {n,     width, n,     0,      sizes[1], 0,         sizes[2],   slope,
               near, first, second, coupling, far_first, far_second, far_coupling};
    for (int64_t p = 0; p < n; p++) slope[p] = (double)seen[n + p] - seen[p];
    add_triples(&e, &t, 0, least_cubic);
    add_triples(&e, &t, 1, least_cubic);
    for (int64_t row = 0; row < height; row++) add_visibility(&e, &t, &bins, row, takes, hiders);
    add_near(&t);
    sizes[0] = t.variables;
    sizes[1] = t.count;
    sizes[2] = t.far_count;
}
