internal import Cryptography
internal import LocalHTTP
internal import RingbackBase

/// What clients have proven with their keys (RFC 9449), and the nonces for that.
struct Proofs {
    /// A nonce for one role is none for the other (section 9).
    enum Role { case authorization, resource }

    /// Seconds: how old a proof may be, and how far in the future.
    private static let maxAge = 60
    private static let leeway = 5
    private static let maxNonces = 1_000

    /// The thumbprint of the key that the token request in progress has proven; nil without a proof.
    var current: String?
    /// The `jti` of each proof that was accepted, and when it may be forgotten.
    private var used: [String: Int] = [:]
    /// Those that are good, the newest last.
    private var nonces: [Role: [String]] = [:]

    /// The nonce that a response states.
    mutating func nonce(for role: Role, isForOnce: Bool) -> String {
        if !isForOnce, let nonce = nonces[role]?.last { return nonce }
        let nonce = Issuer.newToken("nonce")
        nonces[role, default: []].append(nonce)
        if nonces[role, default: []].count > Proofs.maxNonces { nonces[role, default: []].removeFirst() }
        return nonce
    }

    mutating func take(_ nonce: String?, for role: Role, isForOnce: Bool) -> Bool {
        guard let nonce, let index = nonces[role]?.firstIndex(of: nonce) else { return false }
        if isForOnce { nonces[role]?.remove(at: index) }
        return true
    }

    func isCurrent(_ issued: Int?, at now: Int) -> Bool {
        issued.map { (now - Proofs.maxAge...now + Proofs.leeway).contains($0) } ?? false
    }

    /// False for a `jti` that was used before.
    mutating func use(_ name: String, at now: Int) -> Bool {
        used = used.filter { $0.value > now }
        return used.updateValue(now + Proofs.maxAge + Proofs.leeway, forKey: name) == nil
    }
}

extension Issuer {
    /// The thumbprint (RFC 7638) of the key that a request proves; nil without a proof where none is required. `token` is
    /// the access token that it must be for (section 4.3).
    mutating func provenKey(
        _ request: SandboxRequest, _ endpoint: Endpoint, token: String? = nil, at now: Int
    ) throws -> String? {
        guard settings.proofs != .off else { return nil }
        let role = endpoint == .userinfo ? Proofs.Role.resource : .authorization
        func check(_ isMet: Bool, _ reason: String, _ code: String = "invalid_dpop_proof") throws {
            let isAtResource = role == .resource
            try require(isMet, code, reason, status: isAtResource ? 401 : 400, challenge: isAtResource ? "DPoP" : nil)
        }
        let lines = request.fields[all: "DPoP"]
        guard let text = lines.first else {
            try check(settings.proofs != .required && token == nil, "a proof is required")
            return nil
        }
        try check(lines.count == 1, "more than one proof")
        let proof = JSONWebToken(parsing: text)
        let claims = proof?.claims ?? JSONObject()
        let jwk = proof?.header["jwk"].flatMap { SandboxClient.keys(in: ["keys": [$0]])?.first }
        guard let proof, let jwk, proof.header["typ"]?.string == "dpop+jwt", proof.algorithm == .es256,
            proof.isSigned(by: jwk, .es256)
        else {
            try check(false, "the proof is not one that the key in it has signed with ES256")
            return nil
        }
        try check(claims["htm"]?.string == request.method, "the proof is for another method")
        try check(claims["htu"]?.string == url(endpoint), "the proof is for another URL")
        try check(proofs.isCurrent(claims["iat"]?.integer, at: now), "the proof is too old, or from the future")
        let hash = token.map { Base64URL.encode(Digest.sha256($0)) }
        try check(claims["ath"]?.string == hash, "the proof is for another token")
        if settings.proofNonces != .off {
            let isKnown = proofs.take(
                claims["nonce"]?.string, for: role, isForOnce: settings.proofNonces == .once)
            try check(isKnown, "the proof needs the nonce of this response", "use_dpop_nonce")
        }
        let name = claims["jti"]?.string ?? ""
        try check(!name.isEmpty && proofs.use(name, at: now), "the proof has no jti, or was used before")
        return jwk.thumbprint
    }

    /// The nonce for the next request to an endpoint that takes proofs; nil for others, and without nonces.
    mutating func nonceForNext(_ endpoint: Endpoint) -> String? {
        guard settings.proofs != .off, settings.proofNonces != .off,
            [.token, .pushedAuthorization, .userinfo].contains(endpoint)
        else { return nil }
        return proofs.nonce(
            for: endpoint == .userinfo ? .resource : .authorization, isForOnce: settings.proofNonces == .once)
    }
}

extension PublicKey {
    /// RFC 7638 section 3.
    fileprivate var thumbprint: String {
        let members = JSONObject(webKey.members.sorted { $0.name < $1.name })
        return Base64URL.encode(Digest.sha256(members.jsonValue.serialized()))
    }
}
