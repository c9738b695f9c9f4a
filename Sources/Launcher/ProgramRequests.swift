public import Secrets
internal import StrictJSON

// Programs that the person is to see, through the helper. The daemon names a scheme, or a page of the web; what is run for
// it is the configuration's and the desktop's business.
extension HelperConnection {
    /// A service manager that does not answer is waited for; it has some steps of a few seconds each.
    private static let timeout: Duration = .seconds(30)

    /// Starts the program that the configuration has for the scheme, with the URL as one word in the place of `{url}`: as
    /// a service of the person's own where there is a service manager, else as a process of its own. Returns when it
    /// runs. ``HelperError/programFailed(reason:)`` where it does not.
    public func startApplication(scheme: String, url: Secret) async throws(HelperError) {
        let members = JSONObject([.init("do", "start_application"), .init("scheme", .string(scheme))])
        try await start(members, url)
    }

    /// Opens a page, `http` or `https` alone, by the desktop's opener (`xdg-open`). Returns when the opener runs: what
    /// comes of it, nobody says.
    ///
    /// - Parameter activationToken: the compositor's leave to bring a window forward, from an answered notice.
    public func openPage(url: String, activationToken: String? = nil) async throws(HelperError) {
        var members = JSONObject([.init("do", "open_page")])
        members["activation_token"] = activationToken.map { .string($0) }
        try await start(members, Secret(url))
    }

    private func start(_ members: JSONObject, _ url: Secret) async throws(HelperError) {
        guard url.count <= Application.maxURL else {
            throw .programFailed(reason: "was not started: the URL is longer than \(Application.maxURL) bytes")
        }
        let answer: HelperResponse
        do throws(HelperError) {
            answer = try await request(members, secret: url, timeout: HelperConnection.timeout)
        } catch {
            guard case .commandFailed(let reason) = error else { throw error }
            throw .programFailed(reason: reason)
        }
        guard answer.members["started"]?.bool == true else {
            throw .programFailed(reason: answer.members["reason"]?.string ?? "was not started")
        }
    }
}
