#pragma once

#include <stdbool.h>
#include <stddef.h>

/** A piece of the page as the build made it; between two of them goes the data. */
struct page_piece {
	const char *s;
	size_t n;
	bool data_follows;
};

/** [page_template_n]; 0: the program was built without the page */
extern const struct page_piece page_template[];
extern const size_t page_template_n;
