internal import OAuth
internal import RingbackBase

/// Reads the provider. Exactly one of `issuer`, `provider`, `endpoints` and `mcp` must be given; only `mcp` may be
/// combined with `issuer`.
extension AccountReader {
    private static let words = (ProviderPreset.names + ["supabase"]).sorted()

    func readProvider() -> AccountProvider? {
        if table.isWritten("mcp") {
            refuseKeys(ofOthersThan: nil)
            return table.string("mcp").flatMap { MCPReader(table: table).read($0) }
        }
        table.refuse(anyOf: MCPReader.keys, "belongs to mcp = \"URL\" only")
        let ways = ["issuer", "provider", "endpoints"].filter { table.isWritten($0) }
        guard ways.count == 1 else {
            let found = ways.isEmpty ? "none is there" : "\(ways.joined(separator: " and ")) are there"
            table.refuse(
                ways.dropFirst().first, "an account has exactly one of issuer, provider, endpoints and mcp; \(found)")
            return nil
        }
        let word = table.string("provider")
        // If `provider` has an error, these keys may belong to it, so they are not reported.
        if word != nil || !table.isWritten("provider") { refuseKeys(ofOthersThan: word) }
        if let issuer = table.string("issuer") { return readIssuer(issuer) }
        if let endpoints = table.table("endpoints") { return readEndpoints(endpoints) }
        return word.flatMap { word in word == "supabase" ? SupabaseReader(table: table).read() : readPreset(word) }
    }

    private func refuseKeys(ofOthersThan word: String?) {
        for (owner, keys) in [("microsoft", ["tenant"]), ("gitlab", ["host"]), ("supabase", SupabaseReader.keys)]
        where word != owner {
            table.refuse(anyOf: keys, "belongs to provider = \"\(owner)\" only")
        }
    }

    private func readIssuer(_ issuer: String) -> AccountProvider? {
        if let place = issuer.firstRange(of: "/.well-known/") {
            table.refuse(
                "issuer",
                "is the address of the provider's metadata; the issuer is the part before /.well-known/: "
                    + "\(issuer[..<place.lowerBound])")
            return nil
        }
        return table.reporting("issuer") { () throws(OAuthError) in
            _ = try ProviderMetadata.discoveryRequests(issuer: issuer)
            return .oidc(issuer: issuer)
        }
    }

    private func readEndpoints(_ endpoints: TOMLMembers) -> AccountProvider? {
        var isGood = true
        // A service account has no sign-in page, so it needs no authorization endpoint.
        for key in isService ? ["token"] : ["authorization", "token"] where !endpoints.has(key) {
            isGood = false
            if !table.isWritten(key, in: "endpoints") { table.refuse("endpoints", "needs \(key)") }
        }
        for member in endpoints.members {
            guard case .string(let text) = member.node.value else { continue }
            let url = try? WebURL(parsing: text)
            if url?.isSecure != true || url?.fragment != nil {
                isGood = false
                table.refuse(
                    "endpoints", member.node, member.key, "must be an https URL without a fragment (http on loopback)")
            }
        }
        guard isGood, let token = endpoints.string("token") else { return nil }
        return table.reporting("endpoints") { () throws(OAuthError) in
            .oauth2(
                try ProviderMetadata(
                    authorizationEndpoint: endpoints.string("authorization"), tokenEndpoint: token,
                    userinfoEndpoint: endpoints.string("userinfo"), revocationEndpoint: endpoints.string("revocation"),
                    deviceAuthorizationEndpoint: endpoints.string("device_authorization"),
                    pushedAuthorizationRequestEndpoint: endpoints.string("pushed_authorization_request")
                ))
        }
    }

    private func readPreset(_ word: String) -> AccountProvider? {
        guard ProviderPreset.names.contains(word) else {
            let hint = NearestWord.hint(for: word, among: Self.words, shown: { "\"\($0)\"" })
            table.refuse("provider", "must be one of \(Self.words.joined(separator: ", "))\(hint)")
            return nil
        }
        do throws(OAuthError) {
            return .preset(
                try ProviderPreset(
                    name: word, tenant: word == "microsoft" ? table.string("tenant") : nil,
                    host: word == "gitlab" ? table.string("host") : nil
                ))
        } catch {
            // A preset has only one of the two keys.
            let key = word == "microsoft" ? "tenant" : "host"
            if !table.isWritten(key) || table.has(key) {
                table.refuse(table.has(key) ? key : "provider", error.message)
            }
            return nil
        }
    }

