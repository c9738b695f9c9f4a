public import Cryptography
public import RingbackBase

/// A provider's issuer, endpoints and features (RFC 8414 section 2, OpenID Connect Discovery section 3). Every endpoint
/// here is a URL that secrets may be sent to.
public struct ProviderMetadata: Sendable, Equatable {
    /// As configured, byte for byte; nil for an OAuth server whose endpoints were configured one by one.
    public let issuer: String?
    /// The issuer that ID tokens must have: ``issuer``, or the template of Microsoft's directories, see
    /// ``IDTokenExpectations/issuer``.
    public let idTokenIssuer: String?
    /// Empty for a server that only issues tokens to services, or to other devices.
    public internal(set) var authorizationEndpoint: String
    public let tokenEndpoint: String
    public internal(set) var jwksURI: String?
    public internal(set) var userinfoEndpoint: String?
    /// The member names that the userinfo endpoint uses.
    public internal(set) var userinfoDialect = UserinfoDialect.openID
    /// RFC 7009.
    public internal(set) var revocationEndpoint: String?
    public internal(set) var endSessionEndpoint: String?
    /// RFC 8628.
    public internal(set) var deviceAuthorizationEndpoint: String?
    /// RFC 9126.
    public internal(set) var pushedAuthorizationRequestEndpoint: String?
    /// The provider accepts only pushed authorization requests (RFC 9126).
    public internal(set) var requiresPushedAuthorization = false
    /// RFC 7591.
    public internal(set) var registrationEndpoint: String?
    /// The provider sends `iss` in every authorization response (RFC 9207).
    public internal(set) var supportsIssuerInResponse: Bool
    /// Nil if the metadata do not say. S256 is sent anyway; whether the provider checks it is then unknown.
    public internal(set) var codeChallengeMethods: [String]?
    /// Nil if the metadata do not say, which means `client_secret_basic`.
    public internal(set) var tokenEndpointAuthenticationMethods: [String]?
    /// For `private_key_jwt`; nil if the metadata do not say.
    public internal(set) var tokenEndpointSigningAlgorithms: [String]?
    /// Nil if the metadata do not say, which means query and fragment.
    public internal(set) var responseModes: [String]?
    public internal(set) var idTokenSigningAlgorithms: [String]?
    public internal(set) var userinfoSigningAlgorithms: [String]?
    public internal(set) var scopesSupported: [String]?
    /// The values of `prompt` (OpenID Connect Prompt Create section 4.1); nil if the metadata do not say.
    public internal(set) var promptValues: [String]?
    public internal(set) var grantTypes: [String]?
    /// Profiles of grants, such as ``identityAssertionProfile``; nil if the metadata do not say.
    public internal(set) var grantProfiles: [String]?
    /// The server takes assertions about users from other providers (ID-JAG).
    public static let identityAssertionProfile = "urn:ietf:params:oauth:grant-profile:id-jag"
    /// A client id may be the URL of a document that describes the client.
    public internal(set) var supportsClientMetadataDocuments = false
    /// Of proofs (RFC 9449 section 5.1); nil if the metadata do not say, which means that tokens are not bound to keys.
    public internal(set) var dpopSigningAlgorithms: [String]?
    /// What the document calls an endpoint, with the aliases for mutual TLS (RFC 8705 section 5), without userinfo.
    private var statedEndpoints: Set<String> = []
    /// Why members of the document are not usable, in words that begin with their names.
    public internal(set) var unusableMembers: [String] = []

    /// Metadata from the configuration, for a server that publishes none. Throws `.misconfigured` for an endpoint that
    /// is not https (or http on loopback), or has a fragment or user information.
    public init(
        issuer: String? = nil, authorizationEndpoint: String?, tokenEndpoint: String, jwksURI: String? = nil,
        userinfoEndpoint: String? = nil, revocationEndpoint: String? = nil, endSessionEndpoint: String? = nil,
        deviceAuthorizationEndpoint: String? = nil, pushedAuthorizationRequestEndpoint: String? = nil,
        registrationEndpoint: String? = nil, supportsIssuerInResponse: Bool = false
    ) throws(OAuthError) {
        let endpoints = [
            ("authorization", authorizationEndpoint), ("token", tokenEndpoint), ("jwks", jwksURI),
            ("userinfo", userinfoEndpoint), ("revocation", revocationEndpoint), ("end_session", endSessionEndpoint),
            ("device_authorization", deviceAuthorizationEndpoint),
            ("pushed_authorization_request", pushedAuthorizationRequestEndpoint),
            ("registration", registrationEndpoint),
        ]
        for case (let name, let endpoint?) in endpoints where EndpointRule.url(endpoint) == nil {
            throw .misconfigured(reason: "the \(name) endpoint is not an https URL (or http on loopback)")
        }
        self.issuer = issuer
        self.idTokenIssuer = issuer
        self.authorizationEndpoint = authorizationEndpoint ?? ""
        self.tokenEndpoint = tokenEndpoint
        self.jwksURI = jwksURI
        self.userinfoEndpoint = userinfoEndpoint
        self.revocationEndpoint = revocationEndpoint
        self.endSessionEndpoint = endSessionEndpoint
        self.deviceAuthorizationEndpoint = deviceAuthorizationEndpoint
        self.pushedAuthorizationRequestEndpoint = pushedAuthorizationRequestEndpoint
        self.registrationEndpoint = registrationEndpoint
        self.supportsIssuerInResponse = supportsIssuerInResponse
    }

