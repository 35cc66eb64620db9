#pragma once

#include "limit.h"
#include "live.h"
#include "top_views.h"

/*
 * The live view without a terminal: what is shown, and what keys do. A frame is made of it as lines of text,
 * which a screen draws.
 */

enum top_mode {
	TOP_LIST,
	TOP_DETAIL, /**< of the selected row */
	TOP_HELP,
	TOP_FILTER, /**< typing what rows must have */
	TOP_SAVE,   /**< typing the name of a recording */
};

/** Keys that are no characters. */
enum top_key {
	KEY_TOP_UP = 0x110000,
	KEY_TOP_DOWN,
	KEY_TOP_PAGE_UP,
	KEY_TOP_PAGE_DOWN,
	KEY_TOP_HOME,
	KEY_TOP_END,
	KEY_TOP_LEFT,
	KEY_TOP_RIGHT,
	KEY_TOP_ENTER,
	KEY_TOP_BACK, /**< backspace */
	KEY_TOP_ESCAPE,
	KEY_TOP_TAB,
};

#define TOP_NO_ROW SIZE_MAX

/** How a view is shown; each has its own. */
struct top_view_state {
	size_t sort;	     /**< column; SIZE_MAX: as the analysis ranks them */
	bool reverse;
	size_t selected;     /**< row, or TOP_NO_ROW */
	size_t first;	     /**< row on top of the list */
	char id[256];	     /**< of the selected row, which it follows */
};

struct top {
	struct limits limits;
	struct live *live;	   /**< NULL: nothing to save from */
	struct history *history;   /**< where it looks */
	uint64_t window_ns;
	uint64_t now_ns;	   /**< end of the newest interval that is shown */
	uint64_t since_ns;	   /**< begin of what is shown */
	struct sight sight;	   /**< the window */
	struct sight wide;	   /**< a longer one, for findings */
	uint64_t wide_at_ns;	   /**< CLOCK_MONOTONIC, when that was made; 0: never */
	double own_cpu_pct;	   /**< of this program; NAN: not known */
	uint64_t lost;		   /**< events */
	enum view view;
	enum top_mode mode;
	struct top_view_state states[VIEW_COUNT];
	struct table table;
	bool has_table;
	struct lines detail;
	bool has_detail;
	size_t detail_first;
	enum view detail_view;	   /**< of the row in detail_id */
	char detail_id[256];
	char process[64];	   /**< printed id: only its threads; "": all */
	bool tree, paused, quit;
	char filter[64];
	char input[256];	   /**< what is being typed */
	char message[300];	   /**< one line, until the next key */
	size_t page;		   /**< rows on the screen */
};

/** @param process id of the process whose threads alone are listed, NULL: all */
void top_init(struct top *t, struct history *h, uint64_t window_ns);
void top_done(struct top *t);

/** There is a newer interval: look at it. */
void top_update(struct top *t);

/** Make rows anew of what was looked at: something of the view changed. */
void top_list(struct top *t);

/** @param key a code point, or enum top_key */
void top_key(struct top *t, uint32_t key);

enum frame_look { LOOK_PLAIN, LOOK_TITLE, LOOK_HEAD, LOOK_SELECTED, LOOK_NOTICE, LOOK_WARNING, LOOK_CRITICAL };

struct frame_line {
	enum frame_look look;
	char *text; /**< at most as wide as the frame */
};

struct frame {
	VEC(struct frame_line) lines;
};

/** @param rows of the screen, >= 1; the frame has at most so many */
void frame_make(struct frame *f, struct top *t, unsigned rows, unsigned columns);
void frame_done(struct frame *f);