    func readTrust() -> ServerTrust {
        let pins = table.strings("pinned_public_keys") ?? []
        for (pin, node) in pins where !Self.isPin(pin) {
            table.refuse("pinned_public_keys", node, "must be sha256// and the base64 of 32 bytes")
        }
        if table.has("pinned_public_keys"), pins.isEmpty {
            table.refuse("pinned_public_keys", "is empty: no key could match")
        }
        let certificates = table.filePath("ca_file").flatMap { path in
            table.reporting("ca_file") { () throws(Mistake) in try CertificateFile.read(path, user: table.place.user) }
        }
        return ServerTrust(certificateAuthorities: certificates, pinnedPublicKeys: pins.map(\.text))
    }

    private static func isPin(_ text: String) -> Bool {
        let digits = Array(text.utf8.dropFirst("sha256//".utf8.count))
        guard text.hasPrefix("sha256//"), digits.count == 44, digits.last == UInt8(ascii: "=") else { return false }
        return digits.dropLast().allSatisfy { $0.isLetterOrDigit || "+/".utf8.contains($0) }
    }

    /// Header fields that the request sets itself, that would break its framing, or that contain other secrets.
    private static let reservedFields: Set<String> = [
        "authorization", "connection", "cookie", "dpop", "expect", "host", "keep-alive", "proxy-authorization",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    func readHeaders() -> [FormEncoding.Pair] {
        var headers: [FormEncoding.Pair] = []
        var names: Set<String> = []
        for member in table.table("headers")?.members ?? [] {
            guard case .string(let value) = member.node.value else { continue }
            let lowered = member.key.lowercased()
            if member.key.isEmpty || !member.key.utf8.allSatisfy(HTTPFields.isTokenByte) {
                table.refuse("headers", member.node, member.key, "is not the name of a header field")
            } else if Self.reservedFields.contains(lowered) || lowered.hasPrefix("content-") {
                table.refuse("headers", member.node, member.key, "is set by Ringback itself")
            } else if !names.insert(lowered).inserted {
                table.refuse("headers", member.node, member.key, "is listed twice")
            }
            if !SettingTable.isPrintable(value, mayBeEmpty: true) {
                table.refuse("headers", member.node, member.key, "must be printable ASCII on one line")
            }
            headers.append(FormEncoding.Pair(member.key, value))
        }
        return headers
    }

    /// The check of RFC 9207 compares `iss` with the issuer, so the issuer must be known.
    func readIssuerInResponse(of provider: AccountProvider) -> Bool {
        guard table.boolean("authorization_response_iss") == true else { return false }
        if provider.issuer == nil {
            table.refuse("authorization_response_iss", "needs issuer: without it there is nothing to compare iss with")
        }
        return true
    }

    func readPushedRequests(of provider: AccountProvider) -> PushedRequests {
        let key = "pushed_authorization_requests"
        refuseAtProject(key, provider)
        guard let mode: PushedRequests = table.word(key) else { return .automatic }
        if mode == .required, let endpoints = provider.endpoints, endpoints.pushedAuthorizationRequestEndpoint == nil {
            table.refuse(key, "\"required\" needs pushed_authorization_request among the endpoints")
        }
        return mode
    }

    /// At an MCP server what it and its issuer offer: Ringback itself sends the requests to the server.
    func readDPoP(of provider: AccountProvider) -> DPoPUse {
        let key = "dpop"
        refuseAtProject(key, provider)
        if let use: DPoPUse = table.word(key) {
            if use == .refreshOnly, isService {
                table.refuse(key, "\"refresh-only\" binds refresh tokens, and a service account (with grant) has none")
            }
            return use
        }
        return if case .mcp = provider { .automatic } else { .off }
    }

    /// OpenID Connect Core section 11. The providers of the presets have other rules for offline access.
    func readOfflineConsent(of provider: AccountProvider) -> Bool {
        refuseAtProject("offline_access_consent", provider)
        if let isWanted = table.boolean("offline_access_consent") { return isWanted }
        if case .oidc = provider { return true }
        return false
    }

    private func refuseAtProject(_ key: String, _ provider: AccountProvider) {
        if case .supabase = provider, table.has(key) {
            table.refuse(key, "has no meaning with provider = \"supabase\"")
        }
    }
}

extension OAuthError: SettingFailure {
    var message: String {
        if case .misconfigured(let reason) = self { reason } else { "cannot be used" }
    }
}