    init(reading source: MetadataDocument, issuer: String, idTokenIssuer: String) throws(OAuthError) {
        var document = source
        self.issuer = issuer
        self.idTokenIssuer = idTokenIssuer
        authorizationEndpoint = document.endpoint("authorization_endpoint") ?? ""
        tokenEndpoint = try document.requiredEndpoint("token_endpoint")
        jwksURI = document.endpoint("jwks_uri")
        userinfoEndpoint = document.endpoint("userinfo_endpoint")
        revocationEndpoint = document.endpoint("revocation_endpoint")
        endSessionEndpoint = document.endpoint("end_session_endpoint")
        deviceAuthorizationEndpoint = document.endpoint("device_authorization_endpoint")
        pushedAuthorizationRequestEndpoint = document.endpoint("pushed_authorization_request_endpoint")
        requiresPushedAuthorization = document.flag("require_pushed_authorization_requests")
        registrationEndpoint = document.endpoint("registration_endpoint")
        supportsIssuerInResponse = document.flag("authorization_response_iss_parameter_supported")
        codeChallengeMethods = document.texts("code_challenge_methods_supported")
        tokenEndpointAuthenticationMethods = document.texts("token_endpoint_auth_methods_supported")
        tokenEndpointSigningAlgorithms = document.texts("token_endpoint_auth_signing_alg_values_supported")
        responseModes = document.texts("response_modes_supported")
        idTokenSigningAlgorithms = document.texts("id_token_signing_alg_values_supported")
        userinfoSigningAlgorithms = document.texts("userinfo_signing_alg_values_supported")
        scopesSupported = document.texts("scopes_supported")
        promptValues = document.texts("prompt_values_supported")
        grantTypes = document.texts("grant_types_supported")
        grantProfiles = document.texts("authorization_grant_profiles_supported")
        supportsClientMetadataDocuments = document.flag("client_id_metadata_document_supported")
        dpopSigningAlgorithms = document.texts("dpop_signing_alg_values_supported")
        statedEndpoints = document.endpoints
        unusableMembers = document.unusable
    }
}

/// Reads members of a metadata document. A member that is not usable counts as absent and is noted: a refresh, for
/// example, works without it.
struct MetadataDocument {
    let object: JSONObject
    let issuer: WebURL
    private(set) var unusable: [String] = []

    mutating func endpoint(_ name: String) -> String? {
        do throws(OAuthError) {
            return try checked(name)
        } catch {
            if case .invalid(_, let reason) = error { unusable.append(reason) }
            return nil
        }
    }

    /// Throws `.invalid` for an endpoint that is not usable.
    private func checked(_ name: String) throws(OAuthError) -> String? {
        switch object[name] {
        case nil, .null?: return nil
        case .string(let text)?:
            guard let url = EndpointRule.url(text) else {
                throw .invalid(.metadata, reason: "\(name) is not an https URL (or http on loopback)")
            }
            guard EndpointRule.allows(url, of: issuer) else {
                throw .invalid(.metadata, reason: "\(name) is at a local or IP address that is not the issuer's")
            }
            return text
        default: throw .invalid(.metadata, reason: "\(name) is not text")
        }
    }

    /// The values of every member that is called an endpoint, but of `userinfo_endpoint`.
    var endpoints: Set<String> {
        let members = object.members + (object["mtls_endpoint_aliases"]?.object?.members ?? [])
        let named = members.filter { $0.name.hasSuffix("_endpoint") && $0.name != "userinfo_endpoint" }
        return Set(named.compactMap(\.value.string))
    }

    func requiredEndpoint(_ name: String) throws(OAuthError) -> String {
        guard let endpoint = try checked(name) else { throw .invalid(.metadata, reason: "no \(name)") }
        return endpoint
    }

