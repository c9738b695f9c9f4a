internal import BrokerCore
internal import HTTPMessages
internal import SupabaseAuth

/// Callbacks of Supabase projects are found by the key in them, since the server gives no state back. The key is no
/// secret; that the code is this flow's is proved by PKCE alone, and a wrong code costs the flow nothing.
extension SupabaseFlow {
    func recognize(_ arrival: Arrival, of standing: FlowStanding) -> Recognition {
        guard arrival.form == nil, let redirect else { return .foreign }
        let callback: SupabaseCallback
        do throws(SupabaseCallback.Failure) {
            callback = try SupabaseCallback(parsing: arrival.url)
        } catch {
            return .ignored(error.explanation)
        }
        let isKeyed = callback.key(at: arrival.url).map { Arrival.digest(of: $0) == key } ?? false
        guard isKeyed || isKeyless else { return .foreign }
        guard redirect.isPlace(of: arrival.url) else {
            return .ignored("It arrived at another address than the one this sign-in asked for.")
        }
        guard !isKeyless || standing.attempts < SupabaseFlow.maxAttempts else {
            return .ignored("Too many callbacks of this sign-in had a code of another one. Start it again.")
        }
        if isKeyless, case .refusal = callback.outcome {
            return .ignored("An error without a flow's key could be anybody's: nothing was changed.")
        }
        if case .message(let text) = callback.outcome {
            return purpose == .change && standing.isPending ? .noted : .ignored("It is not the last word: \(text)")
        }
        if standing.isPending, standing.hasOlderMessage || hasTwoMails, callback.isOfSpentLink { return .outdated }
        return .likely
    }

    /// A server that does not have a flow's address in its list sends the user to the project's Site URL, without a word:
    /// a callback from there says so, whoever pasted it. Nil for what may be anybody's.
    func hint(for url: WebURL, of account: AccountName) -> String? {
        guard !url.isLoopback, (try? SupabaseCallback(parsing: url)) != nil, let redirect,
            let listed = redirect.allowListEntry, let asked = try? WebURL(parsing: redirect.url),
            asked.scheme != url.scheme || asked.host != url.host
        else { return nil }
        return
            "It ended at \(url.origin), and the sign-in of \(account) asked for \(redirect.url): "
            + "the project does not know that address. Add this to its redirect URLs, then sign in again: \(listed)"
    }
}
