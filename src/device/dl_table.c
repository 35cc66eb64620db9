/* Loads vendors' libraries: see dl_table.h. */
#include "dl_table.h"

#include <dlfcn.h>
#include <string.h>

bool dl_table_load(void *table, const char *const *libraries, const struct dl_function *functions, size_t n,
		   struct accel_report *r)
{
	void *lib = NULL;
	const char *name = NULL, *why;

	/* The first name is the one that people know: of the others nothing is said. */
	for (; !lib && *libraries; libraries++) {
		name = *libraries;
		lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
		why = lib ? NULL : dlerror();
		if (!lib && !r->head.why[0])
			accel_state(r, ACCEL_ABSENT, "%.300s", why ?: name);
	}
	if (!lib)
		return false;
	r->head.why[0] = '\0';
	r->head.state = ACCEL_OK;
	for (size_t i = 0; i < n; i++) {
		void *f = dlsym(lib, functions[i].name);

		memcpy((char *)table + functions[i].offset, &f, sizeof(f));
		if (!f && functions[i].need == MUST) {
			accel_state(r, ACCEL_FAILED, "%s has no %s: not a version that is known", name,
				    functions[i].name);
			return false;
		}
	}
	return true;
}
