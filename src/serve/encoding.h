#pragma once

#include <stdbool.h>

#include "strbuf.h"

/** How a body is packed for the way; the ones that are liked better come later. */
enum encoding { ENCODING_PLAIN, ENCODING_GZIP, ENCODING_ZSTD, ENCODING_COUNT };

/** "gzip", as in Content-Encoding. */
const char *encoding_name(enum encoding e);

/**
 * What a client likes best of what there is, by Accept-Encoding (RFC 9110, 12.5.3): weights, `*`,
 * and at equal weight ours.
 *
 * @param accept the header; NULL: it was not sent
 * @return ENCODING_PLAIN, also when the client would rather have nothing than that
 */
enum encoding encoding_choose(const char *accept);

/** Pack. @return false: plain is wanted, or it is not worth it, and @p out is empty */
bool encoding_pack(enum encoding e, const struct strbuf *in, struct strbuf *out);
/** What encoding_pack() made with ENCODING_ZSTD, as it was before. @param out empty */
void encoding_unpack_zstd(const struct strbuf *in, struct strbuf *out);