    /// False if the member is absent or not a boolean.
    func flag(_ name: String) -> Bool { object[name]?.bool ?? false }

    /// The texts of the list; nil if it is absent or not a list. One text in place of a list is separated by spaces.
    mutating func texts(_ name: String) -> [String]? {
        switch object[name] {
        case nil, .null?: return nil
        case .array(let elements)?:
            let texts = elements.compactMap(\.string)
            if texts.count == elements.count { return texts }
            unusable.append("\(name) is not a list of texts")
            return texts.isEmpty ? nil : texts
        case .string(let text)?:
            unusable.append("\(name) is not a list of texts")
            return text.split(separator: " ").map(String.init)
        default:
            unusable.append("\(name) is not a list of texts")
            return nil
        }
    }
}

extension ProviderMetadata {
    /// True if a member that we use is missing, so that the document at the other location should be fetched: some
    /// providers publish two documents, one of them without the revocation endpoint.
    public var isWorthCompleting: Bool {
        authorizationEndpoint.isEmpty || jwksURI == nil || userinfoEndpoint == nil || revocationEndpoint == nil
    }

    /// A copy in which missing members are taken from the document at the other location, unless it has another issuer,
    /// authorization endpoint or token endpoint: it may describe another server, to which tokens must not be sent. A
    /// promise or requirement in either document counts, because ignoring one would weaken a check.
    public func completed(by other: ProviderMetadata) -> ProviderMetadata {
        guard let issuer, let theirs = other.issuer, issuer.isSameBytes(as: theirs),
            idTokenIssuer == other.idTokenIssuer, tokenEndpoint.isSameBytes(as: other.tokenEndpoint),
            authorizationEndpoint.isEmpty || other.authorizationEndpoint.isEmpty
                || authorizationEndpoint.isSameBytes(as: other.authorizationEndpoint)
        else { return self }
        var whole = self
        if authorizationEndpoint.isEmpty { whole.authorizationEndpoint = other.authorizationEndpoint }
        for endpoint in [
            \.jwksURI, \.userinfoEndpoint, \.revocationEndpoint, \.endSessionEndpoint, \.deviceAuthorizationEndpoint,
            \.pushedAuthorizationRequestEndpoint, \.registrationEndpoint,
        ] as [WritableKeyPath<ProviderMetadata, String?>] {
            whole[keyPath: endpoint] = self[keyPath: endpoint] ?? other[keyPath: endpoint]
        }
        for list in [
            \.codeChallengeMethods, \.tokenEndpointAuthenticationMethods, \.tokenEndpointSigningAlgorithms,
            \.responseModes, \.idTokenSigningAlgorithms, \.userinfoSigningAlgorithms, \.scopesSupported, \.grantTypes,
            \.grantProfiles, \.promptValues, \.dpopSigningAlgorithms,
        ] as [WritableKeyPath<ProviderMetadata, [String]?>] {
            whole[keyPath: list] = self[keyPath: list] ?? other[keyPath: list]
        }
        for flag in [
            \.requiresPushedAuthorization, \.supportsIssuerInResponse, \.supportsClientMetadataDocuments,
        ] as [WritableKeyPath<ProviderMetadata, Bool>] {
            whole[keyPath: flag] = self[keyPath: flag] || other[keyPath: flag]
        }
        whole.statedEndpoints.formUnion(other.statedEndpoints)
        return whole
    }
}

extension ProviderMetadata {
    /// True if tokens can be bound to a ``DPoPKey``.
    public var offersDPoP: Bool { dpopSigningAlgorithms?.contains(SignatureAlgorithm.es256.rawValue) == true }

    /// The endpoints that take more than an access token: all but userinfo.
    private var endpoints: Set<String> {
        let known = [
            tokenEndpoint, authorizationEndpoint, revocationEndpoint, deviceAuthorizationEndpoint,
            pushedAuthorizationRequestEndpoint, registrationEndpoint,
        ]
        return statedEndpoints.union(known.compactMap(\.self))
    }

    /// True if a server may take the URL for such an endpoint, in whatever spelling.
    public func hasEndpoint(at url: WebURL) -> Bool {
        let place = EndpointPlace(url)
        return endpoints.contains { text in
            (try? WebURL(parsing: text)).map { place.mayLead(to: EndpointPlace($0)) } == true
        }
    }
}

/// Where a URL leads, for servers that ignore letter case, empty segments, path parameters and suffixes, too.
private struct EndpointPlace {
    private let scheme: String
    private let host: String?
    private let port: Int?
    /// Nil for a path that servers may read in different ways.
    private let path: [Substring]?

