internal import Cryptography
internal import Encodings
internal import StrictJSON

/// SAML assertions for services (RFC 7522). The sandbox trusts only those that it made itself. They have issuer, subject
/// and audience as SAML 2.0 has them, but no XML signature: an element of the sandbox's own holds an ES256 signature of
/// everything before it, so that any changed byte is noticed.
extension Issuer {
    static let samlBearer = "urn:ietf:params:oauth:grant-type:saml2-bearer"
    private static let sealStart = "<sandbox:Seal xmlns:sandbox=\"urn:ringback:sandbox\">"
    private static let end = "</sandbox:Seal></saml:Assertion>"

    /// An assertion, as a workload finds it in a file of its platform.
    mutating func makeSAMLAssertion(
        subject: String, audience: String?, lifetime: Int, at now: Int
    ) throws(CryptographyError) -> String {
        let expiry = now + lifetime
        let text = """
            <saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" Version="2.0" \
            ID="_\(RandomToken.identifier(bits: 128))">
              <saml:Issuer>\(Markup.escaped(name))</saml:Issuer>
              <saml:Subject><saml:NameID>\(Markup.escaped(subject))</saml:NameID></saml:Subject>
              <saml:Conditions><saml:AudienceRestriction>\
            <saml:Audience>\(Markup.escaped(audience ?? name))</saml:Audience>\
            </saml:AudienceRestriction></saml:Conditions>
              <sandbox:Expiry xmlns:sandbox="urn:ringback:sandbox">\(expiry)</sandbox:Expiry>

            """
        let signature = try keys.key(for: .es256).key.sign(message: Array(text.utf8), algorithm: .es256)
        return text + Issuer.sealStart + Base64URL.encode(signature) + Issuer.end
    }

    /// The subject of an assertion in base64url (RFC 7522 section 2.1), if this issuer made it and it is valid now.
    mutating func subject(ofSAML assertion: String, at now: Int) throws -> String {
        guard let bytes = Base64URL.decode(assertion[...]), let text = String(validating: bytes, as: UTF8.self),
            let seal = text.firstRange(of: Issuer.sealStart), text.hasSuffix(Issuer.end),
            let signature = Base64URL.decode(text[seal.upperBound...].dropLast(Issuer.end.count))
        else { throw ErrorResponse("invalid_grant", "the assertion is not base64url of a SAML assertion") }
        let signed = text[..<seal.lowerBound]
        let key = try keys.key(for: .es256).key.publicKey
        guard key.verify(signature: signature, message: Array(signed.utf8), algorithm: .es256),
            Issuer.content(of: "saml:Issuer", in: signed) == Markup.escaped(name)
        else { throw ErrorResponse("invalid_grant", "nobody who is trusted made the assertion") }
        let audiences = [name, url(.token)].map { Markup.escaped($0) }
        guard let audience = Issuer.content(of: "saml:Audience", in: signed), audiences.contains(audience) else {
            throw ErrorResponse("invalid_grant", "the assertion is meant for another audience")
        }
        guard
            let expiry = signed.firstRange(of: "sandbox\">").flatMap({ range in
                Int(signed[range.upperBound...].prefix { $0 != "<" })
            }), expiry > now
        else { throw ErrorResponse("invalid_grant", "the assertion has expired") }
        guard let subject = Issuer.content(of: "saml:NameID", in: signed), !subject.isEmpty else {
            throw ErrorResponse("invalid_grant", "the assertion is about nobody")
        }
        return subject
    }

    private static func content(of element: String, in text: Substring) -> String? {
        guard let start = text.firstRange(of: "<\(element)>") else { return nil }
        return String(text[start.upperBound...].prefix { $0 != "<" })
    }
}
