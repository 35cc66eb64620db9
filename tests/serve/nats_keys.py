"""Keys, tokens and certificates for a NATS server under test, made with openssl alone."""
import base64
import hashlib
import json
import os
import subprocess
import time

KINDS = {"O": 14, "A": 0, "U": 20}


def crc16(data):
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xffff
    return crc


def base32(data):
    return base64.b32encode(data + crc16(data).to_bytes(2, "little")).decode().rstrip("=")


def base64url(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Key:
    """A pair of Ed25519: `name` is public, `seed` is secret."""

    def __init__(self, folder, kind):
        raw = os.urandom(32)
        self.path = os.path.join(folder, f"key-{kind}-{raw[:4].hex()}.der")
        with open(self.path, "wb") as f:
            f.write(bytes.fromhex("302e020100300506032b657004220420") + raw)
        public = subprocess.run(["openssl", "pkey", "-inform", "DER", "-in", self.path, "-pubout", "-outform", "DER"], check=True,
                                capture_output=True).stdout[-32:]
        prefix = KINDS[kind] << 3
        self.name = base32(bytes([prefix]) + public)
        self.seed = base32(bytes([18 << 3 | prefix >> 5, (prefix & 31) << 3]) + raw)

    def sign(self, data):
        with open(self.path + ".in", "wb") as f:
            f.write(data)
        return subprocess.run(["openssl", "pkeyutl", "-sign", "-rawin", "-keyform", "DER", "-inkey", self.path, "-in", self.path + ".in"],
                              check=True, capture_output=True).stdout


def token(issuer, subject, name, kind, **more):
    """A JWT of NATS, version 2."""
    claims = {"iat": int(time.time()), "iss": issuer.name, "name": name, "sub": subject.name, "nats": {"type": kind, "version": 2, **more}}
    claims["jti"] = base64.b32encode(hashlib.sha256(json.dumps(claims).encode()).digest()).decode().rstrip("=")
    body = ".".join(base64url(json.dumps(part, separators=(",", ":")).encode()) for part in ({"typ": "JWT", "alg": "ed25519-nkey"}, claims))
    return body + "." + base64url(issuer.sign(body.encode()))


def credentials(jwt, seed):
    return (f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n")


def certificates(folder):
    """An authority `ca`, and by it `server` and `client`: NAME.pem and NAME.key."""
    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True)

    new = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl(*new, "-x509", "-days", "2", "-subj", "/CN=test authority", "-keyout", folder + "/ca.key", "-out", folder + "/ca.pem")
    for name in ("server", "client"):
        with open(f"{folder}/{name}.ext", "w") as f:
            f.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        openssl(*new, "-subj", f"/CN={name}", "-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.csr")
        openssl("x509", "-req", "-in", f"{folder}/{name}.csr", "-CA", folder + "/ca.pem", "-CAkey", folder + "/ca.key", "-CAcreateserial",
                "-days", "2", "-extfile", f"{folder}/{name}.ext", "-out", f"{folder}/{name}.pem")
        os.chmod(f"{folder}/{name}.key", 0o600)