    init(_ url: WebURL) {
        let place = OriginPlace(url)
        scheme = place.scheme
        // Names of this machine.
        host = url.isLoopback ? "localhost" : place.host.map { $0.hasSuffix(".") ? String($0.dropLast()) : $0 }
        port = place.port
        path = place.segments?.map(EndpointPlace.name).filter { !$0.isEmpty }
    }

    /// Servers may take `token.json` for `token`.
    private static func name(_ segment: String) -> Substring {
        let name = segment.lowercased().replacing("%3b", with: ";").prefix { $0 != ";" }
        guard let dot = name.lastIndex(of: "."), dot > name.startIndex else { return name }
        return name[..<dot]
    }

    /// True also for what is below an endpoint: servers may take it for information about the path (RFC 3875 section
    /// 4.1.5), and the request for one to the endpoint itself.
    func mayLead(to endpoint: EndpointPlace) -> Bool {
        guard scheme == endpoint.scheme, host == endpoint.host, port == endpoint.port else { return false }
        guard let path, let target = endpoint.path else { return true }
        return target.isEmpty ? path.isEmpty : path.starts(with: target)
    }
}

/// The provider's signature algorithms that we can verify. They come from the metadata, never from a token's header.
extension ProviderMetadata {
    /// The algorithms allowed for ID tokens; RS256 if the metadata do not say (OpenID Connect Discovery section 3).
    public var allowedIDTokenAlgorithms: Set<SignatureAlgorithm> {
        Set(idTokenSigningAlgorithms?.compactMap(SignatureAlgorithm.init(rawValue:)) ?? [.rs256])
    }

    /// The algorithms allowed for signed userinfo; those for ID tokens if the metadata do not say.
    public var allowedUserinfoAlgorithms: Set<SignatureAlgorithm> {
        let stated = userinfoSigningAlgorithms?.compactMap(SignatureAlgorithm.init(rawValue:)) ?? []
        return stated.isEmpty ? allowedIDTokenAlgorithms : Set(stated)
    }

    /// Throws `.misconfigured` if no ID token of this provider could be verified, before the sign-in. HS256 and the
    /// like are unsupported: they use the client secret, so whoever knows it could sign as the provider.
    public func checkIDTokens() throws(OAuthError) {
        guard issuer != nil, jwksURI != nil else {
            throw .misconfigured(
                reason: "with the scope openid, the provider's issuer and jwks endpoint are needed to check ID tokens")
        }
        guard let stated = idTokenSigningAlgorithms, allowedIDTokenAlgorithms.isEmpty else { return }
        let names = CheckedText.code(stated.prefix(8).joined(separator: ", "))
        throw .misconfigured(
            reason: "the provider signs ID tokens with \(names.isEmpty ? "nothing" : names), which cannot be checked "
                + "with a published key; RS, PS and ES 256, 384 and 512 and EdDSA can. Choose another algorithm for "
                + "this client at the provider, or leave the scope openid out")
    }
}

/// The rule for URLs that secrets are sent to. Attack: metadata of an external provider could name a loopback or
/// internal address and make us send requests there, so addresses must be the issuer's own.
enum EndpointRule {
    /// The URL, if it is https (or http on loopback) without user information and fragment (RFC 6749 sections 3.1,
    /// 3.2).
    static func url(_ text: String) -> WebURL? {
        guard let url = try? WebURL(parsing: text), url.isSecure, url.fragment == nil else { return nil }
        return url
    }

    /// True if metadata of the issuer may name the endpoint: a host name, or the issuer's own address or loopback.
    static func allows(_ endpoint: WebURL, of issuer: WebURL) -> Bool {
        guard let host = endpoint.host, isLocalOrAddress(host) else { return true }
        return host == issuer.host || (endpoint.isLoopback && issuer.isLoopback)
    }

    private static let hostsFile: Set<String> = ["ip6-localhost", "ip6-loopback", "localhost4", "localhost6"]

    /// True for `localhost` and its aliases in a hosts file, IPv6 literals, escaped hosts, and hosts whose last label
    /// begins with a digit: resolvers read 127.1, 0x7f000001 and 017700000001 as addresses.
    private static func isLocalOrAddress(_ host: String) -> Bool {
        let labels = host.utf8.split(separator: UInt8(ascii: "."))
        guard let last = labels.last, let first = last.first else { return true }
        return host.utf8.contains { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "%") }
            || (labels.count == 1 && hostsFile.contains(String(host.prefix { $0 != "." })))
            || ["localhost", "localdomain"].contains { last.elementsEqual($0.utf8) }
            || (first >= 0x30 && first <= 0x39)
    }
}
