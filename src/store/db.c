/* What the writer and the reader of recordings share: names and errors. */
#include "db.h"

#include <errno.h>

int db_fail(sqlite3 *db, struct err *e, const char *what, const char *path)
{
	int rc = sqlite3_errcode(db), sys = sqlite3_system_errno(db), code;

	switch (rc & 0xff) {
	case SQLITE_FULL:
		code = -ENOSPC;
		break;
	case SQLITE_NOTADB:
	case SQLITE_CORRUPT:
		code = -EBADMSG;
		break;
	case SQLITE_READONLY:
		code = -EROFS;
		break;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		code = -EBUSY;
		break;
	default:
		code = sys > 0 ? -sys : -EIO;
	}
	err_msg(e, code, "%s '%s': %s", what, path, code == -ENOSPC ? "no space left on device"
							   : sqlite3_errmsg(db));
	return code;
}

int db_run(sqlite3 *db, const char *sql)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : -EIO;
}

void db_table(struct strbuf *b, const struct type *t)
{
	strbuf_add(b, t->kind == KIND_EDGE ? "edge_" : "");
	strbuf_add(b, t->name);
}

void db_series_table(struct strbuf *b, const struct type *t)
{
	strbuf_add(b, "series_");
	db_table(b, t);
}

bool db_in_series(const struct field *f)
{
	return f->merge == SUM || f->merge == GAUGE;
}

bool db_has_series(const struct type *t)
{
	for (int i = 0; i < t->nfields; i++)
		if (db_in_series(&t->fields[i]))
			return true;
	return false;
}
