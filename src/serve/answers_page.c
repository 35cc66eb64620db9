/* The page for browsers: of the newest snapshot, and it tells when there is a newer one. */
#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "mem.h"
#include "render_html.h"
#include "studied.h"

/* Behind the page's own scripts, which know nothing of servers. */
static const char live[] =
	"<div id=\"witty-live\" role=\"status\" style=\"position:fixed;right:.6em;bottom:.6em;padding:.4em .8em;"
	"background:Canvas;color:CanvasText;border:1px solid;border-radius:.4em;font:13px system-ui\">"
	"<span id=\"witty-live-text\">live</span> "
	"<label><input type=\"checkbox\" id=\"witty-live-auto\"> reload by itself</label></div>"
	"<script>(function(){\"use strict\";var t=document.getElementById(\"witty-live-text\"),"
	"a=document.getElementById(\"witty-live-auto\"),k=\"witty-live\",n=0,s;"
	"try{a.checked=sessionStorage.getItem(k)===\"1\"}catch(e){}"
	"a.onchange=function(){try{sessionStorage.setItem(k,a.checked?\"1\":\"0\")}catch(e){}};"
	"s=new EventSource(\"/api/v1/events?types=snapshot,finding\");"
	"s.addEventListener(\"snapshot\",function(){n++;t.textContent=n+\" newer snapshot\"+(n>1?\"s\":\"\");"
	"if(a.checked)location.reload()});"
	"s.addEventListener(\"finding\",function(e){var d=JSON.parse(e.data);"
	"t.textContent=d.state+\": \"+d.finding.title});"
	"s.onerror=function(){t.textContent=\"server does not answer\"};})();</script>";

static void insert_live(struct strbuf *b)
{
	char *end = NULL;

	for (char *at = b->s; at && (at = strstr(at, "</body>")); at++)
		end = at;
	if (end) {
		size_t head = (size_t)(end - b->s);
		char *tail = mem_strdup(end);

		b->n = head;
		strbuf_add(b, live);
		strbuf_add(b, tail);
		free(tail);
	} else {
		strbuf_add(b, live);
	}
}

/* People ask for it seldom, so that the analysis is made again rather than kept. */
static void with_analysis(const struct limits *l, struct snapshot *snap, void (*write)(struct studied *k, struct strbuf *b), struct strbuf *b)
{
	struct studied *k = mem_alloc(sizeof(*k));

	studied_init(k, snap, l, NULL);
	write(k, b);
	studied_done(k);
	free(k);
}

static void write_page(struct studied *k, struct strbuf *b)
{
	struct err e;

	if (render_html(&k->all.study, &k->all.findings, &k->amounts, b, &e) < 0) {
		strbuf_add(b, "<!DOCTYPE html><html lang=\"en\"><title>witty-profiler</title><body><p>"
			      "This program was built without its page. <a href=\"/help\">What can be asked</a>"
			      "</body></html>");
		return;
	}
	insert_live(b);
}

static void make_page(void *ctx, struct snapshot *snap, struct strbuf *b)
{
	with_analysis(ctx, snap, write_page, b);
}

void answer_page(struct server *s, const struct request *r, struct reply *a)
{
	struct snapshot *snap = board_newest(s->board);

	a->mime = "text/html; charset=utf-8";
	if (!snap) {
		strbuf_add(&a->body, "<!DOCTYPE html><html lang=\"en\"><meta http-equiv=\"refresh\" content=\"1\">"
				     "<title>witty-profiler</title><body><p>The first interval is not over yet.</p>"
				     "</body></html>");
		return;
	}
	reply_etag(a, s, snap);
	reply_text(a, r, snap, RENDER_PAGE, make_page, (void *)(uintptr_t)s->o->limits);
}

static void write_data(struct studied *k, struct strbuf *b)
{
	struct json_writer w;
	struct err e;

	json_writer_init_strbuf(&w, b, 0);
	render_page_json(&k->all.study, &k->all.findings, &k->amounts, &w);
	json_writer_finish(&w, &e);
}

static void make_data(void *ctx, struct snapshot *snap, struct strbuf *b)
{
	with_analysis(ctx, snap, write_data, b);
}

static void answer_page_data(struct server *s, const struct request *r, struct reply *a)
{
	struct snapshot *snap = asked_snapshot(s, r, a);

	if (snap)
		reply_text(a, r, snap, RENDER_PAGE_DATA, make_data, (void *)(uintptr_t)s->o->limits);
}

const struct route route_page_data = {"GET", "/api/v1/page", "What the page shows, as JSON; may change with the page",
				      RIGHT_READ, false, "application/json", "{\"type\":\"object\"}",
				      .params = {P_SNAPSHOT, P_AT}, .answer = answer_page_data};
