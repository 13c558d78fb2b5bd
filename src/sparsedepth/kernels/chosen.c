/* Neighbours of chosen pixels, thirty-two pixels at a time: nearest in depth, medians, extremes.
 *
 * A pixel is given by its place in a map that is padded with NaN, its neighbours by what takes it to them. Neighbours
 * come ring by ring: those of a ring count for it and for the wider ones. NaN = missing.
 */
#include "kernels.h"

enum { PIXELS = 32, SOME = 11, MIDDLE = 13, MOST = 16 };

/* Insert a number for each of thirty-two pixels into ascending lists; the largest falls out. */
static inline __attribute__((always_inline)) void insert(int kept,
                                                                           float (*restrict list)[PIXELS], const float *restrict number) {
    float carried[PIXELS];
    for (int one = 0; one < PIXELS; one++) carried[one] = number[one];
    for (int rank = 0; rank < kept; rank++)
        for (int one = 0; one < PIXELS; one++) {
            const float held = list[rank][one], next = carried[one];
            list[rank][one] = least(held, next);
            carried[one] = most(held, next);
        }
}

/* Gather the places of thirty-two pixels; the last one stands in for those that are not there. */
static inline int64_t gather(int64_t first, int64_t n, const int64_t *centre, int64_t *place) {
    const int64_t count = n - first < PIXELS ? n - first : PIXELS;
    for (int64_t one = 0; one < PIXELS; one++) place[one] = centre[first + (one < count ? one : count - 1)];
    return count;
}

static void empty(int64_t kept, float (*list)[PIXELS]) {
    for (int64_t rank = 0; rank < kept; rank++)
        for (int one = 0; one < PIXELS; one++) list[rank][one] = __builtin_inff();
}

/* Sort the distances in depth to the neighbours of each ring, the smallest first; infinite where there are too few.
 *
 * ends: numbers of neighbours up to each ring. kept: 16 at most. out: (rings, kept, n).
 */
KERNEL void chosen_nearest(int64_t n, const int64_t *centre, const float *values, int64_t rings, const int64_t *ends,
                           const int64_t *shifts, int64_t kept, float *out) {
    float list[MOST][PIXELS], distance[PIXELS];
    int64_t place[PIXELS];
    for (int64_t first = 0; first < n; first += PIXELS) {
        const int64_t count = gather(first, n, centre, place);
        empty(MOST, list);
        for (int64_t ring = 0, at = 0; ring < rings; ring++) {
            for (; at < ends[ring]; at++) {
                for (int one = 0; one < PIXELS; one++) {
                    const float apart = values[place[one] + shifts[at]] - values[place[one]];
                    const float size = apart < 0 ? -apart : apart;
                    distance[one] = size == size ? size : __builtin_inff();
                }
                if (kept <= SOME) insert(SOME, list, distance);
                else insert(MOST, list, distance);
            }
            for (int64_t rank = 0; rank < kept; rank++)
                for (int64_t one = 0; one < count; one++) out[(ring * kept + rank) * n + first + one] = list[rank][one];
        }
    }
}

/* Return the place of the median of so many numbers in order: of two in the middle, the one at an even place. */
static inline int64_t middle(int64_t count) {
    const int64_t half = (count - 1) / 2;
    return count ? half + ((count - 1) % 2 && half % 2) : 0;
}

/* Find the median of the neighbours of each ring, then of all of them the least, the greatest, and the number of those
 * less than a limit away; 0 where there are none.
 *
 * There are at most 24 neighbours. limits: (n,). out: (rings + 3, n).
 */
KERNEL void chosen_spread(int64_t n, const int64_t *centre, const float *values, int64_t rings, const int64_t *ends,
                          const int64_t *shifts, const float *limits, float *out) {
    float list[MOST][PIXELS], next[PIXELS], highest[PIXELS];
    int64_t place[PIXELS];
    for (int64_t first = 0; first < n; first += PIXELS) {
        const int64_t count = gather(first, n, centre, place);
        int32_t known[PIXELS] = {0}, similar[PIXELS] = {0};
        empty(MOST, list);
        for (int one = 0; one < PIXELS; one++) highest[one] = -__builtin_inff();
        for (int64_t ring = 0, at = 0; ring < rings; ring++) {
            for (; at < ends[ring]; at++) {
                for (int one = 0; one < PIXELS; one++) {
                    const float value = values[place[one] + shifts[at]], apart = value - values[place[one]];
                    const float limit = limits[first + (one < count ? one : count - 1)];
                    const int there = value == value;
                    known[one] += there;
                    similar[one] += (apart < 0 ? -apart : apart) < limit;
                    next[one] = there ? value : __builtin_inff();
                    highest[one] = most(highest[one], there ? value : -__builtin_inff());
                }
                insert(MIDDLE, list, next);
            }
            for (int64_t one = 0; one < count; one++)
                out[ring * n + first + one] = known[one] ? list[middle(known[one])][one] : 0;
        }
        for (int64_t one = 0; one < count; one++) {
            float *mine = out + rings * n + first + one;
            mine[0] = known[one] ? list[0][one] : 0;
            mine[n] = known[one] ? highest[one] : 0;
            mine[2 * n] = (float)similar[one];
        }
    }
}
