/// The reason in words why a server's certificate was not accepted (X509_V_ERR_* of OpenSSL's x509_vfy.h).
enum VerificationFailure {
    /// - Parameters:
    ///   - code: the result of the verification; 0 if the chain is valid but the name does not match.
    ///   - hasOwnAuthorities: the account has a `ca_file`.
    static func words(for code: Int, hasOwnAuthorities: Bool) -> String {
        switch code {
        case 9: "the certificate is not valid yet; check this machine's clock"
        case 10: "the certificate has expired; check this machine's clock too"
        // Wrong signature; self-signed, alone or at the end of the chain; unknown issuer.
        case 7, 18, 19, 20, 21:
            hasOwnAuthorities
                ? "the certificate was not issued by an authority in ca_file"
                : "the certificate was issued by an authority that this system does not know. A company's proxy that "
                    + "inspects TLS shows such certificates, and so do servers with an authority of their own: ask for "
                    + "that authority's certificate, and name it with ca_file"
        case 23: "the certificate was revoked"
        default: "the certificate is not trusted for this name"
        }
    }
}
