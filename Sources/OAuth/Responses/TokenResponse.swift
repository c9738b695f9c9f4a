public import HTTPMessages
public import Secrets
internal import StrictJSON

/// The token endpoint's answer, in two looks. The first finds the refresh token, which may have been rotated: it must
/// be durable before anything else in the answer can fail. The second checks the rest.
///
/// A refresh token is taken from every successful answer that has a readable one, even if all else in it is broken, the
/// JSON itself included (see ``RefreshTokenSalvage``).
public struct TokenResponse: Sendable {
    /// The new refresh token, unchecked beyond its characters; nil if the old one stays.
    public let refreshToken: Secret?
    private let outcome: Result<TokenSet, OAuthError>

    /// The first look.
    ///
    /// - `.refused`: the provider's no, in OAuth's words, at whatever status (GitHub says it with 200).
    /// - `.unavailable`: 408, 425, 429 or 5xx, whose bodies prove nothing, or the provider's own word for "later".
    /// - `.failing`: 5xx with an OAuth error, which proves no more.
    /// - `.invalid`: no answer of a token endpoint: a page, a redirect, an empty or broken body.
    ///
    /// An answer that was cut off on the way gives its refresh token at most, however complete it looks: nothing else
    /// in it is believed.
    public init(reading response: HTTPResponse) throws(OAuthError) {
        let isSuccess = (200..<300).contains(response.status)
        let object: JSONObject
        do throws(OAuthError) {
            try ResponseReader.checkStatus(response, of: .token)
            object = try ResponseReader.tokenObject(in: response)
        } catch {
            guard isSuccess, let salvaged = RefreshTokenSalvage.token(in: response) else { throw error }
            refreshToken = salvaged
            outcome = .failure(error)
            return
        }
        refreshToken = isSuccess ? TokenText.secret(object["refresh_token"]?.string, allowsSpace: true) : nil
        guard refreshToken == nil else {
            // From here on nothing throws: an answer that says both yes and no must not cost this token.
            outcome = TokenResponse.rest(of: object, refreshToken)
            return
        }
        if let refusal = try ResponseReader.refusal(in: object, status: response.status, of: .token) {
            throw TokenResponse.meaning(of: refusal, object, response)
        }
        guard isSuccess else { throw .invalid(.token, reason: "HTTP \(response.status) without an OAuth error") }
        outcome = TokenResponse.rest(of: object, nil)
    }

    /// The second look: the tokens, or why they cannot be used.
    public func tokenSet() throws(OAuthError) -> TokenSet { try outcome.get() }

    /// RFC 6749 section 4.1.2.1 has words for "later", and servers use them here too.
    private static func meaning(
        of refusal: OAuthError.Refusal, _ object: JSONObject, _ response: HTTPResponse
    ) -> OAuthError {
        switch refusal.code {
        case "temporarily_unavailable", "server_error", "slow_down": ResponseReader.unavailable(response, .token)
        // GitHub's word for a refresh token that is dead, said with 200: the standard's word for it is the one that the
        // rest of the house knows.
        case "bad_refresh_token":
            .refused(.init(code: "invalid_grant", message: refusal.message, status: refusal.status))
        case "invalid_grant":
            .refused(
                .init(
                    code: livingGrant(object["suberror"]?.string) ?? refusal.code, message: refusal.message,
                    status: refusal.status))
        default: .refused(refusal)
        }
    }

    /// Microsoft says `invalid_grant` of grants that live too, and beside it what it wants: a second factor, another
    /// device or place, a consent. The word for that, then: it ends no session. `bad_token` and the like end it.
    private static func livingGrant(_ suberror: String?) -> String? {
        switch suberror {
        case "consent_required": "consent_required"
        case "basic_action", "additional_action", "message_only", "protection_policy_required": "interaction_required"
        default: nil
        }
    }

    private static func rest(of object: JSONObject, _ refreshToken: Secret?) -> Result<TokenSet, OAuthError> {
        switch object["error"] {
        case nil, .null?, .string("")?: break
        default: return .failure(.invalid(.token, reason: "an error and a refresh token in one answer"))
        }
        do throws(OAuthError) {
            return .success(try TokenSet(parsing: object, refreshToken: refreshToken))
        } catch {
            return .failure(error)
        }
    }
}
