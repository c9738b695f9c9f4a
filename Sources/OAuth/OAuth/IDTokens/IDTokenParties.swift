internal import Secrets
internal import StrictJSON

/// The claims that say who issued an ID token, about whom and for whom: `iss`, `sub`, `aud`, `azp` and `nonce`. If one
/// of them is wrong, the whole response belongs to another sign-in, and none of its tokens may be used.
struct IDTokenParties {
    let issuer: String
    /// 1 to 255 bytes.
    let subject: String
    /// A list, not a `Set<String>`, because Swift treats two Unicode spellings of a letter as equal.
    let audience: [String]
    let authorizedParty: String?
    private let claims: JSONObject

    init(claims: JSONObject) throws(OAuthError) {
        self.claims = claims
        guard let issuer = try claims.text("iss") else { throw .invalidIDToken(claim: "iss", reason: "missing") }
        guard let subject = try claims.text("sub") else { throw .invalidIDToken(claim: "sub", reason: "missing") }
        self.issuer = issuer
        self.subject = subject
        audience = try claims.audience()
        authorizedParty = try claims.text("azp")
        guard subject.isSubject else {
            throw .invalidIDToken(claim: "sub", reason: "not 1 to 255 bytes without control characters")
        }
    }

    func check(_ expected: IDTokenExpectations, signer: JSONWebKeySet.Key) throws(OAuthError) {
        try checkParties(expected)
        try checkSigner(signer, expected)
        try checkNonce(expected)
        // Checked last: signature, issuer and audience are good.
        if let wanted = expected.subject, !subject.isSameBytes(as: wanted) { throw .otherSubject }
        if let previous = expected.previous { try checkSuccession(to: previous) }
    }

    private func checkParties(_ expected: IDTokenExpectations) throws(OAuthError) {
        // For a template the token must name its directory in `tid` too. A missing `tid` matches no directory.
        let tenant = IssuerTemplate.isTemplate(expected.issuer) ? try claims.text("tid") ?? "" : nil
        guard IssuerTemplate.admits(issuer, expected: expected.issuer, tenant: tenant) else {
            throw .invalidIDToken(claim: "iss", reason: "another issuer")
        }
        let isOurs = audience.map { $0.isSameBytes(as: expected.clientID) }
        guard isOurs.contains(true) else { throw .invalidIDToken(claim: "aud", reason: "for another client") }
        if let authorizedParty {
            guard authorizedParty.isSameBytes(as: expected.clientID) else {
                throw .invalidIDToken(claim: "azp", reason: "issued to another client")
            }
        } else if isOurs.contains(false) {
            // Without `azp` it is unknown for which of the audiences the token was issued.
            throw .invalidIDToken(claim: "azp", reason: "missing, although there are several audiences")
        }
    }

    /// Directories that share a key set have keys of their own in it, each with its `issuer`.
    private func checkSigner(_ key: JSONWebKeySet.Key, _ expected: IDTokenExpectations) throws(OAuthError) {
        guard IssuerTemplate.isTemplate(expected.issuer), let owner = key.issuer else { return }
        guard owner.isSameBytes(as: issuer) || owner.isSameBytes(as: expected.issuer) else {
            throw .invalidIDToken(claim: "iss", reason: "signed with the key of another issuer")
        }
    }

    private func checkNonce(_ expected: IDTokenExpectations) throws(OAuthError) {
        let nonce = try claims.text("nonce").map { Secret($0) }
        if let sent = expected.nonce, nonce != sent {
            throw .invalidIDToken(claim: "nonce", reason: nonce == nil ? "missing" : "of another sign-in")
        }
        // A refreshed token need not repeat the nonce, but must not have another one (section 12.2).
        if let nonce, let earlier = expected.previous?.nonce, nonce != earlier {
            throw .invalidIDToken(claim: "nonce", reason: "of another sign-in")
        }
    }

    /// OpenID Connect Core section 12.2. The issuer was already compared, but a template accepts several.
    private func checkSuccession(to previous: IDTokenExpectations.Previous) throws(OAuthError) {
        guard previous.issuer?.isSameBytes(as: issuer) ?? true else {
            throw .invalidIDToken(claim: "iss", reason: "another issuer than before")
        }
        guard subject.isSameBytes(as: previous.subject) else { throw .otherSubject }
        let (mine, theirs) = (Set(audience), previous.audience)
        guard mine.count == theirs.count,
            mine.allSatisfy({ mine in theirs.contains { $0.isSameBytes(as: mine) } })
        else { throw .invalidIDToken(claim: "aud", reason: "another audience than before") }
        switch (authorizedParty, previous.authorizedParty) {
        case (nil, nil): break
        case (let mine?, let earlier?) where mine.isSameBytes(as: earlier): break
        default: throw .invalidIDToken(claim: "azp", reason: "another party than before")
        }
    }
}
