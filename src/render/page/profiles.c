/* The page's profiles of threads: score, class and cause with their evidence. */
#include "hot.h"
#include "page_parts.h"

static void write_reasons(struct json_writer *w, const char *key, const struct hot_reason *v,
			  size_t n)
{
	if (!n)
		return;
	json_write_key(w, key);
	json_write_array(w);
	for (size_t i = 0; i < n; i++) {
		json_write_object(w);
		json_key_str(w, "text", v[i].text);
		if (v[i].rule)
			json_key_str(w, "rule", v[i].rule);
		if (v[i].advice)
			json_key_str(w, "advice", v[i].advice);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void key_share(struct json_writer *w, const char *key, double v)
{
	if (hot_has(v))
		page_key_f64(w, key, (double)(int64_t)(v * 100 + 0.5) / 100);
}

void page_write_profile(struct page *p, uint32_t node, struct json_writer *w)
{
	const struct hot_thread *h = p->s->hot ? hot_of(p->s->hot, node) : NULL;

	if (!h)
		return;
	if (h->waited_for_ns)
		json_key_u64(w, "waited_for_ns", h->waited_for_ns);
	if (h->waiters.n)
		json_key_u64(w, "waiters", h->waiters.n);
	json_write_key(w, "profile");
	json_write_object(w);
	json_key_u64(w, "points", h->points);
	json_key_u64(w, "possible", h->possible);
	json_key_str(w, "level", hot_level_name(h->level));
	json_key_str(w, "class", thread_class_name(h->class));
	page_key_text(w, "class_why", h->class_why);
	json_key_str(w, "cause", hot_cause_name(h->cause));
	page_key_text(w, "cause_why", h->cause_why);
	key_share(w, "cpu_pct", h->cpu_pct);
	key_share(w, "user_pct", h->user_pct);
	key_share(w, "remote_pct", h->remote_pct);
	write_reasons(w, "reasons", h->reasons.v, h->reasons.n);
	write_reasons(w, "rules", h->rules.v, h->rules.n);
	page_key_text(w, "affinity", h->affinity.advice);
	page_key_text(w, "switching", h->switching.advice);
	json_write_object_end(w);
}
