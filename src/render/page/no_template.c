/* Stands in for the page where the program is built without it. */
#include "page_template.h"

const struct page_piece page_template[1];
const size_t page_template_n;
