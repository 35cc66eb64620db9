#pragma once

/* Index of the map `health` of every object. */
enum health_counter {
	HEALTH_EMITTED = 0,
	HEALTH_RING_FULL,
	HEALTH_MAP_FULL,
	HEALTH_READ_FAULT,
	HEALTH_N
};
