/* Values of fields as JSON, the same in every format. */
#include "value_json.h"

#include <string.h>

bool value_write_json(const struct value *v, struct json_writer *w)
{
	switch (v->type) {
	case T_BOOL:
		json_write_bool(w, v->b);
		return true;
	case T_I64:
		json_write_i64(w, v->i64);
		return true;
	case T_U64:
		json_write_u64(w, v->u64);
		return true;
	case T_F64:
		json_write_f64(w, v->f64);
		return true;
	case T_STR:
		json_write_str(w, v->str);
		return true;
	case T_JSON:
		json_write_raw(w, v->str, strlen(v->str));
		return true;
	case T_REF:
		break;
	}
	return false;
}
