/* Medians of disparities: weighted by similarity of colour, with which occlusions are filled and edges sharpened. */
#include "kernels.h"

/* A picture (height, channels, width), its window, and weights by the squared colour distance. */
typedef struct {
    int64_t height, width, radius, every, n_weights;
    const uint8_t *guide;
    const uint32_t *weights;
    const int32_t *bins;
} Window;

/* Add the squared colour distance of two pixels. */
static inline int64_t colours_apart(int64_t n_channels, int64_t width, const uint8_t *here, const uint8_t *there) {
    int32_t sum = 0;
    for (int64_t channel = 0; channel < n_channels; channel++) {
        const int32_t away = (int32_t)here[channel * width] - there[channel * width];
        sum += away * away;
    }
    return sum;
}

/* Return the first row or column of a window that is inside the picture. */
static inline int64_t first_inside(int64_t centre, int64_t radius, int64_t every) {
    const int64_t first = centre - radius;
    return first >= 0 ? first : first + (every - 1 - first) / every * every;
}

/* Find the bin at which half the weight of a window is reached; histogram: zeros, before and after. */
static inline int64_t median_bin(const Window *window, int64_t n_channels, int64_t y, int64_t x, uint32_t *histogram) {
    const int64_t width = window->width, reach = window->radius, every = window->every;
    const int64_t bottom = y + reach < window->height ? y + reach : window->height - 1;
    const int64_t right = x + reach < width ? x + reach : width - 1;
    const uint8_t *here = window->guide + y * n_channels * width + x;
    int64_t low = INT32_MAX, high = 0;
    uint64_t total = 0, sum = 0;
    for (int64_t row = first_inside(y, reach, every); row <= bottom; row += every) {
        const uint8_t *there = window->guide + row * n_channels * width;
        for (int64_t column = first_inside(x, reach, every); column <= right; column += every) {
            const int64_t away = colours_apart(n_channels, width, here, there + column);
            if (away >= window->n_weights) continue;
            const int64_t bin = window->bins[row * width + column];
            histogram[bin] += window->weights[away];
            total += window->weights[away];
            low = bin < low ? bin : low;
            high = bin > high ? bin : high;
        }
    }
    int64_t found = low;
    while (2 * (sum += histogram[found]) < total) found++;
    for (int64_t bin = low; bin <= high; bin++) histogram[bin] = 0;
    return found;
}

/* Replace the pixels of a mask, in some rows, by the weighted medians of their windows; all others are copied.
 *
 * radius: a multiple of every, the step between the pixels that are looked at. weights: by the squared colour distance,
 * zero beyond. histogram: as many zeros as there are bins.
 */
KERNEL void stereo_weighted_median(int64_t begin, int64_t end, int64_t height, int64_t width, int64_t n_channels,
                                   int64_t radius, int64_t every, const uint8_t *guide, const uint8_t *where,
                                   const float *disparity, const int32_t *bins, float bin_px, const uint32_t *weights,
                                   int64_t n_weights, uint32_t *histogram, float *medians) {
    const Window window = {height, width, radius, every, n_weights, guide, weights, bins};
    for (int64_t y = begin; y < end; y++) {
        for (int64_t x = 0; x < width; x++) {
            const int64_t at = y * width + x;
            medians[at] = disparity[at];
            if (!where[at]) continue;
            const int64_t bin = n_channels == 3 ? median_bin(&window, 3, y, x, histogram)
                                                : median_bin(&window, n_channels, y, x, histogram);
            medians[at] = (float)bin * bin_px;
        }
    }
}

/* Find the pixels, in some rows, within a window of which disparities differ by more than a step. */
KERNEL void stereo_near_edges(int64_t begin, int64_t end, int64_t height, int64_t width, int64_t radius, float step,
                              const float *disparity, float *lowest, float *highest, uint8_t *near) {
    for (int64_t y = begin; y < end; y++) {
        const int64_t first = y < radius ? 0 : y - radius, last = y + radius < height ? y + radius : height - 1;
        for (int64_t x = 0; x < width; x++) lowest[x] = highest[x] = disparity[first * width + x];
        for (int64_t row = first + 1; row <= last; row++) {
            for (int64_t x = 0; x < width; x++) {
                lowest[x] = least(lowest[x], disparity[row * width + x]);
                highest[x] = most(highest[x], disparity[row * width + x]);
            }
        }
        for (int64_t x = 0; x < width; x++) {
            float low = lowest[x], high = highest[x];
            const int64_t left = x < radius ? 0 : x - radius, right = x + radius < width ? x + radius : width - 1;
            for (int64_t column = left; column <= right; column++) {
                low = least(low, lowest[column]);
                high = most(high, highest[column]);
            }
            near[y * width + x] = high - low > step;
        }
    }
}

/* Sort three numbers. */
static inline void sort_three(float *low, float *middle, float *high) {
    const float a = least(*low, *middle), b = most(*low, *middle), c = *high;
    const float rest = most(a, least(b, c));
    *low = least(a, c);
    *high = most(b, c);
    *middle = rest;
}

/* Take the median of squares of 3 x 3 pixels, in some rows; the edge is repeated. sorted: room for 3 * (width + 2). */
KERNEL void stereo_median(int64_t begin, int64_t end, int64_t height, int64_t width, const float *disparity,
                          float *sorted, float *medians) {
    float *low = sorted, *middle = sorted + width + 2, *high = sorted + 2 * (width + 2);
    for (int64_t y = begin; y < end; y++) {
        const float *here = disparity + y * width, *above = y > 0 ? here - width : here;
        const float *below = y < height - 1 ? here + width : here;
        for (int64_t x = 0; x < width; x++) {
            low[x + 1] = above[x];
            middle[x + 1] = here[x];
            high[x + 1] = below[x];
        }
        for (int64_t x = 1; x <= width; x++) sort_three(low + x, middle + x, high + x);
        for (int64_t k = 0; k < 3; k++) {
            sorted[k * (width + 2)] = sorted[k * (width + 2) + 1];
            sorted[k * (width + 2) + width + 1] = sorted[k * (width + 2) + width];
        }
        for (int64_t x = 0; x < width; x++) {
            float a = low[x], b = low[x + 1], c = low[x + 2];
            sort_three(&a, &b, &c);
            float d = middle[x], e = middle[x + 1], f = middle[x + 2];
            sort_three(&d, &e, &f);
            float g = high[x], h = high[x + 1], i = high[x + 2];
            sort_three(&g, &h, &i);
            sort_three(&c, &e, &g);
            medians[y * width + x] = e;
        }
    }
}
