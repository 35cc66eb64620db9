/* What the names of threads say: names that programs and kernels give, then whole words. */
#include <ctype.h>
#include <string.h>

#include "hot_parts.h"

#define WORD_MOST 16

/* Names as the kernel cuts them, at 15 bytes. A "*" at the end stands for any rest. */
static const struct {
	const char *name;
	enum thread_class class;
	const char *what;
} names[] = {
    {"pt_autograd_*", CLASS_COMPUTE, "PyTorch's backward pass"},
    {"pt_main_thread", CLASS_FRAMEWORK, "PyTorch's main thread"},
    {"pt_data_worker", CLASS_FRAMEWORK, "PyTorch's data loader"},
    {"pt_data_pin", CLASS_DRIVER, "PyTorch's copies into pinned memory"},
    {"pin_memory*", CLASS_DRIVER, "copies into pinned memory"},
    {"pt_nccl_*", CLASS_COMMUNICATION, "PyTorch's watch over NCCL"},
    {"pt_gloo_*", CLASS_COMMUNICATION, "PyTorch's Gloo"},
    {"pt_tcpstore*", CLASS_FRAMEWORK, "PyTorch's rendezvous"},
    {"pt_elastic*", CLASS_FRAMEWORK, "PyTorch's launcher"},
    {"NCCL *", CLASS_COMMUNICATION, "NCCL"},
    {"nccl*", CLASS_COMMUNICATION, "NCCL"},
    {"gloo*", CLASS_COMMUNICATION, "Gloo"},
    {"hccl*", CLASS_COMMUNICATION, "HCCL"},
    {"HCCL*", CLASS_COMMUNICATION, "HCCL"},
    {"Hccp*", CLASS_COMMUNICATION, "HCCL"},
    {"hccp*", CLASS_COMMUNICATION, "HCCL"},
    {"ucx*", CLASS_COMMUNICATION, "UCX"},
    {"ZMQbg*", CLASS_COMMUNICATION, "ZeroMQ"},
    {"grpc*", CLASS_COMMUNICATION, "gRPC"},
    {"QueueFeederThre", CLASS_COMMUNICATION, "Python's queue between processes"},
    {"acl_thread", CLASS_DRIVER, "the CANN runtime"},
    {"release_thread", CLASS_DRIVER, "the CANN runtime"},
    {"PlogFlush", CLASS_DRIVER, "CANN's logging"},
    {"AtraceMonitor", CLASS_DRIVER, "CANN's tracing"},
    {"WatchdogMonitor", CLASS_DRIVER, "CANN's watchdog"},
    {"aicpu*", CLASS_DRIVER, "the CANN runtime"},
    {"cuda*", CLASS_DRIVER, "the CUDA runtime"},
    {"nvidia-*", CLASS_DRIVER, "NVIDIA's driver"},
    {"UVM *", CLASS_DRIVER, "NVIDIA's driver"},
    {"irq/*", CLASS_DRIVER, "an interrupt"},
    {"napi/*", CLASS_COMMUNICATION, "a network interface"},
    {"mlx5_*", CLASS_COMMUNICATION, "an RDMA device"},
    {"ib_*", CLASS_COMMUNICATION, "RDMA"},
    {"VLLM::Worker*", CLASS_COMPUTE, "a vLLM worker"},
    {"VLLM::Engine*", CLASS_FRAMEWORK, "vLLM's engine"},
    {"VLLM::APIServer*", CLASS_FRAMEWORK, "vLLM's API server"},
    {"VLLM::APIServe", CLASS_FRAMEWORK, "vLLM's API server"},
    {"sglang::schedul", CLASS_FRAMEWORK, "SGLang's scheduler"},
    {"sglang::detoken", CLASS_FRAMEWORK, "SGLang's detokeniser"},
    {"ray::*", CLASS_COMPUTE, "a Ray worker"},
    {"raylet", CLASS_FRAMEWORK, "Ray's scheduler"},
    {"gcs_server", CLASS_FRAMEWORK, "Ray's control store"},
    {"omp*", CLASS_COMPUTE, "OpenMP"},
};

/* Of the published list, as whole words: "domain" has no "main". */
static const struct {
	const char *word;
	enum thread_class class;
} words[] = {
    {"worker", CLASS_COMPUTE},
    {"compute", CLASS_COMPUTE},
    {"forward", CLASS_COMPUTE},
    {"backward", CLASS_COMPUTE},
    {"matmul", CLASS_COMPUTE},
    {"conv", CLASS_COMPUTE},
    {"gemm", CLASS_COMPUTE},
    {"nccl", CLASS_COMMUNICATION},
    {"hccl", CLASS_COMMUNICATION},
    {"gloo", CLASS_COMMUNICATION},
    {"comm", CLASS_COMMUNICATION},
    {"send", CLASS_COMMUNICATION},
    {"sender", CLASS_COMMUNICATION},
    {"recv", CLASS_COMMUNICATION},
    {"receiver", CLASS_COMMUNICATION},
    {"network", CLASS_COMMUNICATION},
    {"socket", CLASS_COMMUNICATION},
    {"rdma", CLASS_COMMUNICATION},
    {"driver", CLASS_DRIVER},
    {"cuda", CLASS_DRIVER},
    {"npu", CLASS_DRIVER},
    {"gpu", CLASS_DRIVER},
    {"device", CLASS_DRIVER},
    {"interrupt", CLASS_DRIVER},
    {"main", CLASS_FRAMEWORK},
    {"scheduler", CLASS_FRAMEWORK},
    {"dataloader", CLASS_FRAMEWORK},
    {"loader", CLASS_FRAMEWORK},
    {"controller", CLASS_FRAMEWORK},
    {"manager", CLASS_FRAMEWORK},
    {"coordinator", CLASS_FRAMEWORK},
};

static bool matches(const char *name, const char *pattern)
{
	size_t n = strlen(pattern);

	if (pattern[n - 1] == '*')
		return !strncmp(name, pattern, n - 1);
	return !strcmp(name, pattern);
}

/* @return class of the word, CLASS_OTHER: none of the list */
static enum thread_class class_of_word(const char *word)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(word, words[i].word))
			return words[i].class;
	return CLASS_OTHER;
}

enum thread_class hot_class_of_name(const char *name, const char **ret_what)
{
	char word[WORD_MOST + 1];
	size_t n = 0;

	*ret_what = NULL;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (matches(name, names[i].name)) {
			*ret_what = names[i].what;
			return names[i].class;
		}
	/* Words end where letters end, and where a capital follows a small letter. */
	for (const char *s = name;; s++) {
		bool letter = isalpha((unsigned char)*s),
		     new_word = isupper((unsigned char)*s) && n && islower((unsigned char)s[-1]);

		if (n && (!letter || new_word)) {
			enum thread_class c;

			word[n < WORD_MOST ? n : WORD_MOST] = '\0';
			c = n <= WORD_MOST ? class_of_word(word) : CLASS_OTHER;
			if (c != CLASS_OTHER)
				return c;
			n = 0;
		}
		if (!*s)
			return CLASS_OTHER;
		if (letter && n < WORD_MOST)
			word[n] = (char)tolower((unsigned char)*s);
		n += letter;
	}
}
