"""TLS for the servers of the tests: a certificate for 127.0.0.1 and localhost, made when a server starts."""

import ssl
import subprocess


def context(directory):
    """The context of a server. The certificate is in `server.pem` of the directory."""
    certificate, key = directory + "/server.pem", directory + "/server-key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", key, "-out", certificate],
        check=True, stderr=subprocess.DEVNULL)
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(certificate, key)
    return made
