internal import OAuth
internal import RingbackBase

/// Reads the provider. Exactly one of `issuer`, `provider`, `endpoints` and `mcp` must be given; only `mcp` may be
/// combined with `issuer`.
extension AccountReader {
    private static let words = (ProviderPreset.names + ["supabase"]).sorted()

    mutating func readProvider() -> AccountProvider? {
        if account.isWritten("mcp") { return readServer() }
        for key in MCPReader.keys where table.has(key) { account.refuse(key, "belongs to mcp = \"URL\" only") }
        let ways = ["issuer", "provider", "endpoints"].filter { account.isWritten($0) }
        guard ways.count == 1 else {
            let found = ways.isEmpty ? "none is there" : "\(ways.joined(separator: " and ")) are there"
            account.refuse(
                ways.dropFirst().first, "an account has exactly one of issuer, provider, endpoints and mcp; \(found)")
            return nil
        }
        let word = table.string("provider")
        // If `provider` has an error, these keys may belong to it, so they are not reported.
        if word != nil || !account.isWritten("provider") { refuseKeys(ofOthersThan: word) }
        if let issuer = table.string("issuer") { return readIssuer(issuer) }
        if let endpoints = table.table("endpoints") { return readEndpoints(endpoints) }
        return word.flatMap { word in word == "supabase" ? SupabaseReader.read(&account) : readPreset(word) }
    }

    private mutating func readServer() -> AccountProvider? {
        refuseKeys(ofOthersThan: nil)
        return table.string("mcp").flatMap { MCPReader.read(&account, $0) }
    }

    /// Rejects keys that belong to another value of `provider`.
    private mutating func refuseKeys(ofOthersThan word: String?) {
        for (key, owner) in [("tenant", "microsoft"), ("host", "gitlab")]
            + SupabaseReader.keys.map({ ($0, "supabase") })
        where table.has(key) && word != owner {
            account.refuse(key, "belongs to provider = \"\(owner)\" only")
        }
    }

    private mutating func readIssuer(_ issuer: String) -> AccountProvider? {
        if let place = issuer.firstRange(of: "/.well-known/") {
            account.refuse(
                "issuer",
                "is the address of the provider's metadata; the issuer is the part before /.well-known/: "
                    + "\(issuer[..<place.lowerBound])")
            return nil
        }
        do throws(OAuthError) {
            _ = try ProviderMetadata.discoveryRequests(issuer: issuer)
            return .oidc(issuer: issuer)
        } catch {
            account.refuse("issuer", AccountReader.reason(error))
            return nil
        }
    }

    private mutating func readEndpoints(_ endpoints: TOMLTableReader) -> AccountProvider? {
        var isGood = true
        // A service account has no sign-in page, so it needs no authorization endpoint.
        for key in account.isService ? ["token"] : ["authorization", "token"] where !endpoints.has(key) {
            isGood = false
            if !account.isWritten(key, in: "endpoints") { account.refuse("endpoints", "needs \(key)") }
        }
        for member in endpoints.members {
            guard case .string(let text) = member.node.value else { continue }
            let url = try? WebURL(parsing: text)
            if url?.isSecure != true || url?.fragment != nil {
                isGood = false
                account.refuse(
                    "endpoints", member.node, member.key, "must be an https URL without a fragment (http on loopback)")
            }
        }
        guard isGood, let token = endpoints.string("token") else { return nil }
        do throws(OAuthError) {
            return .oauth2(
                try ProviderMetadata(
                    authorizationEndpoint: endpoints.string("authorization"), tokenEndpoint: token,
                    userinfoEndpoint: endpoints.string("userinfo"), revocationEndpoint: endpoints.string("revocation"),
                    deviceAuthorizationEndpoint: endpoints.string("device_authorization"),
                    pushedAuthorizationRequestEndpoint: endpoints.string("pushed_authorization_request")
                ))
        } catch {
            account.refuse("endpoints", AccountReader.reason(error))
            return nil
        }
    }

    private mutating func readPreset(_ word: String) -> AccountProvider? {
        guard ProviderPreset.names.contains(word) else {
            let nearest = NearestWord.find(for: word, among: Self.words).map { "; did you mean \"\($0)\"?" } ?? ""
            account.refuse("provider", "must be one of \(Self.words.joined(separator: ", "))\(nearest)")
            return nil
        }
        do throws(OAuthError) {
            return .preset(
                try ProviderPreset(
                    name: word, tenant: word == "microsoft" ? table.string("tenant") : nil,
                    host: word == "gitlab" ? table.string("host") : nil
                ))
        } catch {
            // A preset has only one of the two keys, so the error concerns that one.
            let key = word == "microsoft" ? "tenant" : "host"
            if !account.isWritten(key) || table.has(key) {
                account.refuse(table.has(key) ? key : "provider", AccountReader.reason(error))
            }
            return nil
        }
    }

