/* Costs of matching by AD-census: colour differences and census words, in whole numbers.
 *
 * Pictures are (height, channels, width), so that rows are contiguous. The other view comes reversed and its first
 * column repeated: entry width - 1 - column, hence the match at column - disparity is disparity entries further on.
 */
#include "kernels.h"

enum { CENSUS_HEIGHT = 7, CENSUS_WIDTH = 9 };

/* Round a view (height, width, channels) to bytes (height, channels, width); halves go to even numbers. */
KERNEL void stereo_bytes(int64_t height, int64_t width, int64_t n_channels, const float *view, uint8_t *bytes) {
    const float shift = 12582912.0f; /* 1.5 * 2^23: the next numbers are one apart */
    for (int64_t y = 0; y < height; y++, view += width * n_channels)
        for (int64_t channel = 0; channel < n_channels; channel++, bytes += width)
            for (int64_t x = 0; x < width; x++) {
                const float held = least(most(view[x * n_channels + channel], 0), 255);
                bytes[x] = (uint8_t)(int32_t)((held + shift) - shift);
            }
}

/* Add to each word the bits of the pixels that are darker than its centre, in one row of the window. */
static void census_row(int64_t width, const uint16_t *row, const uint16_t *centre, uint16_t *bits) {
    for (int64_t dx = 0; dx < CENSUS_WIDTH; dx++)
        for (int64_t x = 0; x < width; x++) bits[x] = (uint16_t)(bits[x] << 1 | (row[x + dx] < centre[x]));
}

/* Compute a word for each pixel, with one bit for each of the 62 around it: set if it is darker.
 *
 * grey: (height + 6, width + 8), the picture's edge repeated. bits: room for 7 * width numbers.
 */
KERNEL void stereo_census(int64_t height, int64_t width, const uint16_t *grey, uint64_t *words, uint16_t *bits) {
    const int64_t up = CENSUS_HEIGHT / 2, aside = CENSUS_WIDTH / 2, stride = width + 2 * aside;
    for (int64_t y = 0; y < height; y++) {
        const uint16_t *centre = grey + (y + up) * stride + aside;
        for (int64_t at = 0; at < CENSUS_HEIGHT * width; at++) bits[at] = 0;
        for (int64_t dy = 0; dy < CENSUS_HEIGHT; dy++)
            census_row(width, grey + (y + dy) * stride, centre, bits + dy * width);
        for (int64_t x = 0; x < width; x++) {
            uint64_t word = 0;
            for (int64_t dy = 0; dy < CENSUS_HEIGHT; dy++) word = word << CENSUS_WIDTH | bits[dy * width + x];
            words[y * width + x] = word;
        }
    }
}

static inline uint16_t apart(uint8_t a, uint8_t b) { return a > b ? (uint16_t)(a - b) : (uint16_t)(b - a); }

/* Compute the costs of one pixel at n disparities. colour: room for the sums of differences at all labels. */
static void pixel_costs(int64_t n, int64_t n_blocks, int64_t n_channels, int64_t stride, int64_t other_stride,
                        const uint8_t *here, const uint8_t *there, uint64_t word, const uint64_t *others,
                        const int16_t *colour_price, const int16_t *census_price, uint16_t *restrict colour,
                        int16_t *restrict costs) {
    for (int64_t d = 0; d < BLOCK * n_blocks; d++) colour[d] = apart(here[0], there[d]);
    for (int64_t channel = 1; channel < n_channels; channel++) {
        const uint8_t value = here[channel * stride], *values = there + channel * other_stride;
        for (int64_t d = 0; d < BLOCK * n_blocks; d++) colour[d] = (uint16_t)(colour[d] + apart(value, values[d]));
    }
    for (int64_t d = 0; d < n; d++)
        costs[d] = (int16_t)(colour_price[colour[d]] + census_price[__builtin_popcountll(word ^ others[d])]);
}

/* Compute the costs (height, width, stride) of n disparities; the labels beyond cost beyond.
 *
 * left: (height, channels, width); right: (height, channels, width + stride - 1), reversed; words and others:
 * likewise, of one channel. colour_price: by the sum of differences; census_price: by the bits that differ. colour: room
 * for stride numbers.
 */
KERNEL void stereo_ad_census(int64_t height, int64_t width, int64_t n_channels, int64_t n, int64_t stride,
                             const uint8_t *left, const uint8_t *right, const uint64_t *words, const uint64_t *others,
                             const int16_t *colour_price, const int16_t *census_price, int16_t beyond, uint16_t *colour,
                             int16_t *costs) {
    const int64_t wide = width + stride - 1;
    for (int64_t y = 0; y < height; y++) {
        for (int64_t x = 0; x < width; x++) {
            int16_t *here = costs + (y * width + x) * stride;
            const int64_t start = width - 1 - x;
            pixel_costs(n, stride / BLOCK, n_channels, width, wide, left + y * n_channels * width + x,
                        right + y * n_channels * wide + start, words[y * width + x], others + y * wide + start,
                        colour_price, census_price, colour, here);
            for (int64_t d = n; d < stride; d++) here[d] = beyond;
        }
    }
}

/* Look up the cost at one place of the other view. */
static inline float cost_at(int64_t n_channels, int64_t stride, int64_t other_stride, const uint8_t *here,
                            const uint8_t *there, uint64_t word, uint64_t other, const float *colour_price,
                            const float *census_price) {
    int64_t colour = 0;
    for (int64_t channel = 0; channel < n_channels; channel++)
        colour += apart(here[channel * stride], there[channel * other_stride]);
    return colour_price[colour] + census_price[__builtin_popcountll(word ^ other)];
}

/* Compute the cost of a disparity of each pixel, linear between whole ones; right and others are not reversed here. */
KERNEL void stereo_ad_census_at(int64_t height, int64_t width, int64_t n_channels, const float *disparity,
                                const uint8_t *left, const uint8_t *right, const uint64_t *words,
                                const uint64_t *others, const float *colour_price, const float *census_price,
                                float *costs) {
    for (int64_t y = 0; y < height; y++) {
        const uint8_t *ours = left + y * n_channels * width, *theirs = right + y * n_channels * width;
        const uint64_t *row = words + y * width, *other = others + y * width;
        for (int64_t x = 0; x < width; x++) {
            const float place = most(least((float)x - disparity[y * width + x], (float)(width - 1)), 0);
            const int64_t low = (int64_t)place, high = low + 1 < width ? low + 1 : low;
            const float share = place - (float)low;
            const float below = cost_at(n_channels, width, width, ours + x, theirs + low, row[x], other[low],
                                        colour_price, census_price);
            const float above = cost_at(n_channels, width, width, ours + x, theirs + high, row[x], other[high],
                                        colour_price, census_price);
            costs[y * width + x] = (1 - share) * below + share * above;
        }
    }
}
