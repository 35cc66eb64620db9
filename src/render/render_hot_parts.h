#pragma once

#include "page.h"
#include "render_hot.h"
#include "render_waitfor.h"

/* Private to the rendering of threads: its files. */

/** "name[tid] of process[pid]", or what an interrupt stands for. @return b->s, valid until the next
 * call */
const char *hot_page_thread(struct hot *h, uint32_t node, struct strbuf *b);
/** "0:60% 3:40%", "?" when nothing is known. */
void hot_page_nodes(struct strbuf *b, const struct by_node *v);
uint64_t hot_page_most(const struct hot_view *v, uint64_t usual);

/** render_hot_sections.c: sections of their own. */
void hot_page_affinity(struct page *p, struct hot *h, const struct hot_view *v);
void hot_page_switching(struct page *p, struct hot *h, const struct hot_view *v);
