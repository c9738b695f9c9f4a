internal import BrokerCore
internal import HTTPMessages
internal import SupabaseAuth

/// The flow of a Supabase callback is found by the key in its URL, since the server returns no state. The key is not a
/// secret, so the callback may be forged. PKCE shows whether its code belongs to this flow; a wrong code does not end
/// it.
extension SupabaseFlow {
    func recognize(_ arrival: Arrival, of standing: FlowStanding) -> Recognition {
        guard arrival.form == nil, let redirect else { return .foreign }
        let callback: SupabaseCallback
        do throws(SupabaseCallback.Failure) {
            callback = try SupabaseCallback(parsing: arrival.url)
        } catch {
            return .ignored(Reason(error))
        }
        let isKeyed = callback.key(at: arrival.url).map { Arrival.digest(of: $0) == key } ?? false
        guard isKeyed || isKeyless else { return .foreign }
        guard redirect.isPlace(of: arrival.url) else {
            return .ignored(.flow(.otherAddress))
        }
        guard !isKeyless || standing.attempts < SupabaseFlow.maxAttempts else {
            return .ignored(.supabase(.tooManyWrongCallbacks))
        }
        if isKeyless, case .error = callback.outcome {
            return .ignored(.supabase(.keylessError))
        }
        if case .message(let text) = callback.outcome {
            return purpose == .change && standing.isPending ? .noted : .ignored(.supabase(.anotherStep(message: text)))
        }
        if standing.isPending, standing.hasOlderMessage || hasTwoMails, callback.isOfSpentLink { return .outdated }
        return .likely
    }

    /// If the redirect URI is not in the project's list, the server sends the browser to the project's Site URL without
    /// an error. If the user pastes that URL, the hint names the cause. Nil if there may be another cause.
    func hint(for url: WebURL, of account: AccountName) -> Reason? {
        guard !url.isLoopback, (try? SupabaseCallback(parsing: url)) != nil, let redirect,
            let listed = redirect.allowListEntry, let asked = try? WebURL(parsing: redirect.url),
            asked.scheme != url.scheme || asked.host != url.host
        else { return nil }
        return .supabase(
            .redirectNotListed(account, origin: url.origin, redirectURI: redirect.url, listed: listed))
    }
}
