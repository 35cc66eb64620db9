/* Whether a terminal's kind is known. Apart, as term.h makes macros of common words. */
#include "top_screen.h"

#include <unistd.h>

#include <curses.h>
#include <term.h>

bool terminal_is_known(void)
{
	int status;

	if (setupterm(NULL, STDOUT_FILENO, &status) == ERR)
		return false;
	del_curterm(cur_term);
	return true;
}
