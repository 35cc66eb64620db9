/* The terminal, by ncurses. */
#include "top_screen.h"

#include <curses.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "mem.h"

#define ESCAPE_MS 100 /* keys arrive as sequences, in pieces over slow lines */

struct screen {
	SCREEN *terminal;
	bool coloured;
};

enum { PAIR_NOTICE = 1, PAIR_WARNING, PAIR_CRITICAL };

static void start_colours(struct screen *s)
{
	const char *no = getenv("NO_COLOR");

	if ((no && *no) || !has_colors() || start_color() == ERR)
		return;
	use_default_colors();
	s->coloured = init_pair(PAIR_NOTICE, COLOR_CYAN, -1) == OK && init_pair(PAIR_WARNING, COLOR_YELLOW, -1) == OK &&
		      init_pair(PAIR_CRITICAL, COLOR_RED, -1) == OK;
}

int screen_open(struct screen **ret, struct err *e)
{
	const char *kind = getenv("TERM");
	struct screen *s;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		err_msg(e, -ENOTTY, "standard input and output must be a terminal");
		return err_hint(e, "top --once prints one look as text");
	}
	s = mem_alloc(sizeof(*s));
	s->terminal = terminal_is_known() ? newterm(NULL, stdout, stdin) : NULL;
	if (!s->terminal) {
		free(s);
		err_msg(e, -ENOTSUP, "terminal type '%s' is not known here", kind ?: "");
		return err_hint(e, "set TERM, as in TERM=vt100; top --once needs no terminal");
	}
	set_term(s->terminal);
	set_escdelay(ESCAPE_MS);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	/* Terminals differ in what inserting and deleting characters does to others; little is won by it. */
	idcok(stdscr, FALSE);
	curs_set(0);
	start_colours(s);
	*ret = s;
	return 0;
}

void screen_close(struct screen *s)
{
	if (!s)
		return;
	endwin();
	delscreen(s->terminal);
	free(s);
}

void screen_resized(struct screen *s)
{
	struct winsize w;

	(void)s;
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) && w.ws_row && w.ws_col)
		resizeterm(w.ws_row, w.ws_col);
}

static uint32_t function_key(wint_t key)
{
	static const struct {
		wint_t key;
		uint32_t ours;
	} keys[] = {
		{KEY_UP, KEY_TOP_UP},	     {KEY_DOWN, KEY_TOP_DOWN},	       {KEY_PPAGE, KEY_TOP_PAGE_UP},
		{KEY_NPAGE, KEY_TOP_PAGE_DOWN}, {KEY_HOME, KEY_TOP_HOME},      {KEY_END, KEY_TOP_END},
		{KEY_LEFT, KEY_TOP_LEFT},    {KEY_RIGHT, KEY_TOP_RIGHT},       {KEY_ENTER, KEY_TOP_ENTER},
		{KEY_BACKSPACE, KEY_TOP_BACK},
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (keys[i].key == key)
			return keys[i].ours;
	return 0;
}

static uint32_t character(wint_t c)
{
	switch (c) {
	case '\r':
	case '\n':
		return KEY_TOP_ENTER;
	case '\t':
		return KEY_TOP_TAB;
	case 0x1b:
		return KEY_TOP_ESCAPE;
	case 0x7f:
	case '\b':
		return KEY_TOP_BACK;
	default:
		return c >= 0xd800 && (c < 0xe000 || c > 0x10ffff) ? 0 : (uint32_t)c;
	}
}

bool screen_key(struct screen *s, uint32_t *ret)
{
	wint_t c;
	int rc;

	(void)s;
	while ((rc = wget_wch(stdscr, &c)) != ERR) {
		*ret = rc == KEY_CODE_YES ? function_key(c) : character(c);
		if (*ret)
			return true;
	}
	return false;
}

static attr_t attribute_of(const struct screen *s, enum frame_look look)
{
	switch (look) {
	case LOOK_TITLE:
		return A_BOLD;
	case LOOK_HEAD:
		return A_REVERSE;
	case LOOK_SELECTED:
		return A_REVERSE | A_BOLD;
	case LOOK_NOTICE:
		return s->coloured ? (attr_t)COLOR_PAIR(PAIR_NOTICE) : A_NORMAL;
	case LOOK_WARNING:
		return s->coloured ? (attr_t)COLOR_PAIR(PAIR_WARNING) : A_BOLD;
	case LOOK_CRITICAL:
		return A_BOLD | (s->coloured ? (attr_t)COLOR_PAIR(PAIR_CRITICAL) : 0);
	default:
		return A_NORMAL;
	}
}

void screen_draw(struct screen *s, struct top *t)
{
	struct frame f;

	frame_make(&f, t, (unsigned)LINES, (unsigned)COLS);
	/* Curses compares with what is there, and sends the difference. */
	erase();
	for (size_t i = 0; i < f.lines.n; i++) {
		attrset((int)attribute_of(s, f.lines.v[i].look));
		mvaddstr((int)i, 0, f.lines.v[i].text);
	}
	attrset(A_NORMAL);
	refresh();
	frame_done(&f);
}
