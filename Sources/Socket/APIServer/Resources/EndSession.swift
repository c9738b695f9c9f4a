internal import BrokerCore
internal import RingbackAPI
internal import StrictJSON

/// The page that ends the user's session at the provider, beside a sign-out. While a browser is signed in there, the
/// next sign-in does not ask who signs in.
extension SessionResource {
    /// Whether the page's URL names the user.
    enum EndSessionForm: String, CaseIterable {
        case saysWho = "true"
        case plain
    }

    /// What the response to a sign-out says of the page: `end_session_url`, to be shown to the user, and
    /// `end_session_open_url`, for a program to open, or `end_session_open_url_error` if there is none;
    /// `end_session_error` if the page could not be found out; nothing if the provider has no such page, or if the caller
    /// did not ask. The sign-out does not depend on it.
    func endSession(
        _ call: Call, _ ending: EndingSession?, _ name: AccountName
    ) async throws(Problem) -> [JSONObject.Member] {
        guard let ending, let form = try call.query("end_session", as: EndSessionForm.self) else { return [] }
        // The URL may contain the ID token, which not every caller that may sign out may have.
        let mayHaveIDToken = api.admit(call.request, account: name.rawValue, operation: .idToken) != nil
        let page: EndSessionPage?
        do throws(BrokerError) {
            page = try await broker.endSessionPage(of: ending, saysWho: form == .saysWho, maySayIDToken: mayHaveIDToken)
        } catch {
            return [.init("end_session_error", Problem(error, language: call.language).json)]
        }
        guard let page else { return [] }
        if let shown = page.shown { api.noteIssuedToken(call.facts, shown, .own, .idToken) }
        var members = [JSONObject.Member("end_session_url", .string(page.url))]
        do throws(BrokerError) {
            if let url = try await broker.openURL(of: page, name) {
                members.append(.init("end_session_open_url", .string(url)))
            }
        } catch {
            members.append(.init("end_session_open_url_error", Problem(error, language: call.language).json))
        }
        return members
    }
}
