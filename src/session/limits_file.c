/* Limits that a user asked for: a preset, and a file on top of it. */
#include "limits_file.h"

#include <errno.h>
#include <stdio.h>

#include "cleanup.h"
#include "mem.h"

#define FILE_BYTES_MOST 65536

int limits_load(struct limits *l, const char *preset, const char *path, struct err *e)
{
	size_t n;
	int rc;

	limits_init(l);
	rc = preset ? limits_preset(l, preset, e) : 0;
	if (rc || !path)
		return rc;
	CLEANUP_FCLOSE FILE *f = fopen(path, "re");
	if (!f)
		return err_set(e, -errno, "open limits '%s'", path);
	CLEANUP_FREE char *text = mem_alloc(FILE_BYTES_MOST + 1);
	n = fread(text, 1, FILE_BYTES_MOST + 1, f);
	if (ferror(f))
		return err_set(e, -EIO, "read limits '%s'", path);
	if (n > FILE_BYTES_MOST)
		return err_msg(e, -EFBIG, "limits '%s': larger than %d bytes", path,
			       FILE_BYTES_MOST);
	return limits_read(l, text, n, path, e);
}
