/* libdcmi.so as a test wants it: real names and binary interface, numbers by the scenario in FAKE_DCMI. */
#include "scenario.h"

typedef struct { unsigned char type[32], name[32], version[32]; unsigned aicores; } chip_info;
typedef struct { unsigned a, b, c, d; int domain; unsigned bus, slot, function; unsigned char r[32]; } pcie_info;
typedef struct { unsigned long long size; unsigned freq; unsigned long long used; int temp; unsigned rate; } hbm_info;
typedef struct { int pid; unsigned long bytes; } process;

#define API __attribute__((visibility("default"))) int
#define ENV "FAKE_DCMI"
enum { OK = 0, NOT_EXIST = -8008, UNSUPPORTED = -8255 };

static int chips(void)
{
	return (int)scenario_number(ENV, "chips", 1);
}

API dcmi_init(void)
{
	return (int)scenario_number(ENV, "init", 0);
}

API dcmi_get_driver_version(char *s, unsigned n)
{
	snprintf(s, n, "24.1.0");
	return OK;
}

API dcmi_get_card_list(int *n, int *list, int length)
{
	scenario_hang(ENV);
	*n = (int)scenario_number(ENV, "cards", 0);
	for (int i = 0; i < *n && i < length; i++)
		list[i] = i;
	return OK;
}

/* The last one of a card is its management controller. */
API dcmi_get_device_num_in_card(int card, int *n)
{
	*n = chips() + 1;
	return OK;
}

API dcmi_get_device_type(int card, int chip, int *type)
{
	*type = chip == chips();
	return OK;
}

API dcmi_get_device_logic_id(int *id, int card, int chip)
{
	*id = card * chips() + chip;
	return OK;
}

API dcmi_get_device_phyid_from_logicid(unsigned logic, unsigned *phy)
{
	*phy = logic;
	return OK;
}

API dcmi_get_device_chip_info(int card, int chip, chip_info *c)
{
	memset(c, 0, sizeof(*c));
	strcpy((char *)c->type, "Ascend");
	strcpy((char *)c->name, "910B3");
	c->aicores = 20;
	return OK;
}

API dcmi_get_device_pcie_info_v2(int card, int chip, pcie_info *p)
{
	memset(p, 0, sizeof(*p));
	p->bus = 0x80 + (unsigned)(card * chips() + chip);
	return OK;
}

API dcmi_get_device_health(int card, int chip, unsigned *v)
{
	struct scenario_line l;

	*v = scenario_keyed(ENV, "health", card, &l) ? (unsigned)l.v[1] : 0;
	return OK;
}

API dcmi_get_device_power_info(int card, int chip, int *v)
{
	*v = 913 + card;
	return OK;
}

/* MHz: the highest, and now. */
API dcmi_get_device_aicore_info(int card, int chip, unsigned mhz[2])
{
	mhz[0] = 1800;
	mhz[1] = 1500;
	return OK;
}

API dcmi_get_device_temperature(int card, int chip, int *v)
{
	*v = 36 + chip;
	return OK;
}

API dcmi_get_device_utilization_rate(int card, int chip, int type, unsigned *v)
{
	*v = type == 2 ? 50u + (unsigned)card : type == 10 ? 20 : 0;
	return type == 2 || type == 10 ? OK : UNSUPPORTED;
}

API dcmi_get_device_hbm_info(int card, int chip, hbm_info *h)
{
	*h = (hbm_info){65536, 1600, 3465 + (unsigned)card, 40, 31};
	return OK;
}

API dcmi_get_device_resource_info(int card, int chip, process *list, int *n)
{
	struct scenario_line l;
	int found = 0;

	for (int i = 0; scenario_nth(ENV, "process", i, &l); i++)
		if (l.v[0] == card && l.v[1] == chip && found < *n)
			list[found++] = (process){(int)l.v[2], (unsigned long)l.v[3] << 20};
	*n = found;
	return OK;
}

API dcmi_get_affinity_cpu_info_by_device_id(int card, int chip, char *s, int *n)
{
	*n = snprintf(s, (size_t)*n, "0-1");
	return OK;
}

API dcmi_get_topo_info_by_device_id(int card1, int chip1, int card2, int chip2, int *type)
{
	*type = card1 == card2 ? 6 : 3;
	return OK;
}
