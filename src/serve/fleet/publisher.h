#pragma once

/** What a subscriber that publishes to a broker keeps: its connection and its numbers. */
struct publisher;

/** NULL is fine. */
void publisher_free(struct publisher *p);
