/* kafka_mock: three brokers of librdkafka's own test cluster, until standard input ends; it tells their addresses. */
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdio.h>

int main(void)
{
	char why[512];
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_t *k;
	rd_kafka_mock_cluster_t *cluster;

	rd_kafka_conf_set(conf, "client.id", "mock", why, sizeof(why));
	k = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
	cluster = k ? rd_kafka_mock_cluster_new(k, 3) : NULL;
	if (!cluster) {
		fprintf(stderr, "no cluster: %s\n", why);
		return 1;
	}
	/* One partition a host would do; several show that each keeps its order. */
	rd_kafka_mock_topic_create(cluster, "job", 4, 3);
	printf("%s\n", rd_kafka_mock_cluster_bootstraps(cluster));
	fflush(stdout);
	while (getchar() != EOF)
		;
	rd_kafka_mock_cluster_destroy(cluster);
	rd_kafka_destroy(k);
	return 0;
}