    /// The reason of a configuration error.
    static func reason(_ error: OAuthError) -> String {
        if case .misconfigured(let reason) = error { reason } else { "cannot be used" }
    }
}

/// Which servers are trusted, and additional header fields.
extension AccountReader {
    mutating func readTrust() -> ServerTrust {
        let pins = table.strings("pinned_public_keys") ?? []
        for (pin, node) in pins where !Self.isPin(pin) {
            account.refuse("pinned_public_keys", node, "must be sha256// and the base64 of 32 bytes")
        }
        if table.has("pinned_public_keys"), pins.isEmpty {
            account.refuse("pinned_public_keys", "is empty: no key could match")
        }
        var certificates: [UInt8]?
        if let path = readCertificateFile() {
            switch CertificateFile.read(path, user: account.place.user) {
            case .success(let bytes): certificates = bytes
            case .failure(let mistake): account.refuse("ca_file", mistake)
            }
        }
        return ServerTrust(certificateAuthorities: certificates, pinnedPublicKeys: pins.map(\.text))
    }

    /// The path of `ca_file`.
    mutating func readCertificateFile() -> String? {
        table.string("ca_file").flatMap { account.expand("ca_file", $0) }
    }

    private static func isPin(_ text: String) -> Bool {
        let digits = Array(text.utf8.dropFirst("sha256//".utf8.count))
        guard text.hasPrefix("sha256//"), digits.count == 44, digits.last == UInt8(ascii: "=") else { return false }
        return digits.dropLast().allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "+"), UInt8(ascii: "/"): true
            default: false
            }
        }
    }

    /// Header fields that the request sets itself, that would break its framing, or that contain other secrets.
    private static let reservedFields: Set<String> = [
        "authorization", "connection", "cookie", "expect", "host", "keep-alive", "proxy-authorization",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    mutating func readHeaders() -> [FormEncoding.Pair] {
        var headers: [FormEncoding.Pair] = []
        var names: Set<String> = []
        for member in table.table("headers")?.members ?? [] {
            guard case .string(let value) = member.node.value else { continue }
            let lowered = member.key.lowercased()
            if member.key.isEmpty || !member.key.utf8.allSatisfy(HTTPFields.isTokenByte) {
                account.refuse("headers", member.node, member.key, "is not the name of a header field")
            } else if Self.reservedFields.contains(lowered) || lowered.hasPrefix("content-") {
                account.refuse("headers", member.node, member.key, "is set by Ringback itself")
            } else if !names.insert(lowered).inserted {
                account.refuse("headers", member.node, member.key, "is listed twice")
            }
            if !AccountTable.isPrintable(value, mayBeEmpty: true) {
                account.refuse("headers", member.node, member.key, "must be printable ASCII on one line")
            }
            headers.append(FormEncoding.Pair(member.key, value))
        }
        return headers
    }
}

/// Settings of authorization requests and the requirements for their responses.
extension AccountReader {
    /// The check of RFC 9207 compares `iss` with the issuer, so the issuer must be known.
    mutating func readIssuerInResponse(of provider: AccountProvider) -> Bool {
        guard table.boolean("authorization_response_iss") == true else { return false }
        if provider.issuer == nil {
            account.refuse(
                "authorization_response_iss", "needs issuer: without it there is nothing to compare iss with")
        }
        return true
    }

    mutating func readPushedRequests(of provider: AccountProvider) -> PushedRequests {
        let key = "pushed_authorization_requests"
        refuseAtProject(key, provider)
        guard let mode = table.string(key).flatMap(PushedRequests.init) else { return .automatic }
        if mode == .required, let endpoints = provider.endpoints, endpoints.pushedAuthorizationRequestEndpoint == nil {
            account.refuse(key, "\"required\" needs pushed_authorization_request among the endpoints")
        }
        return mode
    }

    /// OpenID Connect Core section 11. The providers of the presets have other rules for offline access.
    mutating func readOfflineConsent(of provider: AccountProvider) -> Bool {
        refuseAtProject("offline_access_consent", provider)
        if let isWanted = table.boolean("offline_access_consent") { return isWanted }
        if case .oidc = provider { return true }
        return false
    }

    private mutating func refuseAtProject(_ key: String, _ provider: AccountProvider) {
        if case .supabase = provider, table.has(key) {
            account.refuse(key, "has no meaning with provider = \"supabase\"")
        }
    }
}

extension OAuthError {
    /// What is wrong with a setting.
    var configurationMistake: String {
        if case .misconfigured(let reason) = self { reason } else { "cannot be used" }
    }
}
