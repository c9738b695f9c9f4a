public import BrokerCore
internal import Cryptography
public import OAuth
internal import RingbackBase

// One sign-in for many services (draft-ietf-oauth-identity-assertion-authz-grant): the provider of the user's account
// gives an assertion about the user, which another authorization server takes in place of a sign-in of its own.

/// What an assertion is for.
public struct AssertionUse: Sendable {
    /// The issuer of the authorization server that takes it, byte for byte.
    public let audience: String
    /// The URI of the server whose tokens it brings (RFC 8707); nil for none.
    public let resource: String?
    public let scopes: [String]
    /// The one that this server has just refused: another is wanted.
    public internal(set) var rejected: Assertion?
}

extension AssertionUse {
    /// An assertion about the user of an account. It is held with the account's session, and used until it ends.
    ///
    /// - Throws: `signInRequired` and its like for that account; `stepUpRequired`; `upstream` for an error of its provider.
    public func assertion(ofUserOf name: AccountName, by broker: Broker) async throws(BrokerError) -> Assertion {
        let key = TokenKey(scopes: scopes, audience: audience, resource: resource, isAssertion: true)
        let query = SessionQuery(key: key)
        do throws(BrokerError) {
            if let rejected {
                let digest = Digest.sha256(rejected.text.revealedBytes())
                _ = try await broker.refresh(name, of: query, isForced: true, rejected: digest)
            }
            let token = try await broker.session(name, query).token.value
            return try BrokerError.reading(from: name.rawValue, try Assertion(parsing: token))
        } catch {
            throw error.ofUpstream(name)
        }
    }
}

extension OAuthProvider {
    /// Requests an assertion with the session's ID token. If that is not fresh, the refresh token is shown in its place.
    func assertionRenewal(
        of session: Session, for key: TokenKey, _ metadata: ProviderMetadata, _ registration: ClientRegistration
    ) throws(BrokerError) -> Renewal {
        let proofKey = try provider.proofs.key(of: session)
        let idToken = session.freshIDToken(at: provider.clock.bootInstant)
        let (account, host) = (provider.account, HTTPRequest(url: metadata.tokenEndpoint).host)
        return Renewal(
            presents: idToken == nil ? Array(session.refreshTokens.prefix(1)) : [],
            send: { [provider] token, attempt throws(BrokerError) in
                guard let subject = idToken ?? token else { throw .signInRequired(account.name) }
                let response = try await provider.send(
                    as: registration, at: metadata, provenBy: proofKey, under: idToken == nil ? attempt : nil
                ) { registration in
                    TokenRequest.identityAssertion(
                        of: subject, type: idToken == nil ? .refreshToken : .idToken, scope: key.scopes ?? [],
                        audience: key.audience, resource: key.resource, registration: registration,
                        endpoint: metadata.tokenEndpoint)
                }
                let found: TokenResponse
                do throws(OAuthError) {
                    found = try TokenResponse(reading: response)
                } catch {
                    throw BrokerError(stepUpOf: account.name, demandedIn: response)
                        ?? BrokerError(error, of: response, host: host).unquoting(subject, registration.secret)
                }
                return RenewalResponse(refreshToken: idToken == nil ? found.refreshToken : nil) {
                    held throws(BrokerError) in
                    let assertion = try BrokerError.reading(
                        from: host, try IdentityAssertion(parsing: response, now: provider.clock.now()))
                    var renewed = held
                    // Most exchanges replace no refresh token: that does not show that refreshes replace none.
                    if found.refreshToken == nil { renewed.rotation = session.rotation }
                    let lifetime = Duration.seconds(assertion.lifetime)
                    renewed.tokens[key] = AccessToken(
                        value: assertion.text, type: "N_A", scope: nil,
                        expiry: Deadline(in: lifetime, by: provider.clock), lifetime: lifetime)
                    return renewed
                }
            },
            meaning: { error in
                guard idToken == nil else { return .requestOnly(isUnchanged: true) }
                return error.provesDeadGrant
                    ? .dead(code: nil) : .requestOnly(isUnchanged: error.provesUnchanged)
            })
    }
}

extension BrokerError {
    /// Nil if the response demands no other sign-in of the account.
    init?(stepUpOf name: AccountName, demandedIn response: HTTPResponse) {
        guard let demand = StepUpDemand(in: response) else { return nil }
        self = .stepUpRequired(name, acrValues: demand.acrValues, maxAge: demand.maxAge)
    }
}
